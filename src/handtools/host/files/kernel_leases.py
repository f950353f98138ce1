"""Kernel leases on files, which detect writers.

With a read lease, the kernel blocks processes that open the file for writing and notifies us. If no lease
is available (not the owner, unsupported file system or operating system), the bytes are compared a second
time instead.
"""

import os
import stat
import time
from typing import Self

from handtools.core.changes import Node
from handtools.core.errors import Busy
from handtools.host.files import syscalls
from handtools.host.files.change_detection import file_mark, is_stat_mark, observe_node, stat_mark
from handtools.host.files.folder_handle import FolderHandle, kind_of_mode
from handtools.host.files.syscalls import read_bytes_at

WRITER_WAIT_SECONDS = 0.2
"""Seconds to wait for another process that has the file open for writing."""
_LEASE_RETRY_SECONDS = 0.004
_COMPARE_CHUNK_BYTES = 1 << 17


class LeasedFile:
    """An open file or symlink under a read lease; `intact` tells whether it is still unchanged."""

    __slots__ = ("_leased", "_name", "fd", "found", "held", "node")

    def __init__(self, name: str, node: Node, found: os.stat_result, fd: int | None) -> None:
        self._name = name
        self._leased = False
        self.held = False
        self.node = node
        self.found = found
        self.fd = fd

    @classmethod
    def open_if_same_stat(cls, folder: FolderHandle, name: str, node: Node) -> Self | None:
        """Open a file or symlink if its kind, size and mode match `node`; otherwise None."""
        try:
            found, fd = folder.stat_and_open_file(name)
        except FileNotFoundError:
            return None
        except PermissionError:
            if node.held is None:
                raise
            found, fd = folder.stat(name), None  # a file that is only moved need not be readable
        watched = cls(name, node, found, fd)
        alike = kind_of_mode(found.st_mode) == node.kind and watched._has_expected_stat(found)
        if alike and (node.kind != "link" or folder.link_target(name) == node.data):
            return watched
        watched.close()
        return None

    @classmethod
    def take(cls, folder: FolderHandle, name: str, node: Node) -> Self | None:
        """Open a file and take a lease on it if its content matches `node`; None if it differs.

        Raises `Busy` while another process has the file open for writing.
        """
        watched = cls.open_if_same_stat(folder, name, node)
        return (
            watched if watched and watched.hold() and watched.is_tree_unchanged_at(folder, name) else None
        )

    def hold(self) -> bool:
        """Take the lease, then compare the content; closes the file and returns False if it differs.

        Leases don't protect a folder's tree: check it with `is_tree_unchanged_at` after it was moved.
        """
        self.held = True
        if self.fd is None:
            return self._holds_unread()
        try:
            self._leased = _take_lease(self.fd, self._name)
            now = os.fstat(self.fd)
            # The mode is copied to the new file, so a mode change in the meantime must not be lost.
            same = (
                now.st_mode == self.found.st_mode and self._has_expected_stat(now) and self._holds_bytes()
            )
        except BaseException:
            self.close()
            raise
        if not same:
            self.close()
        return same

    def _has_expected_stat(self, found: os.stat_result) -> bool:
        node = self.node
        return (node.mode is None or node.mode == stat.S_IMODE(found.st_mode)) and (
            node.kind != "file" or found.st_size == node.bytes
        )

    def is_at(self, folder: FolderHandle, name: str) -> bool:
        """Whether a name in a folder still refers to the same inode as the open file."""
        found = folder.find(name)
        return found is not None and os.path.samestat(found, self.found)

    def intact(self) -> bool:
        """Whether no process has written to the file since the lease was taken, and none is waiting to."""
        if self.fd is None:
            return True  # a symlink can't be changed in place; a folder is checked after its move
        return syscalls.is_lease_unbroken(self.fd) if self._leased else self._holds_bytes()

    def close(self) -> None:
        """Release the lease and close the file."""
        if self.fd is None:
            return
        fd, self.fd = self.fd, None
        try:
            if self._leased:
                syscalls.end_lease(fd)
        finally:
            os.close(fd)

    def is_tree_unchanged_at(self, folder: FolderHandle, name: str) -> bool:
        """Whether the folder tree at a name has exactly the expected entries, each unchanged."""
        if self.node.kind != "folder" or self.node.held is None:
            return True
        return self.node.same(observe_node(folder, name, like_node=self.node))

    def _holds_unread(self) -> bool:
        held = self.node.held
        return not held or self.node.kind != "file" or held.mark == stat_mark(self.found)

    def _holds_bytes(self) -> bool:
        if self.fd is None:
            return False
        held, data = self.node.held, self.node.data
        if held is None:
            return file_has_bytes(self.fd, data)
        if file_mark(self.fd, os.fstat(self.fd), like=held.mark) != held.mark:
            return False
        # Size and time can miss a write, so compare the bytes if we have them.
        return not data or not is_stat_mark(held.mark) or file_has_bytes(self.fd, data)


class WriteLease:
    """A write lease on a new file while it is moved to its target: every open blocks until the lease ends.

    Without it, a program that replaced the old file just before our swap could read our file before its own
    is swapped back, and lose its own bytes.
    """

    __slots__ = ("_fd",)

    def __init__(self, folder: FolderHandle, name: str) -> None:
        self._fd: int | None = None
        try:
            fd = folder.open_created_file(name)
        except PermissionError:  # the new file is read-only for its owner
            return
        if syscalls.try_write_lease(fd):
            self._fd = fd
        else:
            os.close(fd)

    def copy_for_waiting_readers(self, folder: FolderHandle, name: str) -> bytes | None:
        """If readers are waiting to open the leased file, copy the content of the file at `name` into it.

        Returns the copied bytes; None if nothing was copied.
        """
        if self._fd is None or syscalls.lease_waiters(self._fd) != "readers":
            return None
        found, source = folder.stat_and_open_file(name)
        if source is None:
            return None
        try:
            data = read_bytes_at(source, found.st_size, 0)
        finally:
            os.close(source)
        os.truncate(self._fd, 0)
        done = 0
        while done < len(data):
            done += os.pwrite(self._fd, memoryview(data)[done:], done)
        return data

    def lift(self) -> None:
        """Release the write lease, so that waiting processes can open the file."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            syscalls.end_lease(fd)
        finally:
            os.close(fd)


def file_has_bytes(fd: int, data: bytes) -> bool:
    """Whether an open file contains exactly these bytes."""
    if len(data) < _COMPARE_CHUNK_BYTES:
        return read_bytes_at(fd, len(data) + 1, 0) == data
    start = 0
    # In chunks that fit into the CPU cache, and without copying `data`.
    while part := read_bytes_at(fd, _COMPARE_CHUNK_BYTES, start):
        if not data.startswith(part, start):
            return False
        start += len(part)
    return start == len(data)


def _take_lease(fd: int, name: str) -> bool:
    deadline = time.monotonic() + WRITER_WAIT_SECONDS
    while (answer := syscalls.try_read_lease(fd)) == "writer":
        if time.monotonic() > deadline:
            raise Busy(
                f"Another program has `{name}` open for writing.",
                hint="Nothing was changed. Try again when that program is done.",
            )
        time.sleep(_LEASE_RETRY_SECONDS)
    return answer == "held"
