"""Find skills on this machine: SKILL.md files in the workspace, user folders and installed packages."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from handtools.core.errors import NotFound, ToolError
from handtools.core.files import FileFacts, HostFiles
from handtools.core.skills import (
    GUIDE_FILE,
    SKILL_FILE,
    SKILL_ROOTS,
    Skill,
    SkillFileList,
    SkillOrigin,
    nearest_skill_per_name,
    skill_from_frontmatter,
)
from handtools.host.files.local_files import LocalFiles
from handtools.host.home_folders import config_home, user_home
from handtools.text.encoding import decode
from handtools.text.frontmatter import Frontmatter, parse_frontmatter
from handtools.text.paths import file_url

SKILL_HEAD_BYTES = 128 << 10
"""How many bytes of a SKILL.md are read to get its description."""
MAX_SKILLS = 500
"""The maximum number of skills read from one skills folder."""
MAX_BUNDLED_FILES = 200
MAX_BUNDLE_DEPTH = 8
_UNLISTED_NAMES = {".git", "__pycache__", "node_modules"}


def workspace_skills(files: HostFiles, root: str, shelf: str, scope: str) -> Iterator[Skill]:
    """Yield the skills in a skills folder of the workspace; symlinks that lead out are not followed."""
    for path in islice(_workspace_skill_paths(files, shelf), MAX_SKILLS):
        source, head, problem = _path_frontmatter_and_error(files, f"{path}/{SKILL_FILE}")
        yield skill_from_frontmatter(
            head,
            path.rpartition("/")[2],
            origin="workspace",
            folder=path,
            source=source,
            location=file_url(f"{root}/{path}"),
            scope=scope,
            unreadable=problem,
        )


def skills_outside_workspace(shelf: Path, origin: SkillOrigin) -> Iterator[Skill]:
    """Yield the skills in a skills folder outside the workspace; its subfolders may be symlinks."""
    for path in islice(_machine_skill_paths(shelf), MAX_SKILLS):
        _, head, problem = _path_frontmatter_and_error(LocalFiles(path), SKILL_FILE)
        location = file_url(str(path.resolve()))
        yield skill_from_frontmatter(
            head, path.name, origin=origin, folder="", location=location, unreadable=problem
        )


def skill_bundle(files: HostFiles, folder: str) -> SkillFileList:
    """List the files in a skill's folder other than its SKILL.md."""
    file_facts: list[FileFacts] = []
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop()
        for entry in _entries(files, here):
            name = entry.path.rpartition("/")[2]
            if entry.kind == "folder" and depth < MAX_BUNDLE_DEPTH and name not in _UNLISTED_NAMES:
                waiting.append((entry.path, depth + 1))
            # Symlinks to files inside are followed. Symlinks to folders are not: they could form a cycle.
            facts = facts_of_linked_path(files, entry.path) if entry.kind == "link" else entry
            if facts is not None and facts.kind == "file" and (depth or name != SKILL_FILE):
                file_facts.append(facts)
            if len(file_facts) > MAX_BUNDLED_FILES:
                return _skill_file_list(file_facts[:MAX_BUNDLED_FILES], folder, more=True)
    return _skill_file_list(file_facts, folder, more=False)


def facts_of_linked_path(files: HostFiles, path: str) -> FileFacts | None:
    """Return the facts of the file at a path, following symlinks; None if it is missing or not allowed."""
    try:
        facts = files.facts(files.locate(path))
    except ToolError:
        return None
    return facts and replace(facts, path=path)


def _skill_file_list(file_facts: list[FileFacts], folder: str, *, more: bool) -> SkillFileList:
    prefix = f"{folder}/" if folder else ""
    named = [replace(facts, path=facts.path.removeprefix(prefix)) for facts in file_facts]
    return SkillFileList(tuple(sorted(named, key=lambda facts: facts.path)), more)


def _workspace_skill_paths(files: HostFiles, shelf: str) -> Iterator[str]:
    """Yield the folders with a SKILL.md in a skills folder, or one level deeper in a group of skills."""
    for entry in _entries(files, shelf):
        facts = facts_of_linked_path(files, entry.path)
        if facts is None or facts.kind != "folder":
            continue
        inner = [entry.path, *(each.path for each in _entries(files, entry.path))]
        holding = [
            path for path in inner if facts_of_linked_path(files, f"{path}/{SKILL_FILE}") is not None
        ]
        yield from (files.locate(path) for path in (holding[:1] if entry.path in holding else holding))


def _machine_skill_paths(shelf: Path) -> Iterator[Path]:
    for path in _sorted_subfolders(shelf):
        yield from (
            [path]
            if (path / SKILL_FILE).exists()
            else [each for each in _sorted_subfolders(path) if (each / SKILL_FILE).exists()]
        )


def _sorted_subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _entries(files: HostFiles, folder: str) -> list[FileFacts]:
    """Return the entries of a folder; empty if it can't be read."""
    try:
        located = files.locate(folder or ".")
        inside = files.names(located)
    except ToolError:
        return []
    # Keep the path through which the folder was reached, which may contain symlinks.
    return [replace(facts, path=_join_path(folder, facts.path.rpartition("/")[2])) for facts in inside]


def _join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _path_frontmatter_and_error(files: HostFiles, path: str) -> tuple[str, Frontmatter, str]:
    """Return the real path and frontmatter of a SKILL.md, and the error message if it can't be read."""
    located = path
    try:
        located = files.locate(path)
        return located, parse_frontmatter(decode(files.read(located, size=SKILL_HEAD_BYTES)).body), ""
    except ToolError as failure:
        return located, Frontmatter(), failure.message


SKILLS_ENTRY_POINT = "handtools.skills"
"""The entry-point group with which installed packages offer skills; each entry point names a package."""
MAX_CACHED_SKILL_FOLDERS = 10_000
_NO_TIME = -1.0
_SETTLED_SECONDS = 1.0
"""A folder that changed less than this many seconds ago is not cached: its mtime may miss the next change."""
_THIRD_PARTY_FOLDERS = {".git", ".venv", "venv", "node_modules", "site-packages", "vendor", "third_party"}
"""Folders with third-party files, whose AGENTS.md and skills are not used."""


def user_skill_folders() -> list[Path]:
    """Return the folders with the user's own skills, which apply to all workspaces."""
    own, settings = user_home(), config_home()
    shelves = [own / shelf for shelf in SKILL_ROOTS] if own else []
    return [*shelves, settings / "handtools" / "skills"] if settings else shelves


def package_skill_folders() -> list[Path]:
    """Return the skills folders of installed packages, without running the packages' code."""
    found: list[Path] = []
    for point in sorted(entry_points(group=SKILLS_ENTRY_POINT), key=lambda point: point.name):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            continue
        found += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    return found


@dataclass(frozen=True, slots=True)
class _CachedFolder:
    """Cached facts of a workspace folder, valid while its modification time stays the same."""

    stamp: float
    guide: bool
    shelves: tuple[str, ...]
    """The skills folders in it, including those that could be added without changing its mtime."""


@dataclass(frozen=True, slots=True)
class _CachedSkills:
    """Cached skills of a skills folder, valid while its modification time stays the same."""

    stamp: float
    skills: tuple[Skill, ...]


@dataclass(slots=True)
class SkillFolders:
    """The HostSkills port: finds and reads skills of the workspace, the user and installed packages."""

    files: HostFiles
    root: str
    """The absolute path of the workspace, used for file URLs."""
    local: bool = False
    """Whether the workspace is on this machine, so that modification times can be read directly."""
    users: Sequence[Path] = ()
    packages: Callable[[], Iterable[Path]] = tuple
    """Returns the skills folders of installed packages. Slow, so only called when skills are listed."""
    _folders: dict[str, _CachedFolder] = field(default_factory=dict)
    _cached_skills: dict[str, _CachedSkills] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)
    """The folders of skills outside the workspace, by skill name."""

    def found(self, near: str) -> list[Skill]:
        """List all skills that apply to a path, nearest first. Clears the cache and searches again."""
        self._folders.clear()
        self._cached_skills.clear()
        own = [
            skill
            for folder in (near, *_folders_above(near))
            for skill in self._skills_of_workspace_folder(folder)
        ]
        users = [skill for shelf in self.users for skill in self._cached_outside_skills(shelf)]
        packaged = [
            skill for shelf in self.packages() for skill in skills_outside_workspace(shelf, "package")
        ]
        self._homes = {skill.name: skill.location for skill in nearest_skill_per_name((*users, *packaged))}
        return _without_duplicates((*own, *users, *packaged))

    def skills_matching_path(self, path: str) -> list[Skill]:
        """Return the skills of the workspace and the user to mention when the file at a path is read."""
        own = [
            skill for folder in _folders_above(path) for skill in self._skills_of_workspace_folder(folder)
        ]
        users = [skill for shelf in self.users for skill in self._cached_outside_skills(shelf)]
        return [skill for skill in nearest_skill_per_name((*own, *users)) if skill.is_about(path)]

    def guides(self, path: str) -> list[str]:
        """Return the AGENTS.md files above a path, outermost first, except the root's, which clients show."""
        found = [
            f"{folder}/{GUIDE_FILE}"
            for folder in _folders_above(path)
            if folder and self._cached_folder(folder).guide
        ]
        return [guide for guide in reversed(found) if guide != path]

    def bundle(self, skill: Skill) -> SkillFileList:
        """List the files of a skill other than its SKILL.md."""
        if skill.origin == "workspace":
            return skill_bundle(self.files, skill.folder)
        return skill_bundle(self._files_of_skill(skill.name), "")

    def read(self, name: str, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Read a file of a skill outside the workspace; refuses symlinks out of the skill's folder."""
        home = self._files_of_skill(name)
        return home.read(home.locate(path), start=start, size=size)

    def facts(self, name: str, path: str) -> FileFacts | None:
        """Return kind, size and times of a file of a skill outside the workspace; None if it is missing."""
        home = self._files_of_skill(name)
        return home.facts(home.locate(path))

    def _files_of_skill(self, name: str) -> LocalFiles:
        if name not in self._homes:
            self.found("")
        if name not in self._homes:
            hint = "Call `skill` without a name to list all skills."
            raise NotFound(f"There is no skill `{name}` outside the workspace.", hint=hint)
        return LocalFiles(unquote(self._homes[name].removeprefix("file://"), errors="surrogateescape"))

    def _skills_of_workspace_folder(self, folder: str) -> Iterator[Skill]:
        """Yield the skills in the skills folders of one workspace folder."""
        for shelf in self._cached_folder(folder).shelves:
            cached, stamp = self._cached_skills.get(shelf), self._folder_mtime(shelf)
            if cached is None or cached.stamp != stamp:
                cached = _CachedSkills(stamp, tuple(workspace_skills(self.files, self.root, shelf, folder)))
                if _is_old_enough_to_cache(stamp):
                    self._cached_skills[shelf] = cached
            yield from cached.skills

    def _cached_outside_skills(self, shelf: Path) -> tuple[Skill, ...]:
        """Return the skills in a folder outside the workspace, cached while the folder is unchanged."""
        stamp = _mtime_of_path(str(shelf))
        cached = self._cached_skills.get(str(shelf))
        if cached is None or cached.stamp != stamp:
            cached = _CachedSkills(stamp, tuple(skills_outside_workspace(shelf, "user")))
            if _is_old_enough_to_cache(stamp):
                self._cached_skills[str(shelf)] = cached
        return cached.skills

    def _cached_folder(self, folder: str) -> _CachedFolder:
        known, stamp = self._folders.get(folder), self._folder_mtime(folder)
        if known is not None and known.stamp == stamp:
            return known
        if not _THIRD_PARTY_FOLDERS.isdisjoint(folder.split("/")):
            return _CachedFolder(stamp, guide=False, shelves=())
        prefix = f"{folder}/" if folder else ""
        guide = self._kind_of_path(f"{prefix}{GUIDE_FILE}") == "file"
        # A skills folder may be added later to a `.claude` that exists for another reason. That doesn't
        # change the mtime of `folder`.
        shelves = tuple(
            f"{prefix}{shelf}"
            for shelf in SKILL_ROOTS
            if self._kind_of_path(f"{prefix}{shelf.partition('/')[0]}") == "folder"
        )
        cached = _CachedFolder(stamp, guide, shelves)
        if _is_old_enough_to_cache(stamp):
            if len(self._folders) >= MAX_CACHED_SKILL_FOLDERS:
                self._folders.clear()
            self._folders[folder] = cached
        return cached

    def _kind_of_path(self, path: str) -> str:
        """Return the kind of file at a path; empty if there is none (a fast check that comes first)."""
        if self.local and not os.path.lexists(f"{self.root}/{path}"):
            return ""
        facts = facts_of_linked_path(self.files, path)
        return facts.kind if facts else ""

    def _folder_mtime(self, path: str) -> float:
        """Return a folder's modification time, used only to validate the cache."""
        if self.local:
            return _mtime_of_path(f"{self.root}/{path}" if path else self.root)
        facts = facts_of_linked_path(self.files, path or ".")
        return facts.modified if facts else _NO_TIME


def _folders_above(path: str) -> list[str]:
    """Return the folders above a path, nearest first, root last."""
    parts = [part for part in path.split("/") if part != "."][:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def _is_old_enough_to_cache(stamp: float) -> bool:
    return stamp == _NO_TIME or 0.0 < stamp < time.time() - _SETTLED_SECONDS


def _mtime_of_path(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return _NO_TIME


def _without_duplicates(skills: Iterable[Skill]) -> list[Skill]:
    """Drop duplicates of the same folder: `.claude/skills` is often a symlink to `.agents/skills`."""
    return list({skill.location: skill for skill in reversed(list(skills))}.values())[::-1]
