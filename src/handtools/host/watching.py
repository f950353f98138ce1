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
from handtools.host.marking import file_mark, is_seen, look, seen_mark

PATIENCE = 0.2
"""Seconds to wait for a writer that has the file open."""
_PAUSE = 0.004
_CHUNK_BYTES = 1 << 17


class Watched:
    """A file or a link as it was found; `intact` says whether it is still so."""

    __slots__ = ("_leased", "_name", "fd", "found", "held", "node")

    def __init__(self, name: str, node: Node, found: os.stat_result, fd: int | None) -> None:
        self._name = name
        self._leased = False
        self.held = False
        self.node = node
        self.found = found
        self.fd = fd

    @classmethod
    def find(cls, folder: Folder, name: str, node: Node) -> Self | None:
        """Open a name if it can hold this node, going by kind, size and mode; else None."""
        try:
            found, fd = folder.open_found(name)
        except FileNotFoundError:
            return None
        except PermissionError:
            if node.held is None:
                raise
            found, fd = folder.stat(name), None  # what is only moved need not be readable
        watched = cls(name, node, found, fd)
        alike = kind_of(found.st_mode) == node.kind and watched._fits(found)
        if alike and (node.kind != "link" or folder.link_target(name) == node.data):
            return watched
        watched.close()
        return None

    @classmethod
    def take(cls, folder: Folder, name: str, node: Node) -> Self | None:
        """Open and hold a name if it holds just this node; else None. `Busy` while it is being written."""
        watched = cls.find(folder, name, node)
        return watched if watched and watched.hold(folder) else None

    def hold(self, folder: Folder) -> bool:
        """Hold writers back and compare; lets go and answers no when anything differs."""
        self.held = True
        if self.fd is None:
            return self._holds_unread() and self.holds_tree_at(folder, self._name)
        try:
            self._leased = _lease(self.fd, self._name)
            now = os.fstat(self.fd)
            # The mode is copied to the new file: one that changed since must not be lost.
            same = now.st_mode == self.found.st_mode and self._fits(now) and self._holds_bytes()
        except BaseException:
            self.close()
            raise
        if not same:
            self.close()
        return same

    def _fits(self, found: os.stat_result) -> bool:
        node = self.node
        return (node.mode is None or node.mode == stat.S_IMODE(found.st_mode)) and (
            node.kind != "file" or found.st_size == node.bytes
        )

    def is_at(self, folder: Folder, name: str) -> bool:
        """Whether the name stands for the very thing that was watched."""
        found = folder.find(name)
        return found is not None and os.path.samestat(found, self.found)

    def intact(self) -> bool:
        """Whether nobody wrote, or waits to write."""
        if self.fd is None:
            return True  # a link can't be changed in place, a folder is looked at where it went
        return syscalls.lease_holds(self.fd) if self._leased else self._holds_bytes()

    def close(self) -> None:
        """Let go."""
        if self.fd is None:
            return
        fd, self.fd = self.fd, None
        try:
            if self._leased:
                syscalls.end_lease(fd)
        finally:
            os.close(fd)

    def holds_tree_at(self, folder: Folder, name: str) -> bool:
        """Whether a folder still has all that it should have, and no more."""
        if self.node.kind != "folder" or self.node.held is None:
            return True
        return self.node.same(look(folder, name, like=self.node))

    def _holds_unread(self) -> bool:
        held = self.node.held
        return not held or self.node.kind != "file" or held.mark == seen_mark(self.found)

    def _holds_bytes(self) -> bool:
        if self.fd is None:
            return False
        held, data = self.node.held, self.node.data
        if held is None:
            return holds(self.fd, data)
        if file_mark(self.fd, os.fstat(self.fd), like=held.mark) != held.mark:
            return False
        # A look from outside can miss a write; where the bytes are at hand they are what counts.
        return not data or not is_seen(held.mark) or holds(self.fd, data)


class Veil:
    """Over a new file from just before it is in sight until we know that it may be: openers wait so long.

    Without it a program that replaced the old file in the last instant could read ours in the next, before theirs
    is back, and build on it: their own bytes would be lost to them.
    """

    __slots__ = ("_fd",)

    def __init__(self, folder: Folder, name: str) -> None:
        self._fd: int | None = None
        try:
            fd = folder.open_made(name)
        except PermissionError:  # a new file that its owner may not write to
            return
        if syscalls.veil(fd):
            self._fd = fd
        else:
            os.close(fd)

    def show(self, folder: Folder, name: str) -> bytes | None:
        """Have readers that wait find what is at a name now instead of our bytes; the bytes they then find."""
        if self._fd is None or syscalls.waiting(self._fd) != "readers":
            return None
        found, source = folder.open_found(name)
        if source is None:
            return None
        try:
            data = read_at(source, found.st_size, 0)
        finally:
            os.close(source)
        os.truncate(self._fd, 0)
        os.pwrite(self._fd, data, 0)
        return data

    def lift(self) -> None:
        """Let everyone see."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            syscalls.end_lease(fd)
        finally:
            os.close(fd)


def holds(fd: int, data: bytes) -> bool:
    """Whether a file holds these bytes and no more."""
    if len(data) < _CHUNK_BYTES:
        return read_at(fd, len(data) + 1, 0) == data
    start = 0
    # In pieces that stay in the processor's cache, and without a copy of what they are compared with.
    while part := read_at(fd, _CHUNK_BYTES, start):
        if not data.startswith(part, start):
            return False
        start += len(part)
    return start == len(data)


def read_at(fd: int, size: int, start: int) -> bytes:
    """Some bytes of a file from a position."""
    if hasattr(os, "pread"):
        return os.pread(fd, size, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size)


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
