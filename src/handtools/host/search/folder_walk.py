"""Walk folders for trees, listings and the newest paths; ignore files apply. Symlinks are never followed."""

import contextlib
import heapq
import math
import os
import stat
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path

from anyio import from_thread, to_thread

from handtools.core.changes import NodeKind
from handtools.core.errors import SymlinkInPath, ToolError, WrongKind
from handtools.core.search import (
    FolderEntry,
    FolderListing,
    FolderTree,
    FoundPaths,
    PathFilter,
    PathKind,
    SearchGaps,
    SearchScope,
    WantedKind,
)
from handtools.host.files.folder_handle import OPEN_FOLDER_TO_LIST_FLAGS, FolderHandle, kind_of_mode
from handtools.host.files.git_repository import repository_folders_above, worktree_excludes
from handtools.host.files.os_errors import os_error_as_tool_error
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.host.files.syscalls import is_local_filesystem, read_bytes_at
from handtools.host.files.temporary_file import is_temporary_name
from handtools.host.search.ripgrep_process import VERSION_CONTROL_FOLDERS
from handtools.text.search.gitignore import IGNORE_FILES, IgnoreRules, ignored_paths, is_skipped_by_walk
from handtools.text.search.glob import PathSelection

IGNORE_FILE_BYTES = 128 << 10
MAX_ENTRIES_WITHOUT_THREAD = 2_000
"""Folders of up to this many entries are listed without a thread, if the disk is local."""
IGNORE_CHECK_TIMEOUT_SECONDS = 0.5
"""Time limit for reading the ignore files above paths that a command changed."""
_KINDS: dict[int, NodeKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_KIND_BITS = stat.S_IFMT(0o177777)
_BY_NAME = attrgetter("name")
_EXCLUDES = IGNORE_FILES[-1]
"""The ignore file with the lowest priority: git's `info/exclude`, at the top of a repository only."""
_IGNORE_NAMES = (*IGNORE_FILES[:-1], ".git")
"""The ignore files, and `.git`, to look for in folders above the root of a walk."""


@dataclass(frozen=True, slots=True)
class _FolderView:
    """The visible entries of one folder, subfolders first, sorted by name; and its ignore rules."""

    listing: FolderListing
    ignores: IgnoreRules
    left_out: int
    ignored: int


class FolderWalker:
    """Lists folders and trees below a workspace folder; keeps no descriptor open."""

    def __init__(self, root: Path) -> None:
        self._root = WorkspaceRoot(root, kernel=True)

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """Return the most recently modified files and folders below a folder, and how many there are."""
        return await to_thread.run_sync(self._find_paths, scope, wanted, most, admit)

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        """Return the tree below a folder, level by level, up to a depth and a number of entries."""
        if depth == 1 and self._has_only_local_folders:
            try:
                return self._build_tree(
                    scope, depth, most, admit, _WalkLimits(scope.timeout, names=MAX_ENTRIES_WITHOUT_THREAD)
                )
            except _TooManyNames:
                pass
        return await to_thread.run_sync(
            self._build_tree, scope, depth, most, admit, _WalkLimits(scope.timeout, threaded=True)
        )

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that ignore files exclude; ignore files not read within a time limit don't count."""
        return await to_thread.run_sync(self._ignored_paths, paths)

    def _ignored_paths(self, paths: Sequence[str]) -> set[str]:
        limits = _WalkLimits(IGNORE_CHECK_TIMEOUT_SECONDS)

        def enter(ignores: IgnoreRules, path: str) -> IgnoreRules:
            if limits.is_over():
                return ignores
            try:
                ignores = self._from_outside(path, ignores)
                with self._root.open_folder_no_follow(path) as folder:
                    there = [name for name in _IGNORE_NAMES if folder.has(name)]
                    return self._ignore_rules_inside(path, ignores, _ignore_texts(folder, there), there)
            except (OSError, ToolError):
                return ignores  # a folder that is deleted, a symlink or not accessible adds no rules

        return ignored_paths(paths, enter)

    @cached_property
    def _has_only_local_folders(self) -> bool:
        return all(map(is_local_filesystem, self._root.folders.values()))

    def newest_of_paths(self, paths: Sequence[str], most: int) -> list[FolderEntry]:
        """Return the most recently modified of some paths; those without a known time come last, by name.

        The paths may have been listed through a symlink that has just replaced a folder, so they are
        checked again without following symlinks. Missing paths are left out.
        """
        with FolderHandle.at(self._root.real) as root:
            stated = _stat_all(root, paths)
        shown = [_entry_of(*found) for found in heapq.nsmallest(most, stated)]
        folders: dict[str, list[str]] = {}
        for entry in shown:
            folders.setdefault(entry.path.rpartition("/")[0], []).append(entry.path)
        there = {path for folder, paths in folders.items() for path in self._existing_paths(folder, paths)}
        return [entry for entry in shown if entry.path in there]

    def _existing_paths(self, above: str, paths: Sequence[str]) -> Sequence[str]:
        """Return the paths in a folder that exist and are reached without symlinks."""
        try:
            with self._root.open_folder_no_follow(above) as folder:
                return [path for path in paths if folder.find(path.rpartition("/")[2]) is not None]
        except (FileNotFoundError, NotADirectoryError, SymlinkInPath):
            return ()
        except OSError:
            return paths  # a folder that can be listed but not entered

    def _find_paths(
        self, scope: SearchScope, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        selection = PathSelection(
            scope.include,
            root=scope.root,
            case_sensitive=scope.case_sensitive,
            hidden=scope.hidden,
            itself=True,
        )
        found: list[str] = []
        limits = _WalkLimits(scope.timeout, threaded=True)
        waiting = deque([(scope.root, self._ignore_rules_above(scope))])
        while waiting and not limits.is_over():
            folder, ignores = waiting.popleft()
            look = self._list_folder(folder, ignores, scope, admit, most=None, limits=limits)
            for path in look.listing.paths:
                if path[-1] == "/":
                    waiting.append((path[:-1], look.ignores))
                if (wanted == "any" or path[-1] == "/") and selection.takes(path.removesuffix("/")):
                    found.append(path.removesuffix("/"))
        return FoundPaths(
            tuple(self.newest_of_paths(found, most)), len(found), limits.gaps(unfinished=bool(waiting))
        )

    def _build_tree(
        self, scope: SearchScope, depth: int, most: int, admit: PathFilter, limits: "_WalkLimits"
    ) -> FolderTree:
        views: dict[str, _FolderView] = {}
        left, unvisited = most, 0
        waiting = deque([(scope.root, self._ignore_rules_above(scope), 1)])
        while waiting:
            folder, ignores, level = waiting.popleft()
            if left <= 0 or limits.is_over():
                unvisited += 1
                continue
            look = views[folder] = self._list_folder(
                folder, ignores, scope, admit, most=left, limits=limits
            )
            left -= len(look.listing)
            if level < depth:
                folders = [path[:-1] for path in look.listing.paths if path[-1] == "/"]
                waiting.extend((path, look.ignores, level + 1) for path in folders)
        listings = {folder: look.listing for folder, look in views.items()}
        return FolderTree(
            listings.pop(scope.root, FolderListing()),
            listings,
            left_out=sum([look.left_out for look in views.values()]),
            unvisited=unvisited,
            ignored=sum([look.ignored for look in views.values()]),
            gaps=limits.gaps(unfinished=False),
        )

    def _ignore_rules_above(self, scope: SearchScope) -> IgnoreRules:
        """Return the ignore rules of the folders from the workspace down to the root of the walk."""
        ignores = IgnoreRules()
        if scope.ignored:
            return ignores
        parts = [] if scope.root == "." else scope.root.split("/")
        for depth in range(len(parts)):
            path = "/".join(parts[:depth])
            ignores = self._from_outside(path, ignores)
            with self._root.open_folder_no_follow(path) as folder:
                there = [name for name in _IGNORE_NAMES if folder.has(name)]
                ignores = self._ignore_rules_inside(path, ignores, _ignore_texts(folder, there), there)
        return ignores

    def _from_outside(self, path: str, ignores: IgnoreRules) -> IgnoreRules:
        """If the path is a workspace folder, add the rules of the folders above it in its repository."""
        for number, outside in enumerate(self._outer_repository_folders.get(path, ())):
            with contextlib.suppress(OSError), FolderHandle.at(outside) as folder:
                way = os.path.relpath(self._root.folders[path], outside)
                texts = _ignore_texts(folder, _IGNORE_NAMES)
                ignores = ignores.into(path, texts, above=way, repository=not number, top=True)
        return ignores

    def _ignore_rules_inside(
        self, path: str, ignores: IgnoreRules, texts: dict[str, str], names: Collection[str]
    ) -> IgnoreRules:
        """Return the rules that apply inside a folder: those from above, plus its own ignore files."""
        return ignores.into(path, texts, repository=".git" in names, top=path in self._root.folders)

    @cached_property
    def _outer_repository_folders(self) -> dict[str, tuple[str, ...]]:
        """For each workspace folder, the folders above it in its repository, whose ignore files apply."""
        return {name: repository_folders_above(folder) for name, folder in self._root.folders.items()}

    def _list_folder(
        self,
        path: str,
        ignores: IgnoreRules,
        scope: SearchScope,
        admit: PathFilter,
        *,
        most: int | None,
        limits: "_WalkLimits",
    ) -> _FolderView:
        """List one folder. One that can't be opened is counted as skipped, but the root raises an error."""
        inside = "" if path == "." else path
        try:
            with (
                self._root.open_folder_no_follow(inside, flags=OPEN_FOLDER_TO_LIST_FLAGS) as folder,
                _scan(folder) as scan,
            ):
                entries = _FolderEntries(
                    scan,
                    limits.names,
                    f"{inside}/" if inside else "",
                    self._root.folders if not inside else (),
                )
                if not scope.ignored:
                    ignores = self._from_outside(inside, ignores)
                    texts = _ignore_texts(folder, entries.dotted)
                    ignores = self._ignore_rules_inside(inside, ignores, texts, entries.dotted)
                ignored = entries.drop_excluded_entries(ignores, scope)
                left_out = entries.keep(admit, most)
                listing = entries.listing(sized=most is not None)
        except SymlinkInPath as swapped:
            # It was a folder when its name was read; the policy has not checked the symlink's target.
            if path == scope.root:
                raise
            limits.skip(f"{path}: {swapped.message}")
            return _FolderView(FolderListing(), ignores, 0, 0)
        except OSError as error:
            if path == scope.root:
                raise os_error_as_tool_error(error, path) from error
            limits.skip(f"{path}: {error.strerror}")
            return _FolderView(FolderListing(), ignores, 0, 0)
        return _FolderView(listing, ignores, left_out, ignored)


class _TooManyNames(Exception):
    """Raised if a folder has too many entries to be listed without a thread."""


class _WalkLimits:
    """The limits of a walk, and the folders that it had to skip."""

    def __init__(self, seconds: float, *, threaded: bool = False, names: int | None = None) -> None:
        self.names = names
        """The most entries a folder may have before `_TooManyNames` is raised."""
        self._threaded = threaded
        self._end = time.monotonic() + seconds
        self._skipped: list[str] = []
        self._over = False

    def is_over(self) -> bool:
        """Whether the time limit is reached; raises if the call was cancelled."""
        if self._threaded:
            from_thread.check_cancelled()
        self._over = self._over or time.monotonic() > self._end
        return self._over

    def skip(self, reason: str) -> None:
        """Record that a folder could not be opened, with the reason."""
        self._skipped.append(reason)

    def gaps(self, *, unfinished: bool) -> SearchGaps:
        """Return what the walk left out: skipped folders, and whether it was cut short."""
        example = self._skipped[0] if self._skipped else ""
        return SearchGaps(
            timed_out=self._over or unfinished, unreadable=len(self._skipped), example=example
        )


class _FolderEntries:
    """The entries of one folder, filtered step by step; optimized for very large folders."""

    __slots__ = ("_folders", "_others", "_prefix", "_shown", "dotted")

    def __init__(
        self,
        scan: Iterable[os.DirEntry[str]],
        most: int | None,
        prefix: str,
        mounted: Collection[str] = (),
    ) -> None:
        """`mounted` are the names of symlinks that represent workspace folders."""
        entries = sorted(scan if most is None else islice(scan, most + 1), key=_BY_NAME)
        if most is not None and len(entries) > most:
            raise _TooManyNames
        first = bisect_left(entries, ".", key=_BY_NAME)
        # All names that start with a dot sort before "/", the character after the dot.
        dotted = entries[first : bisect_left(entries, "/", first, key=_BY_NAME)]
        self.dotted = {entry.name: entry for entry in dotted}
        self._prefix = prefix
        self._folders: list[os.DirEntry[str]] = []
        self._others: list[os.DirEntry[str]] = []
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False) or entry.name in mounted
            (self._folders if is_folder else self._others).append(entry)
        self._shown: Sequence[str] = ()

    def drop_excluded_entries(self, ignores: IgnoreRules, scope: SearchScope) -> int:
        """Drop hidden, skipped, ignored and internal entries; returns how many, not counting internal ones."""
        prefix = self._prefix
        names = [entry.name for entry in self._folders]
        doubtful = scope.skip.intersection(names).union(self.dotted)
        if ignores:
            names += [entry.name for entry in self._others]
            suspects = ignores.possible_matches([prefix + name for name in names] if prefix else names)
            doubtful |= {name[len(prefix) :] for name in suspects}
        if not doubtful:
            return 0
        gone, passed = set(), 0
        for entry in [entry for entry in chain(self._folders, self._others) if entry.name in doubtful]:
            name, folder = entry.name, entry.is_dir(follow_symlinks=False)
            if name in VERSION_CONTROL_FOLDERS or is_temporary_name(name):
                gone.add(name)
            elif scope.skips(name, folder=folder) or is_skipped_by_walk(
                ignores, prefix + name, folder=folder, hidden=scope.hidden
            ):
                gone.add(name)
                passed += 1
        self._folders = [entry for entry in self._folders if entry.name not in gone]
        self._others = [entry for entry in self._others if entry.name not in gone]
        return passed

    def keep(self, admit: PathFilter, most: int | None) -> int:
        """Keep the entries that `admit` accepts, at most `most`; returns how many accepted ones are dropped."""
        prefix = self._prefix
        paths = [f"{prefix}{entry.name}/" for entry in self._folders]
        paths += [prefix + entry.name for entry in self._others]
        shown = admit(paths)
        if shown is not paths:
            kept = set(shown)
            self._folders = [entry for entry in self._folders if f"{prefix}{entry.name}/" in kept]
            self._others = [entry for entry in self._others if prefix + entry.name in kept]
        self._shown = shown[:most]
        return len(shown) - len(self._shown)

    def listing(self, *, sized: bool) -> FolderListing:
        """Return the kind and, if `sized`, the size of each entry."""
        folders = min(len(self._folders), len(self._shown))
        kinds: list[PathKind] = ["folder"] * folders
        sizes: list[int | None] = [None] * folders
        for entry in self._others[: len(self._shown) - folders]:
            try:
                facts = entry.stat(follow_symlinks=False) if sized else None
            except OSError:
                facts = None
            if facts is None:
                kinds.append(_kind(entry))
                sizes.append(None)
            else:
                kinds.append(_KINDS.get(facts.st_mode & _KIND_BITS, "other"))
                sizes.append(facts.st_size)
        return FolderListing(self._shown, kinds, sizes)


def _kind(entry: os.DirEntry[str]) -> PathKind:
    if entry.is_symlink():
        return "link"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _scan(folder: FolderHandle) -> "os._ScandirIterator[str]":
    """Scan an open folder; its entries can be examined while the iterator is open."""
    return os.scandir(folder.path) if folder.fd is None else os.scandir(folder.fd)


def _ignore_texts(folder: FolderHandle, names: Collection[str]) -> dict[str, str]:
    """Return the texts of a folder's ignore files by name; invalid UTF-8 in them matches no path."""
    present = [name for name in IGNORE_FILES if name in names]
    if ".git" in names:
        present.append(_EXCLUDES)
    texts = {}
    for name in present:
        with contextlib.suppress(OSError, WrongKind):
            texts[name] = _read_text(folder, name)
    if ".git" in names and _EXCLUDES not in texts and (linked := worktree_excludes(folder.path)):
        texts[_EXCLUDES] = linked
    return texts


def _read_text(folder: FolderHandle, name: str) -> str:
    first, _, rest = name.partition("/")
    if rest:
        with folder.child(first) as below:
            return _read_text(below, rest)
    fd = folder.open_file(name)
    try:
        return read_bytes_at(fd, IGNORE_FILE_BYTES, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _stat_all(
    root_handle: FolderHandle, paths: Sequence[str]
) -> list[tuple[float, str, int | None, int | None]]:
    """Stat each path; returns sortable tuples (age, path, mode, size). Optimized for speed."""
    stated: list[tuple[float, str, int | None, int | None]] = []
    look, handle, above = (
        os.stat,
        root_handle.fd,
        "" if root_handle.fd is not None else f"{root_handle.path}/",
    )
    for path in paths:
        try:
            found = look(above + path, dir_fd=handle, follow_symlinks=False)
        except OSError:
            stated.append((math.inf, path, None, None))
        else:
            stated.append((-found.st_mtime, path, found.st_mode, found.st_size))
    return stated


def _entry_of(age: float, path: str, mode: int | None, size: int | None) -> FolderEntry:
    if mode is None:
        return FolderEntry(path, "other")
    kind = kind_of_mode(mode) or "other"
    return FolderEntry(path, kind, None if kind == "folder" else size, -age)
