"""Paths that a command must not read or write: matches of the policy's globs, system secrets, sockets.

A mount needs a path, and a policy speaks in globs. So the tree is looked through once and then kept up to date by
folders' change times: a command in a large tree must not wait for a walk each time. ADR 200.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from threading import Lock

from handtools.core.commands import PathPredicate
from handtools.core.errors import HostError
from handtools.host.files.git_repository import worktree_git_folder
from handtools.host.sandbox.runners.bubblewrap_args import SANDBOX_SYSTEM_FOLDERS, MaskedPaths
from handtools.host.workspace_folders import (
    path_in_folders,
    path_in_workspace,
    shown_folders,
    workspace_folders,
)
from handtools.text.search.glob import GlobPrefilter, PathGlobs, any_covers

_REFRESH_SECONDS = 0.004
"""Seconds that one call may spend on looking for changed folders."""
DEPENDENCY_FOLDERS = frozenset(
    {"node_modules", "site-packages", "dist-packages", ".tox", ".nox", "__pycache__"}
)
"""Folders with other people's files: private-looking names there (certificates, samples) are no secrets."""
UNSEARCHED_FOLDERS = DEPENDENCY_FOLDERS | {".git", ".hg", ".jj", ".bzr"}
"""Folders that are not searched: dependencies and the data of version control."""
_MOST_LOOKED_AT = 200
"""How many files of a private folder are looked at one by one; a larger folder is hidden whole."""


@dataclass(frozen=True, slots=True)
class PolicyPaths:
    """The private and the read-only paths found in a workspace, as absolute paths."""

    private: tuple[str, ...]
    read_only: tuple[str, ...]


class PolicyGlobFinder:
    """Finds the paths in a workspace that match the policy's globs, and keeps the result up to date."""

    def __init__(
        self, root: str, private: Sequence[PathGlobs], read_only: Sequence[PathGlobs], *, name: str = ""
    ) -> None:
        """`name` is that of the folder `root`, if the workspace has several."""
        self._root = root
        self._prefix = f"{name}/" if name else ""
        self._private = private
        self._read_only = read_only
        rules = (*private, *read_only)
        self._likely = GlobPrefilter(glob for rule in rules for glob in rule.globs or ("**",))
        self._folders: dict[str, tuple[int, frozenset[str], frozenset[str]]] = {}
        self._kept: set[str] = set()
        """Folders that are read-only, or inside one: they are searched for private paths only."""
        self._waiting: list[str] = []
        self._searched_once = False
        self._lock = Lock()

    def found(self) -> PolicyPaths:
        """The matching paths now.

        Large trees are rechecked in turns, so a new path may be found some calls later. What was searched first is
        rechecked whole the next time: that may have been long before the first command.
        """
        if self._prefix and any_covers(self._private, self._prefix.rstrip("/")):
            return PolicyPaths((self._root,), ())
        # Who comes while the tree is searched must not go by the part that is known so far.
        with self._lock:
            if self._folders:
                self._recheck(whole=self._searched_once)
            self._searched_once = not self._folders
            if self._searched_once:
                self._walk("")
            seen = self._folders.values()
            return PolicyPaths(
                tuple(sorted(path for _, private, _ in seen for path in private)),
                tuple(sorted(path for _, _, kept in seen for path in kept)),
            )

    def _recheck(self, *, whole: bool) -> None:
        """Search folders again that have changed: all, or those whose turn it is."""
        self._refresh("")
        self._waiting = [] if whole else self._waiting
        self._waiting = self._waiting or list(self._folders)
        deadline = inf if whole else time.monotonic() + _REFRESH_SECONDS
        while self._waiting and time.monotonic() < deadline:
            self._refresh(self._waiting.pop())

    def _refresh(self, folder: str) -> None:
        known = self._folders.get(folder)
        try:
            changed = os.stat(os.path.join(self._root, folder)).st_mtime_ns
        except OSError:
            self._folders.pop(folder, None)
            return
        if known is None or known[0] != changed:
            self._walk(folder)

    def _walk(self, start: str) -> None:
        """Search a folder and those below it that are not known yet, one level after another."""
        level = [start]
        while level:
            level = [each for each in self._look(level) if each not in self._folders]

    def _look(self, folders: Iterable[str]) -> list[str]:
        """Record the matches in some folders; gives their subfolders that are to be searched."""
        listed = [(folder, *found) for folder in folders if (found := self._listed(folder))]
        # Of thousands of names hardly one is like a glob: one search through all of them finds that out.
        likely = self._likely.possible_matches(
            [self._prefix + path for _, _, entries in listed for path in entries]
        )
        below: list[str] = []
        for folder, changed, entries in listed:
            private: set[str] = set()
            kept: set[str] = set()
            for path, is_folder in entries.items():
                shown = self._prefix + path
                if shown in likely and any_covers(self._private, shown):
                    private.add(os.path.join(self._root, path))
                    continue
                is_kept = folder in self._kept
                if not is_kept and shown in likely and any_covers(self._read_only, shown):
                    is_kept = True
                    kept.add(os.path.join(self._root, path))
                if is_folder and path.rpartition("/")[2] not in UNSEARCHED_FOLDERS:
                    if is_kept:
                        self._kept.add(path)
                    below.append(path)
            self._folders[folder] = (changed, frozenset(private), frozenset(kept))
        return below

    def _listed(self, folder: str) -> tuple[int, dict[str, bool]] | None:
        """When a folder was changed, and of each path in it whether that is a folder; None if it can't be read."""
        place, start = os.path.join(self._root, folder), f"{folder}/" if folder else ""
        try:
            changed = os.stat(place).st_mtime_ns
            with os.scandir(place) as entries:
                return changed, {start + each.name: each.is_dir(follow_symlinks=False) for each in entries}
        except OSError:
            return None


class PolicyPathFinder:
    """Keeps one `PolicyGlobFinder` for each workspace and policy from command to command."""

    def __init__(self) -> None:
        self._finders: dict[tuple[object, ...], PolicyGlobFinder] = {}

    def found(
        self, root: str, private: tuple[PathGlobs, ...], read_only: tuple[PathGlobs, ...]
    ) -> PolicyPaths:
        """The paths that the policy's globs cover in a workspace."""
        found: list[PolicyPaths] = []
        for name, folder in workspace_folders(root).items() if private or read_only else ():
            key = (name, folder, private, read_only)
            if key not in self._finders:
                self._finders[key] = PolicyGlobFinder(folder, private, read_only, name=name)
            found.append(self._finders[key].found())
        return PolicyPaths(
            tuple(path for each in found for path in each.private),
            tuple(path for each in found for path in each.read_only),
        )


_UNIX_SOCKETS = "/proc/net/unix"


@cache
def system_secrets() -> MaskedPaths:
    """Files and folders of /etc that not everybody may read but this user can, to be masked."""
    files: list[str] = []
    folders: list[str] = []
    for folder, names, plain in os.walk("/etc"):
        shut = [name for name in names if not _world_readable(os.path.join(folder, name), 0o005)]
        folders += [os.path.join(folder, name) for name in shut]
        names[:] = [name for name in names if name not in shut]
        paths = [os.path.join(folder, name) for name in plain]
        files += [path for path in paths if not _world_readable(path, 0o004) and os.stat(path).st_size]
    return MaskedPaths(
        tuple(path for path in files if os.access(path, os.R_OK)),
        tuple(path for path in folders if os.access(path, os.X_OK)),
    )


def _world_readable(path: str, bits: int) -> bool:
    """Whether everybody has read permission for a path; a link counts as readable."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    return stat.S_ISLNK(mode) or mode & bits == bits


def visible_sockets(*folders: str) -> list[str]:
    """Sockets of running programs in folders that a command sees: a read-only mount does not block them."""
    try:
        rows = Path(_UNIX_SOCKETS).read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return []
    seen = tuple(f"{tree.rstrip('/')}/" for tree in (*folders, *SANDBOX_SYSTEM_FOLDERS))
    paths = {row.split(None, 7)[7] for row in rows if row.count(" /")}
    return sorted(path for path in paths if path.startswith(seen) and os.path.exists(path))


def private_masks(root: str, private: Iterable[str]) -> MaskedPaths:
    """The masks for the private paths of a workspace, links resolved; targets outside need none."""
    files: list[str] = []
    folders: list[str] = []
    shown, real_folder = tuple(shown_folders(root)), cache(os.path.realpath)
    for path in private:
        above, name = os.path.split(path)
        real = os.path.join(real_folder(above), name)
        real = os.path.realpath(real) if os.path.islink(real) else real
        if path_in_folders(real, shown) in {None, "."}:
            continue
        if os.path.isdir(real):
            folders.append(real)
        elif os.path.exists(real):
            files.append(real)
    # What lies in a masked folder is gone with it.
    shut = tuple(f"{folder}/" for folder in folders)
    return MaskedPaths(
        tuple(sorted({path for path in files if not path.startswith(shut)})),
        tuple(sorted({path for path in folders if not path.startswith(shut)})),
    )


def limit_masks(masks: MaskedPaths, root: str, *, most: int) -> tuple[MaskedPaths, tuple[str, ...]]:
    """Reduce the masks to at most `most` by hiding whole folders with many private files, with notes about it."""
    files, folders = list(masks.files), list(masks.folders)
    notes = []
    while len(files) + len(folders) > most:
        held = Counter(os.path.dirname(path) for path in files)
        for folder in workspace_folders(root).values():
            held.pop(folder, None)
        if not held:
            raise HostError(
                f"The workspace holds private files in {len(files) + len(folders):,} places; at most {most:,} "
                "can be hidden from a command that writes to it directly. Run it without `live`, move them into "
                "one folder, or say in the policy that they are not private."
            )
        shut = held.most_common(1)[0][0]
        files = [path for path in files if not path.startswith(f"{shut}/")]
        folders = [*(path for path in folders if not path.startswith(f"{shut}/")), shut]
        notes.append(
            f"`{path_in_workspace(shut, root)}` is hidden from it whole: it holds too many private files."
        )
    return MaskedPaths(tuple(files), tuple(folders)), tuple(notes)


def hidden_private_paths(
    root: str, found: Iterable[str], private: Sequence[PathGlobs], is_open: PathPredicate
) -> list[str]:
    """The private paths found, without those that may be seen; of a folder with some of them, its other files.

    A path may be seen if it is an exception to each rule that covers the folder, or if `is_open` says so.
    """
    closed: list[str] = []
    places = tuple(shown_folders(root))

    def shows(path: str) -> bool:
        inside = path_in_folders(path, places) or os.path.relpath(path, root)
        return not any_covers(private, inside) or is_open(inside)

    for path in found:
        if not os.path.isdir(path) or os.path.islink(path):
            closed += [] if shows(path) else [path]
            continue
        files = list(islice(_files_below(path), _MOST_LOOKED_AT + 1))
        shut = [each for each in files if not shows(each)]
        whole = len(shut) == len(files) or len(files) > _MOST_LOOKED_AT
        closed += [path] if whole else shut
    return closed


def _files_below(folder: str) -> Iterator[str]:
    for above, _, names in os.walk(folder):
        yield from (os.path.join(above, name) for name in names)


def read_only_paths(root: str, read_only: Iterable[str]) -> list[str]:
    """The existing paths of a workspace that must not be written, including a linked worktree's git data."""
    found = []
    for path in read_only:
        real = os.path.realpath(path)
        if os.path.exists(real) and path_in_workspace(real, root) not in {None, "."}:
            found.append(real)
    records = filter(None, map(_worktree_record, workspace_folders(root).values()))
    # Where the repository is in the workspace itself, its git data lands by the rules of any repository.
    return [*sorted(found), *(record for record in records if path_in_workspace(record, root) is None)]


def with_aliases(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """Absolute paths, each followed by that at which it is shown in a workspace of several folders."""
    shown = dict(shown_folders(root)) if "" not in workspace_folders(root) else {}
    places: dict[str, None] = {}
    for path in paths:
        places[path] = None
        inside = path_in_workspace(path, root) if shown else None
        if inside not in {None, "."}:
            places[os.path.join(shown[""], str(inside))] = None
    return tuple(places)


def _worktree_record(root: str) -> str | None:
    """The git folder of a linked worktree, if the repository names the worktree too; else None."""
    record = worktree_git_folder(Path(root, ".git"))
    real = os.path.realpath(record.parents[1]) if record else ""
    return real if real and os.path.isfile(f"{real}/HEAD") else None
