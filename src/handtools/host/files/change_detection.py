"""Tell whether a file or tree is still the same: by its size and time, by its digest.

Or by a lease that is held on it.

A read lease makes the kernel hold back whoever opens the file for writing and tell us; without a lease (not the
owner, another file system, another system) the bytes are compared a second time instead. ADR 102.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Self

from handtools.core.changes import BackupRef, FolderItem, Node, digest, folder_node, unpack_folder
from handtools.core.errors import Busy
from handtools.host.files import syscalls
from handtools.host.files.folder_handle import FolderHandle, kind_of, walk_tree

HASHED_BYTES = 256 << 10
"""Files up to this size are told by their bytes, larger ones by size and time."""
READ_ALONG_BYTES = 64 << 10
"""Files up to this size are read along, so that they can be shown and merged."""
_STAT_PREFIX = "stat:"
_HASH_CHUNK_BYTES = 1 << 20


def stat_mark(found: os.stat_result) -> str:
    """The mark of a file by what a look from outside shows."""
    return f"{_STAT_PREFIX}{found.st_size}-{found.st_mtime_ns}"


def planned_stat_mark(size: int) -> str:
    """The mark that a file yet to be written will have: its time is given to it."""
    return f"{_STAT_PREFIX}{size}-{time.time_ns()}"


def stat_mark_time(mark: str) -> int:
    """The time, in nanoseconds, of a file with a mark by a look from outside."""
    return int(mark.rpartition("-")[2])


def is_stat_mark(mark: str) -> bool:
    """Whether a mark was made by a look from outside."""
    return mark.startswith(_STAT_PREFIX)


def file_mark(fd: int, found: os.stat_result, *, like: str = "") -> str:
    """The mark of an open file, made the same way as another mark was."""
    if like.startswith(_STAT_PREFIX) or (not like and found.st_size > HASHED_BYTES):
        return stat_mark(found)
    return content_mark(fd)


def content_mark(fd: int) -> str:
    """The digest of an open file, a piece at a time."""
    seen = hashlib.sha256()
    start = 0
    while part := os.pread(fd, _HASH_CHUNK_BYTES, start):
        seen.update(part)
        start += len(part)
    return seen.hexdigest()


def observe_node(folder: FolderHandle, name: str, *, like: Node) -> Node | None:
    """What is at a name, seen as something held like `like`; None when nothing is."""
    found = folder.find(name)
    if found is None:
        return None
    kind, mode = kind_of(found.st_mode), stat.S_IMODE(found.st_mode)
    if kind == "folder":
        if like.kind != "folder" or like.held is None:
            return Node("folder", mode=mode)
        marks = {leaf.path: leaf.mark for leaf in unpack_folder(like.data)}
        return folder_node(list(tree_leaves(folder, name, marks)), mode=mode, ref=like.held.ref)
    if kind == "link":
        target = folder.link_target(name)
        return Node("link", target, None, like.held and BackupRef(like.held.ref, digest(target), 0))
    return _held_file_node(folder, name, like) if kind == "file" else Node("folder")


def _held_file_node(folder: FolderHandle, name: str, like: Node) -> Node:
    ref = like.held.ref if like.held else ""
    try:
        fd = folder.open_file(name)
    except PermissionError:
        found = folder.stat(name)
        held = BackupRef(ref, stat_mark(found), found.st_size)
        return Node("file", b"", stat.S_IMODE(found.st_mode), held)
    try:
        found = os.fstat(fd)
        wanted = like.held.mark if like.held and like.kind == "file" else ""
        data = os.pread(fd, READ_ALONG_BYTES, 0) if found.st_size <= READ_ALONG_BYTES else b""
        mark = (
            digest(data)
            if data and not wanted.startswith(_STAT_PREFIX)
            else file_mark(fd, found, like=wanted)
        )
        held = BackupRef(ref, mark, found.st_size)
        if like.held and _may_be_alike(like.held, held):
            held = BackupRef(ref, mark, found.st_size, content=content_mark(fd))
        return Node("file", data, stat.S_IMODE(found.st_mode), held)
    finally:
        os.close(fd)


def _may_be_alike(held: BackupRef, found: BackupRef) -> bool:
    """Whether only the bytes can tell: written since, and of the same size."""
    return bool(held.content) and held.mark != found.mark and held.bytes == found.bytes


def tree_leaves(folder: FolderHandle, name: str, marks: Mapping[str, str]) -> Iterator[FolderItem]:
    """Everything below a folder; files are marked as `marks` has them, and new ones by a look."""
    with folder.child(name) as top:
        for path, inside, own, facts in walk_tree(top):
            kind, mode = kind_of(facts.st_mode), stat.S_IMODE(facts.st_mode)
            if kind == "folder":
                yield FolderItem(path, "folder", mode, "", 0)
            elif kind == "link":
                yield FolderItem(path, "link", 0, os.fsdecode(inside.link_target(own)), 0)
            elif kind == "file":
                mark = marks.get(path, _STAT_PREFIX)
                yield FolderItem(path, "file", mode, _leaf_mark(inside, own, facts, mark), facts.st_size)
            else:
                yield FolderItem(path, "file", mode, "special", 0)


def _leaf_mark(folder: FolderHandle, name: str, found: os.stat_result, like: str) -> str:
    if like.startswith(_STAT_PREFIX):
        return stat_mark(found)
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(folder.name(name), flags, dir_fd=folder.fd)
        try:
            return file_mark(fd, found, like=like)
        finally:
            os.close(fd)
    return "unreadable"


WRITER_WAIT_SECONDS = 0.2
"""Seconds to wait for a writer that has the file open."""
_LEASE_RETRY_SECONDS = 0.004
_COMPARE_CHUNK_BYTES = 1 << 17


class LeasedFile:
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
    def find(cls, folder: FolderHandle, name: str, node: Node) -> Self | None:
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
    def take(cls, folder: FolderHandle, name: str, node: Node) -> Self | None:
        """Open and hold a name if it holds just this node; else None. `Busy` while it is being written."""
        watched = cls.find(folder, name, node)
        return watched if watched and watched.hold(folder) else None

    def hold(self, folder: FolderHandle) -> bool:
        """Hold writers back and compare; lets go and answers no when anything differs."""
        self.held = True
        if self.fd is None:
            return self._holds_unread() and self.holds_tree_at(folder, self._name)
        try:
            self._leased = _take_lease(self.fd, self._name)
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

    def is_at(self, folder: FolderHandle, name: str) -> bool:
        """Whether the name stands for the very thing that was watched."""
        found = folder.find(name)
        return found is not None and os.path.samestat(found, self.found)

    def intact(self) -> bool:
        """Whether nobody wrote, or waits to write."""
        if self.fd is None:
            return True  # a link can't be changed in place, a folder is looked at where it went
        return syscalls.is_lease_unbroken(self.fd) if self._leased else self._holds_bytes()

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

    def holds_tree_at(self, folder: FolderHandle, name: str) -> bool:
        """Whether a folder still has all that it should have, and no more."""
        if self.node.kind != "folder" or self.node.held is None:
            return True
        return self.node.same(observe_node(folder, name, like=self.node))

    def _holds_unread(self) -> bool:
        held = self.node.held
        return not held or self.node.kind != "file" or held.mark == stat_mark(self.found)

    def _holds_bytes(self) -> bool:
        if self.fd is None:
            return False
        held, data = self.node.held, self.node.data
        if held is None:
            return holds_bytes(self.fd, data)
        if file_mark(self.fd, os.fstat(self.fd), like=held.mark) != held.mark:
            return False
        # A look from outside can miss a write; where the bytes are at hand they are what counts.
        return not data or not is_stat_mark(held.mark) or holds_bytes(self.fd, data)


class WriteLease:
    """Over a new file from just before it is in sight until we know that it may be: openers wait so long.

    Without it a program that replaced the old file in the last instant could read ours in the next, before theirs
    is back, and build on it: their own bytes would be lost to them.
    """

    __slots__ = ("_fd",)

    def __init__(self, folder: FolderHandle, name: str) -> None:
        self._fd: int | None = None
        try:
            fd = folder.open_own_file(name)
        except PermissionError:  # a new file that its owner may not write to
            return
        if syscalls.take_write_lease(fd):
            self._fd = fd
        else:
            os.close(fd)

    def show(self, folder: FolderHandle, name: str) -> bytes | None:
        """Have readers that wait find what is at a name now instead of our bytes; the bytes they then find."""
        if self._fd is None or syscalls.lease_waiters(self._fd) != "readers":
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


def holds_bytes(fd: int, data: bytes) -> bool:
    """Whether a file holds these bytes and no more."""
    if len(data) < _COMPARE_CHUNK_BYTES:
        return read_at(fd, len(data) + 1, 0) == data
    start = 0
    # In pieces that stay in the processor's cache, and without a copy of what they are compared with.
    while part := read_at(fd, _COMPARE_CHUNK_BYTES, start):
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


def _take_lease(fd: int, name: str) -> bool:
    deadline = time.monotonic() + WRITER_WAIT_SECONDS
    while (answer := syscalls.take_read_lease(fd)) == "writer":
        if time.monotonic() > deadline:
            raise Busy(
                f"Another program has `{name}` open for writing.",
                hint="Try again when it is done; nothing was changed.",
            )
        time.sleep(_LEASE_RETRY_SECONDS)
    return answer == "held"
