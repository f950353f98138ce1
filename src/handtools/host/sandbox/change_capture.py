"""The `Capture` protocol, which records the files a command changes, and `NodeReader`, which reads them."""

import contextlib
import os
from dataclasses import dataclass
from typing import Protocol

from handtools.core.changes import BackupRef, Change, ChangeCoverage, Node, sha256_hex
from handtools.host.files import syscalls
from handtools.host.files.change_detection import (
    MAX_HASHED_FILE_BYTES,
    MAX_RECORDED_FILE_BYTES,
    file_mark,
    stat_mark,
)
from handtools.host.files.folder_trees import TreeEntry
from handtools.host.files.syscalls import read_bytes_at
from handtools.host.sandbox.launch import Launch, Overlay


@dataclass(frozen=True, slots=True)
class CapturedChanges:
    """The file changes of one command, as far as they were captured."""

    changes: tuple[Change, ...] | None
    """None if the changes were not captured: the command wrote directly to the workspace."""
    coverage: ChangeCoverage
    omitted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    discarded: str = ""
    """Why no changes were captured, although the command may have made some."""


class CommandCapture(Protocol):
    """Captures the file changes of one command."""

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The overlays to mount for the command, one for each workspace folder; empty without overlays."""
        ...

    def finish(self) -> CapturedChanges:
        """Return the command's file changes after it has exited."""
        ...

    def discard(self) -> None:
        """Delete the captured data, once the changes have been applied to the workspace or rejected."""
        ...


class Capture(Protocol):
    """A method of finding out which files commands change: overlay, scan or none."""

    @property
    def has_isolated_writes(self) -> bool:
        """Whether a command writes to a separate layer, so that changes by other programs aren't captured."""
        ...

    def begin(self, launch: Launch, *, in_place: bool) -> CommandCapture:
        """Prepare to capture the changes of one command.

        With `in_place`, no overlay can be mounted, so the command writes directly to the workspace.
        """
        ...

    def close(self) -> None:
        """Delete the data that was kept for the next commands."""
        ...


@dataclass(frozen=True, slots=True)
class UncapturedCommand:
    """The capture of a command whose changes are not recorded."""

    overlays: tuple[Overlay, ...] = ()

    def finish(self) -> CapturedChanges:
        return CapturedChanges(None, "none")

    def discard(self) -> None:
        """Do nothing: there is nothing to delete."""


class NoCapture:
    """A capture that records nothing: commands write directly to the workspace."""

    has_isolated_writes = False

    def begin(self, launch: Launch, *, in_place: bool) -> UncapturedCommand:  # noqa: ARG002
        """Return a capture without overlays."""
        return UncapturedCommand()

    def close(self) -> None:
        """Do nothing: there is nothing to delete."""


_READ_FLAGS = os.O_RDONLY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW
FOLDER_FLAGS = os.O_RDONLY | syscalls.DIRECTORY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW


@dataclass(slots=True)
class NodeReader:
    """Creates `Node` values for files on disk; hashes and reads small files until a budget is used up."""

    hashed_bytes: int = 256 << 20
    hashed_files: int = 10_000
    known_bytes: int = 8 << 20

    def node(self, entry: TreeEntry, *, ref: str, mode: int | None = None) -> Node:
        """Return the `Node` of a file, symlink or folder; `ref` identifies its backup."""
        mode = entry.mode if mode is None else mode
        if entry.kind == "folder":
            return Node("folder", mode=mode)
        if entry.kind == "link":
            target = b""
            # If the symlink is gone by now, use an empty target: it matches no file, so a conflict is
            # reported.
            with contextlib.suppress(OSError):
                target = entry.folder.link_target(entry.name)
            return Node("link", target, None, BackupRef(ref, sha256_hex(target), 0))
        mark, known = self._mark_and_content(entry)
        return Node("file", known, mode, BackupRef(ref, mark, entry.found.st_size))

    def _mark_and_content(self, entry: TreeEntry) -> tuple[str, bytes]:
        folder, found, size = entry.folder, entry.found, entry.found.st_size
        if size > MAX_HASHED_FILE_BYTES or size > self.hashed_bytes or not self.hashed_files:
            return stat_mark(found), b""
        with contextlib.suppress(OSError):
            fd = os.open(folder.name_for_os(entry.name), _READ_FLAGS, dir_fd=folder.fd)
            try:
                return self._hash_and_content(fd, found)
            finally:
                os.close(fd)
        return stat_mark(found), b""

    def _hash_and_content(self, fd: int, found: os.stat_result) -> tuple[str, bytes]:
        self.hashed_files -= 1
        self.hashed_bytes -= found.st_size
        if found.st_size > min(MAX_RECORDED_FILE_BYTES, self.known_bytes):
            return file_mark(fd, found, like="sha256"), b""
        data = read_bytes_at(fd, found.st_size, 0)
        self.known_bytes -= len(data)
        return sha256_hex(data), data
