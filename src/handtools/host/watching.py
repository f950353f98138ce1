"""Watching: hold the file we compare, and notice any other writer until it is let go.

A read lease makes the kernel hold back whoever opens the file for writing and tell us; without a lease
(not the owner, another file system, another system) the bytes are compared a second time instead.
"""

import os
import stat
import time
from typing import Self

from handtools.core.changes import Node
from handtools.core.errors import Busy
from handtools.host import syscalls
from handtools.host.folders import Folder, kind_of

PATIENCE = 0.2
"""Seconds to wait for a writer that has the file open."""
_PAUSE = 0.004
_CHUNK_BYTES = 1 << 20


class Watched:
    """A file or a link as it was found; `intact` says whether it is still so."""

    __slots__ = ("_fd", "_leased", "found", "node")

    def __init__(self, found: os.stat_result, node: Node, fd: int | None, *, leased: bool) -> None:
        self.found = found
        self.node = node
        self._fd = fd
        self._leased = leased

    @classmethod
    def take(cls, folder: Folder, name: str, node: Node) -> Self | None:
        """Watch a name if it holds just this node; None if it holds anything else. `Busy` while it is written."""
        found = folder.find(name)
        if found is None or kind_of(found.st_mode) != node.kind:
            return None
        if node.kind == "link":
            same = folder.link_target(name) == node.data
            return cls(found, node, None, leased=False) if same else None
        if node.kind == "folder":
            return cls(found, node, None, leased=False) if _mode_fits(found, node) else None
        if found.st_size != len(node.data):
            return None
        return cls._take_file(folder, name, node)

    @classmethod
    def _take_file(cls, folder: Folder, name: str, node: Node) -> Self | None:
        fd = folder.open_file(name)
        try:
            leased = _lease(fd, name)
            watched = cls(os.fstat(fd), node, fd, leased=leased)
            if _mode_fits(watched.found, node) and watched._holds_bytes():
                return watched
        except BaseException:
            os.close(fd)
            raise
        watched.close()
        return None

    def is_at(self, folder: Folder, name: str) -> bool:
        """Whether the name stands for the very thing that was watched."""
        found = folder.find(name)
        return found is not None and os.path.samestat(found, self.found)

    def intact(self) -> bool:
        """Whether nobody wrote, or waits to write."""
        if self._fd is None:
            return True  # a link can't be changed in place, a folder is checked when it is removed
        return syscalls.lease_holds(self._fd) if self._leased else self._holds_bytes()

    def close(self) -> None:
        """Let go."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            if self._leased:
                syscalls.end_lease(fd)
        finally:
            os.close(fd)

    def _holds_bytes(self) -> bool:
        return self._fd is not None and holds(self._fd, self.node.data)


def holds(fd: int, data: bytes) -> bool:
    """Whether a file holds these bytes and no more."""
    if len(data) < _CHUNK_BYTES:
        return read_at(fd, len(data) + 1, 0) == data
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK_BYTES):
        part = view[start : start + _CHUNK_BYTES]
        if read_at(fd, len(part), start) != part:
            return False
    return not read_at(fd, 1, len(data))


def read_at(fd: int, size: int, start: int) -> bytes:
    """Some bytes of a file from a position."""
    if hasattr(os, "pread"):
        return os.pread(fd, size, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size)


def _mode_fits(found: os.stat_result, node: Node) -> bool:
    return node.mode is None or node.mode == stat.S_IMODE(found.st_mode)


def _lease(fd: int, name: str) -> bool:
    deadline = time.monotonic() + PATIENCE
    while (answer := syscalls.lease(fd)) == "writer":
        if time.monotonic() > deadline:
            raise Busy(
                f"Another program has `{name}` open for writing.",
                hint="Try again when it is done; nothing was changed.",
            )
        time.sleep(_PAUSE)
    return answer == "held"
