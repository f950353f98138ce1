"""Skill folders: SKILL.md files in the workspace, in the user's folders and in installed packages."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from handtools.core.errors import NotFound
from handtools.core.ports import FileFacts, HostFiles
from handtools.core.skills import GUIDE, SHELVES, Bundle, Skill, visible
from handtools.host.home import config_home, home
from handtools.host.local_files import LocalFiles
from handtools.host.skill_shelves import bundled, facts_of, of_machine, of_workspace

PACKAGES = "handtools.skills"
"""The entry-point group under which installed packages offer skills; each point names a package."""
MOST_KNOWN = 10_000
_MISSING = -1.0
_SETTLED_SECONDS = 1.0
"""What changed less long ago may change again within the same tick of the clock."""
_FOREIGN = {".git", ".venv", "venv", "node_modules", "site-packages", "vendor", "third_party"}
"""Below these is other people's work: what it says to agents is not said to ours."""


def user_shelves() -> list[Path]:
    """Where a person keeps skills for all their work."""
    own, settings = home(), config_home()
    shelves = [own / shelf for shelf in SHELVES] if own else []
    return [*shelves, settings / "handtools" / "skills"] if settings else shelves


def package_shelves() -> list[Path]:
    """The folders of packages that offer skills. Nothing of theirs is run; a broken one has none."""
    found: list[Path] = []
    for point in sorted(entry_points(group=PACKAGES), key=lambda point: point.name):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            continue
        found += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    return found


@dataclass(frozen=True, slots=True)
class _Folder:
    """What matters of a folder, for as long as its time of change stays the same."""

    stamp: float
    guide: bool
    shelves: tuple[str, ...]
    """Where skills are or may come to be."""


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The skills of a shelf, for as long as its time of change stays the same."""

    stamp: float
    skills: tuple[Skill, ...]


@dataclass(slots=True)
class SkillFolders:
    """The HostSkills port over the files of a workspace and folders of this machine."""

    files: HostFiles
    root: str
    """The workspace as an absolute path, for addresses."""
    local: bool = False
    """Whether that is a folder of this machine, so that times of change can be had at once."""
    users: Sequence[Path] = ()
    packages: Callable[[], Iterable[Path]] = tuple
    """Asked when skills are, not before: looking through what is installed takes a while."""
    _folders: dict[str, _Folder] = field(default_factory=dict)
    _shelves: dict[str, _Shelf] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)
    """The folders of skills outside of the workspace."""

    def found(self, near: str) -> list[Skill]:
        """Every skill for a located path, nearest first; looked for anew."""
        self._folders.clear()
        self._shelves.clear()
        own = [skill for folder in (near, *_above(near)) for skill in self._inside(folder)]
        users = [skill for shelf in self.users for skill in self._outside(shelf)]
        packaged = [skill for shelf in self.packages() for skill in of_machine(shelf, "package")]
        self._homes = {skill.name: skill.location for skill in visible((*users, *packaged))}
        return _distinct((*own, *users, *packaged))

    def mentioned(self, path: str) -> list[Skill]:
        """The skills that name a path among their files; a package can't know the names of files here."""
        own = [skill for folder in _above(path) for skill in self._inside(folder)]
        users = [skill for shelf in self.users for skill in self._outside(shelf)]
        return [skill for skill in visible((*own, *users)) if skill.is_about(path)]

    def guides(self, path: str) -> list[str]:
        """The AGENTS.md files above a path, outermost first; the root's is for the program around us to show."""
        found = [f"{folder}/{GUIDE}" for folder in _above(path) if folder and self._folder(folder).guide]
        return [guide for guide in reversed(found) if guide != path]

    def bundle(self, skill: Skill) -> Bundle:
        """The files of a skill beside its SKILL.md."""
        if skill.origin == "workspace":
            return bundled(self.files, skill.folder)
        return bundled(self._home(skill.name), "")

    def read(self, name: str, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """A file of a skill outside of the workspace; no link leads out of the skill's folder."""
        home = self._home(name)
        return home.read(home.locate(path), start=start, size=size)

    def facts(self, name: str, path: str) -> FileFacts | None:
        """What is at a path of such a skill, or None."""
        home = self._home(name)
        return home.facts(home.locate(path))

    def _home(self, name: str) -> LocalFiles:
        if name not in self._homes:
            self.found("")
        if name not in self._homes:
            hint = "Call `skill` without a name to see what there is."
            raise NotFound(f"There is no skill `{name}` outside of the workspace.", hint=hint)
        return LocalFiles(unquote(self._homes[name].removeprefix("file://"), errors="surrogateescape"))

    def _inside(self, folder: str) -> Iterator[Skill]:
        """The skills that one folder of the workspace has."""
        for shelf in self._folder(folder).shelves:
            known, stamp = self._shelves.get(shelf), self._stamp(shelf)
            if known is None or known.stamp != stamp:
                known = _Shelf(stamp, tuple(of_workspace(self.files, self.root, shelf, folder)))
                if _is_settled(stamp):
                    self._shelves[shelf] = known
            yield from known.skills

    def _outside(self, shelf: Path) -> tuple[Skill, ...]:
        """The skills on a shelf of the user's, known as long as nothing is put on it."""
        stamp = _time_of(str(shelf))
        known = self._shelves.get(str(shelf))
        if known is None or known.stamp != stamp:
            known = _Shelf(stamp, tuple(of_machine(shelf, "user")))
            if _is_settled(stamp):
                self._shelves[str(shelf)] = known
        return known.skills

    def _folder(self, folder: str) -> _Folder:
        known, stamp = self._folders.get(folder), self._stamp(folder)
        if known is not None and known.stamp == stamp:
            return known
        if not _FOREIGN.isdisjoint(folder.split("/")):
            return _Folder(stamp, guide=False, shelves=())
        prefix = f"{folder}/" if folder else ""
        guide = self._kind(f"{prefix}{GUIDE}") == "file"
        # A shelf may be put into a `.claude` that is there for another reason, and that changes no time here.
        shelves = tuple(
            f"{prefix}{shelf}"
            for shelf in SHELVES
            if self._kind(f"{prefix}{shelf.partition('/')[0]}") == "folder"
        )
        looked = _Folder(stamp, guide, shelves)
        if _is_settled(stamp):
            if len(self._folders) >= MOST_KNOWN:
                self._folders.clear()
            self._folders[folder] = looked
        return looked

    def _kind(self, path: str) -> str:
        """What is at a path. That nothing is there is the usual answer, and can be had without care for links."""
        if self.local and not os.path.lexists(f"{self.root}/{path}"):
            return ""
        facts = facts_of(self.files, path)
        return facts.kind if facts else ""

    def _stamp(self, path: str) -> float:
        """When a folder last changed: only to tell whether what is known of it still holds."""
        if self.local:
            return _time_of(f"{self.root}/{path}" if path else self.root)
        facts = facts_of(self.files, path or ".")
        return facts.modified if facts else _MISSING


def _above(path: str) -> list[str]:
    """The folders above a path, the nearest first, the root last."""
    parts = [part for part in path.split("/") if part != "."][:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def _is_settled(stamp: float) -> bool:
    return stamp == _MISSING or 0.0 < stamp < time.time() - _SETTLED_SECONDS


def _time_of(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return _MISSING


def _distinct(skills: Iterable[Skill]) -> list[Skill]:
    """Each folder once: `.claude/skills` is often a link to `.agents/skills`."""
    return list({skill.location: skill for skill in reversed(list(skills))}.values())[::-1]
