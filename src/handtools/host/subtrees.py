"""Subtrees: folders below an open one, however deep, and everything in them, no link followed.

A command may nest folders deeper than Python recurses, deeper than a process may hold them open, and deeper than
the kernel takes as one path. So walks keep paths and not handles: each folder is opened from the top in its turn.
"""

import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Self

from handtools.host import syscalls
from handtools.host.folders import ENTERED, LISTED, Folder

STRETCH_BYTES = 4000
"""As much of a path as is handed to the kernel at once: it takes no more than 4,096 bytes."""
KEPT = 64
"""Folders that a walk keeps open."""
_RACES = 32
_LINKLESS = syscalls.BENEATH | syscalls.NO_LINKS
_GO_OURSELVES = {errno.EXDEV, errno.EAGAIN, errno.EPERM, errno.ENOSYS, errno.ENAMETOOLONG}
"""No such call, or one that is forbidden; a name of great length: then we go part by part."""
_PASSED_BY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}
"""A folder that is gone, is something else by now, or can't be looked into."""


class Found(NamedTuple):
    """Something below a folder, while the folder that holds it is open."""

    path: str
    folder: Folder
    name: str
    facts: os.stat_result


class Subtree:
    """Folders below an open one, by their paths. Some are kept open: the next one asked for is mostly a step away.

    A folder that it gives is its own, and good until `KEPT` others were asked for.
    """

    def __init__(self, top: Folder, *, flags: int = LISTED) -> None:
        self._top = top
        self._flags = flags
        self._open: dict[str, Folder] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()

    def folder(self, path: str) -> Folder:
        """The folder at a path, to which no link leads."""
        known = self._open.get(path)
        if known is not None:
            return known
        steps = [path]
        while steps[-1] and len(steps) < KEPT // 2 and steps[-1] not in self._open:
            steps.append(steps[-1].rpartition("/")[0])
        folder = self._open.get(steps[-1])
        if folder is None:
            folder = self._keep(steps[-1], inner(self._top, steps[-1], flags=self._flags))
        for step in reversed(steps[:-1]):
            name = step.rpartition("/")[2]
            folder = self._keep(step, open_child(folder, name, self._flags))
        return folder

    def _keep(self, path: str, folder: Folder) -> Folder:
        self._open[path] = folder
        if len(self._open) > KEPT:
            self._open.pop(next(iter(self._open))).close()
        return folder


def everything_below(top: Folder) -> Iterator[Found]:
    """All that is in a folder and in those below it, each folder before what it holds."""
    waiting = [""]
    with Subtree(top) as subtree:
        while waiting:
            above = waiting.pop()
            try:
                folder = subtree.folder(above)
            except OSError as error:
                if error.errno not in _PASSED_BY or not above:
                    raise
                continue
            for name in sorted(folder.names() if folder.fd is None else os.listdir(folder.fd)):
                facts = folder.find(name)
                if facts is not None:
                    path = joined(above, name)
                    yield Found(path, folder, name, facts)
                    if stat.S_ISDIR(facts.st_mode):
                        waiting.append(path)


def joined(above: str, name: str) -> str:
    """The path of a name in a folder."""
    return f"{above}/{name}" if above else name


def inner(top: Folder, path: str, *, flags: int = ENTERED) -> Folder:
    """Open a folder below another that stays open; for the other itself, once more."""
    if top.fd is None:
        return below(Folder.at(top.path), path, flags=flags)
    if not path:
        return Folder(os.open(".", flags, dir_fd=top.fd), top.path)
    return below(Folder(os.dup(top.fd), top.path), path, flags=flags)


def below(start: Folder, path: str, *, flags: int = ENTERED, kernel: bool = True) -> Folder:
    """Open a folder below another, however deep, no link followed: ELOOP at the first. Closes the start."""
    parts = path.split("/") if path else []
    while parts:
        with start:
            count, inner = _stretch(start, parts, flags) if kernel and syscalls.confines() else (0, None)
            if inner is None:
                count, inner = 1, open_child(start, parts[0], flags if len(parts) == 1 else ENTERED)
        start, parts = inner, parts[count:]
    return start


def _stretch(start: Folder, parts: list[str], flags: int) -> tuple[int, Folder | None]:
    """Open as much of a path as the kernel takes at once; None when it won't."""
    count, size = len(parts), sum(map(len, parts)) * 4
    if size > STRETCH_BYTES:
        count = size = 0
        for part in parts:
            size += len(os.fsencode(part)) + 1
            if size > STRETCH_BYTES:
                break
            count += 1
    names = "/".join(parts[:count])
    fd = beneath(start, names, flags if count == len(parts) else ENTERED) if count else None
    return count, None if fd is None else Folder(fd, os.path.join(start.path, names))


def open_child(folder: Folder, name: str, flags: int) -> Folder:
    """Open a folder in another; ELOOP where the name is a link, whichever way the system puts that."""
    try:
        return folder.child(name, flags=flags)
    except NotADirectoryError:
        if is_link(folder, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def beneath(root: Folder, path: str, flags: int) -> int | None:
    """Have the kernel open a path through no link at all (ELOOP); None when it can't, and we go ourselves."""
    if root.fd is None:
        return None
    for _ in range(_RACES):
        try:
            return syscalls.openat2(root.fd, path, flags, _LINKLESS)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # a rename somewhere on the way, at this very moment
                continue
            if error.errno in _GO_OURSELVES:
                return None
            raise
    return None


def is_link(folder: Folder, name: str) -> bool:
    """Whether a name in a folder is a link."""
    found = folder.find(name)
    return found is not None and stat.S_ISLNK(found.st_mode)
