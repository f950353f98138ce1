"""Guarded skills: what a tool holds instead of the machine's folders of skills."""

from dataclasses import dataclass, replace

from anyio import to_thread

from handtools.core.errors import NotFound
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
        return [skill for skill in skills if not self.gate.policy.hides(skill.file)]

    async def bundle(self, skill: Skill) -> Bundle:
        """The files of a skill, hidden ones included."""
        found = await to_thread.run_sync(self.workspace.skills.bundle, skill)
        shown = [f for f in found.files if not self.gate.policy.hides(f"{skill.folder}/{f.path}")]
        return replace(found, files=tuple(shown))


def parted(path: str) -> tuple[str, str]:
    """The name and the inner path of `skill:NAME/path`."""
    name, _, inner = path.removeprefix(SCHEME).partition("/")
    if not name:
        raise NotFound(f"`{path}` names no skill.", hint="Write `skill:NAME/path`.")
    return name, inner or "."
