"""Walking: what folders hold, with the ignore files on the way, no link followed."""

import contextlib
import heapq
import math
import os
import stat
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from anyio import from_thread, to_thread

from handtools.core.changes import Kind
from handtools.core.errors import WrongKind
from handtools.core.searching import Admit, Entry, Gaps, Paths, Scope, Tree, Wanted
from handtools.host import syscalls
from handtools.host.faults import fault
from handtools.host.folders import Folder, kind_of
from handtools.host.mounts import is_near
from handtools.host.resolving import Root
from handtools.host.staging import is_temporary
from handtools.text.ignoring import IGNORE_FILES, Ignores, leaves_out
from handtools.text.selecting import Selection

IGNORE_FILE_BYTES = 1 << 20
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
QUICK_NAMES = 2_000
"""Folders up to this size are looked into without a thread, where the disk is near."""
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_KIND_BITS = stat.S_IFMT(0o177777)
_tuple = tuple.__new__
"""Makes an entry in half the time."""
_EXCLUDES = IGNORE_FILES[-1]
"""The weakest of them is git's own, at the top of a repository only."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What one folder shows: folders before the rest, each by name."""

    entries: list[Entry]
    ignores: Ignores
    left_out: int
    ignored: int


class Walker:
    """Walks below one folder; each folder is opened by its handle, and none is held."""

    def __init__(self, root: Path) -> None:
        self._root = Root(root, kernel=True)

    async def paths(self, scope: Scope, *, wanted: Wanted, most: int, admit: Admit) -> Paths:
        """The newest paths below a folder, folders among them, and how many there are."""
        return await to_thread.run_sync(self._paths, scope, wanted, most, admit)

    async def tree(self, scope: Scope, *, depth: int, most: int, admit: Admit) -> Tree:
        """What a folder holds, level by level until enough is shown."""
        if depth == 1 and self._near:
            try:
                return self._tree(scope, depth, most, admit, _Watch(scope.timeout, names=QUICK_NAMES))
            except _TooManyNames:
                pass
        return await to_thread.run_sync(
            self._tree, scope, depth, most, admit, _Watch(scope.timeout, threaded=True)
        )

    @cached_property
    def _near(self) -> bool:
        return is_near(self._root.real)

    def newest(self, paths: Sequence[str], most: int) -> list[Entry]:
        """The newest of some paths; those whose time can't be had come last, by name."""
        with Folder.at(self._root.real) as root:
            stated = _stated(root, paths)
        return [_dated(*found) for found in heapq.nsmallest(most, stated)]

    def _paths(self, scope: Scope, wanted: Wanted, most: int, admit: Admit) -> Paths:
        asked = Selection(
            scope.include,
            root=scope.root,
            case_sensitive=scope.case_sensitive,
            hidden=scope.hidden,
            itself=True,
        )
        found: list[str] = []
        watch = _Watch(scope.timeout, threaded=True)
        waiting = deque([(scope.root, self._above(scope))])
        while waiting and not watch.is_over():
            folder, ignores = waiting.popleft()
            look = self._look(folder, ignores, scope, admit, most=None, watch=watch)
            for entry in look.entries:
                if entry.kind == "folder":
                    waiting.append((entry.path, look.ignores))
                if (wanted == "any" or entry.kind == "folder") and asked.takes(entry.path):
                    found.append(entry.path)
        return Paths(tuple(self.newest(found, most)), len(found), watch.gaps(unfinished=bool(waiting)))

    def _tree(self, scope: Scope, depth: int, most: int, admit: Admit, watch: "_Watch") -> Tree:
        looks: dict[str, _Look] = {}
        left, unvisited = most, 0
        waiting = deque([(scope.root, self._above(scope), 1)])
        while waiting:
            folder, ignores, level = waiting.popleft()
            if left <= 0 or watch.is_over():
                unvisited += 1
                continue
            look = looks[folder] = self._look(folder, ignores, scope, admit, most=left, watch=watch)
            left -= len(look.entries)
            if level < depth:
                folders = [entry.path for entry in look.entries if entry.kind == "folder"]
                waiting.extend((path, look.ignores, level + 1) for path in folders)
        entries = {folder: look.entries for folder, look in looks.items()}
        return Tree(
            entries.pop(scope.root, ()),
            entries,
            left_out=sum(look.left_out for look in looks.values()),
            unvisited=unvisited,
            ignored=sum(look.ignored for look in looks.values()),
            gaps=watch.gaps(unfinished=False),
        )

    def _above(self, scope: Scope) -> Ignores:
        """The ignore files between the workspace's folder and the root of the walk."""
        ignores = Ignores()
        if scope.ignored or scope.root == ".":
            return ignores
        parts = scope.root.split("/")
        for depth in range(len(parts)):
            path = "/".join(parts[:depth])
            with self._root.folder(path) as folder:
                ignores = ignores.into(path, _ignore_texts(folder, set(folder.names()), path))
        return ignores

    def _look(
        self, path: str, ignores: Ignores, scope: Scope, admit: Admit, *, most: int | None, watch: "_Watch"
    ) -> _Look:
        """Look into one folder; one that can't be opened shows nothing, and is counted unless it is the root."""
        inside = "" if path == "." else path
        try:
            with self._root.folder(inside) as folder, _scanned(folder, watch.names) as found:
                if not scope.ignored:
                    ignores = ignores.into(inside, _ignore_texts(folder, found.keys(), inside))
                prefix = f"{inside}/" if inside else ""
                folders, others, ignored = _kept(found, prefix, ignores, scope)
                shown = admit(
                    [prefix + name + "/" for name in folders] + [prefix + name for name in others]
                )
                told = _entries if most is None else _sized
                entries = list(told(shown[:most], found, len(prefix)))
        except OSError as error:
            if path == scope.root:
                raise fault(error, path) from error
            watch.skip(f"{path}: {error.strerror}")
            return _Look([], ignores, 0, 0)
        return _Look(entries, ignores, len(shown) - len(entries), ignored)


class _TooManyNames(Exception):
    """More than can be looked at without a thread."""


class _Watch:
    """How long a walk has gone on, and what it had to skip."""

    def __init__(self, seconds: float, *, threaded: bool = False, names: int | None = None) -> None:
        self.names = names
        """How many names a folder may have before the walk is given up."""
        self._threaded = threaded
        self._end = time.monotonic() + seconds
        self._skipped: list[str] = []
        self._over = False

    def is_over(self) -> bool:
        """Whether time is up; raises when the call was cancelled."""
        if self._threaded:
            from_thread.check_cancelled()
        self._over = self._over or time.monotonic() > self._end
        return self._over

    def skip(self, reason: str) -> None:
        """A folder could not be opened."""
        self._skipped.append(reason)

    def gaps(self, *, unfinished: bool) -> Gaps:
        """What was left out."""
        example = self._skipped[0] if self._skipped else ""
        return Gaps(timed_out=self._over or unfinished, unreadable=len(self._skipped), example=example)


def _kept(
    found: dict[str, os.DirEntry[str]], prefix: str, ignores: Ignores, scope: Scope
) -> tuple[list[str], list[str], int]:
    """The names of folders and of the rest that a walk looks at; and how many it passes by on purpose."""
    folders: list[str] = []
    others: list[str] = []
    names = sorted(found)
    for name in names:
        (folders if found[name].is_dir(follow_symlinks=False) else others).append(name)
    suspects = ignores.suspects([prefix + name for name in names] if prefix else names)
    doubtful = {name[len(prefix) :] for name in suspects}.union(scope.skip.intersection(folders))
    # No other names begin with a dot: the slash is the sign after it.
    doubtful.update(names[bisect_left(names, ".") : bisect_left(names, "/")])
    if not doubtful:
        return folders, others, 0
    unseen = {name for name in doubtful if name in VERSION_CONTROL or is_temporary(name)}
    passed = set()
    for name in doubtful - unseen:
        folder = found[name].is_dir(follow_symlinks=False)
        if (folder and name in scope.skip) or leaves_out(
            ignores, prefix + name, folder=folder, hidden=scope.hidden
        ):
            passed.add(name)
    gone = unseen | passed
    return [n for n in folders if n not in gone], [n for n in others if n not in gone], len(passed)


def _entries(shown: Sequence[str], found: dict[str, os.DirEntry[str]], start: int) -> Iterator[Entry]:
    """What each path is."""
    for path in shown:
        if path[-1] == "/":
            yield Entry(path[:-1], "folder")
        else:
            yield Entry(path, _kind(found[path[start:]]))


def _sized(shown: Sequence[str], found: dict[str, os.DirEntry[str]], start: int) -> list[Entry]:
    """The same with sizes; a loop without calls of our own, as there may be very many."""
    entries = []
    for path in shown:
        if path[-1] == "/":
            entries.append(Entry(path[:-1], "folder"))
            continue
        entry = found[path[start:]] if start else found[path]
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            entries.append(Entry(path, _kind(entry)))
        else:
            kind = _KINDS.get(facts.st_mode & _KIND_BITS)
            entries.append(_tuple(Entry, (path, kind or "other", facts.st_size, None)))
    return entries


def _kind(entry: os.DirEntry[str]) -> Kind | Literal["other"]:
    if entry.is_symlink():
        return "link"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


@contextlib.contextmanager
def _scanned(folder: Folder, most: int | None) -> Iterator[dict[str, os.DirEntry[str]]]:
    """The names in a folder; their facts can be had as long as the block lasts."""
    if folder.fd is None:
        with os.scandir(folder.path) as scan:
            yield _named(scan, most)
        return
    fd = os.open(".", os.O_RDONLY | syscalls.DIRECTORY | syscalls.PLAIN, dir_fd=folder.fd)
    try:
        with os.scandir(fd) as scan:
            yield _named(scan, most)
    finally:
        os.close(fd)


def _named(scan: Iterable[os.DirEntry[str]], most: int | None) -> dict[str, os.DirEntry[str]]:
    if most is None:
        return {entry.name: entry for entry in scan}
    found = {entry.name: entry for entry in islice(scan, most + 1)}
    if len(found) > most:
        raise _TooManyNames
    return found


def _ignore_texts(folder: Folder, names: Collection[str], path: str) -> dict[str, str]:
    """The ignore files of a folder, as far as they can be read; bytes that are no text match nothing."""
    present = [name for name in IGNORE_FILES if name in names]
    if not path and ".git" in names:
        present.append(_EXCLUDES)
    texts = {}
    for name in present:
        with contextlib.suppress(OSError, WrongKind):
            texts[name] = _text_of(folder, name)
    return texts


def _text_of(folder: Folder, name: str) -> str:
    first, _, rest = name.partition("/")
    if rest:
        with folder.child(first) as below:
            return _text_of(below, rest)
    fd = folder.open_file(name)
    try:
        return os.read(fd, IGNORE_FILE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _stated(root: Folder, paths: Sequence[str]) -> list[tuple[float, str, int | None, int | None]]:
    """What sorts each path, newest first, then by name; a loop without calls, as there may be very many."""
    stated: list[tuple[float, str, int | None, int | None]] = []
    look, handle, above = os.stat, root.fd, "" if root.fd is not None else f"{root.path}/"
    for path in paths:
        try:
            found = look(above + path, dir_fd=handle, follow_symlinks=False)
        except OSError:
            stated.append((math.inf, path, None, None))
        else:
            stated.append((-found.st_mtime, path, found.st_mode, found.st_size))
    return stated


def _dated(age: float, path: str, mode: int | None, size: int | None) -> Entry:
    if mode is None:
        return Entry(path, "other")
    kind = kind_of(mode) or "other"
    return Entry(path, kind, None if kind == "folder" else size, -age)
