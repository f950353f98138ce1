"""Guarded skills: what a tool holds instead of the machine's folders of skills."""

from dataclasses import dataclass, replace

from anyio import to_thread

from handtools.core.errors import NotFound, ToolError
from handtools.core.skills import SCHEME, Bundle, Skill
from handtools.runtime.approval import Gate
from handtools.runtime.workspace import Workspace


@dataclass(frozen=True, slots=True)
class GuardedSkills:
    """One per call: what the rules hide is not there."""

    workspace: Workspace
    gate: Gate

    async def found(self, near: str) -> list[Skill]:
        """The skills for a file or folder, nearest first."""
        return await to_thread.run_sync(self._found, near)

    def _found(self, near: str) -> list[Skill]:
        skills = self.workspace.skills.found(self.workspace.files.locate(near or "."))
        return [skill for skill in skills if not skill.is_hidden(self.gate.policy.hides)]

    async def bundle(self, skill: Skill) -> Bundle:
        """The files of a skill, hidden ones included."""
        return await to_thread.run_sync(self._bundle, skill)

    def _bundle(self, skill: Skill) -> Bundle:
        found = self.workspace.skills.bundle(skill)
        return replace(
            found, files=tuple(f for f in found.files if self._shows(f"{skill.folder}/{f.path}"))
        )

    def _shows(self, path: str) -> bool:
        """Whether rules let a file be named: by its name, and by what it leads to."""
        hides = self.gate.policy.hides
        try:
            return not hides(path) and (
                path.startswith(SCHEME) or not hides(self.workspace.files.locate(path))
            )
        except ToolError:
            return False


def parted(path: str) -> tuple[str, str]:
    """The name and the inner path of `skill:NAME/path`."""
    name, _, inner = path.removeprefix(SCHEME).partition("/")
    if not name:
        raise NotFound(f"`{path}` names no skill.", hint="Write `skill:NAME/path`.")
    return name, inner or "."
