"""Walking: what folders hold, with the ignore files on the way, no link followed."""

import contextlib
import heapq
import math
import os
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import from_thread, to_thread

from handtools.core.errors import WrongKind
from handtools.core.searching import Admit, Branch, Entry, Gaps, Paths, Scope, Tree, Wanted
from handtools.host import syscalls
from handtools.host.faults import fault
from handtools.host.folders import Folder, kind_of
from handtools.host.resolving import Root
from handtools.host.staging import is_temporary
from handtools.text.ignoring import IGNORE_FILES, Ignores, leaves_out
from handtools.text.selecting import Selection

IGNORE_FILE_BYTES = 1 << 20
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
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
        return await to_thread.run_sync(self._tree, scope, depth, most, admit)

    def newest(self, paths: Sequence[str], most: int) -> list[Entry]:
        """The newest of some paths; those whose time can't be had come last, by name."""
        with Folder.at(self._root.real) as root:
            stated = _stated(root, paths)
        return [_dated(*found) for found in heapq.nsmallest(most, stated)]

    def _paths(self, scope: Scope, wanted: Wanted, most: int, admit: Admit) -> Paths:
        asked = Selection(
            scope.include, root=scope.root, case_sensitive=scope.case_sensitive, hidden=scope.hidden
        )
        found: list[str] = []
        watch = _Watch(scope.timeout)
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

    def _tree(self, scope: Scope, depth: int, most: int, admit: Admit) -> Tree:
        looks: dict[str, _Look] = {}
        watch = _Watch(scope.timeout)
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
        return Tree(
            _branches(scope.root, looks),
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
            with self._root.folder(inside) as folder, _scanned(folder) as found:
                if not scope.ignored:
                    ignores = ignores.into(inside, _ignore_texts(folder, found.keys(), inside))
                prefix = f"{inside}/" if inside else ""
                kept, ignored = _kept(found, prefix, ignores, scope)
                shown = admit([prefix + name + "/" * (kind == "folder") for name, kind in kept])
                entries = [
                    _entry(each, found, len(prefix), stated=most is not None) for each in shown[:most]
                ]
        except OSError as error:
            if path == scope.root:
                raise fault(error, path) from error
            watch.skip(f"{path}: {error.strerror}")
            return _Look([], ignores, 0, 0)
        return _Look(entries, ignores, len(shown) - len(entries), ignored)


class _Watch:
    """How long a walk has gone on, and what it had to skip."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._skipped: list[str] = []
        self._over = False

    def is_over(self) -> bool:
        """Whether time is up; raises when the call was cancelled."""
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
) -> tuple[list[tuple[str, str]], int]:
    """The names a walk looks at and their kinds, folders first; and how many it passes by on purpose."""
    suspects = ignores.suspects([prefix + name for name in found])
    folders: list[str] = []
    others: list[str] = []
    ignored = 0
    for name in sorted(found):
        entry = found[name]
        folder = entry.is_dir(follow_symlinks=False)
        if name[0] == "." and (name in VERSION_CONTROL or is_temporary(name)):
            continue
        path = prefix + name
        if path in suspects:
            passed = leaves_out(ignores, path, folder=folder, hidden=scope.hidden)
        else:
            passed = name[0] == "." and not scope.hidden
        if passed or (folder and name in scope.skip):
            ignored += 1
        else:
            (folders if folder else others).append(name)
    return [(name, "folder") for name in folders] + [(name, "") for name in others], ignored


def _entry(shown: str, found: dict[str, os.DirEntry[str]], start: int, *, stated: bool) -> Entry:
    if shown[-1] == "/":
        return Entry(shown[:-1], "folder")
    entry = found[shown[start:]]
    if stated:
        with contextlib.suppress(OSError):
            facts = entry.stat(follow_symlinks=False)
            return Entry(shown, kind_of(facts.st_mode) or "other", facts.st_size, facts.st_mtime)
    if entry.is_symlink():
        return Entry(shown, "link")
    return Entry(shown, "file" if entry.is_file(follow_symlinks=False) else "other")


def _branches(folder: str, looks: dict[str, _Look]) -> tuple[Branch, ...]:
    return tuple(
        Branch(entry, _branches(entry.path, looks) if entry.path in looks else None)
        for entry in looks[folder].entries
    )


@contextlib.contextmanager
def _scanned(folder: Folder) -> Iterator[dict[str, os.DirEntry[str]]]:
    """The names in a folder; their facts can be had as long as the block lasts."""
    if folder.fd is None:
        with os.scandir(folder.path) as scan:
            yield {entry.name: entry for entry in scan}
        return
    fd = os.open(".", os.O_RDONLY | syscalls.DIRECTORY | syscalls.PLAIN, dir_fd=folder.fd)
    try:
        with os.scandir(fd) as scan:
            yield {entry.name: entry for entry in scan}
    finally:
        os.close(fd)


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
    stat, handle, above = os.stat, root.fd, "" if root.fd is not None else f"{root.path}/"
    for path in paths:
        try:
            found = stat(above + path, dir_fd=handle, follow_symlinks=False)
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
