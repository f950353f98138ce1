"""The `Capture` protocol: how a command's changes are recorded; and how a file on disk becomes a node.

ADR 61.
"""

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import Protocol

from handtools.core.changes import BackupRef, Change, Coverage, Node, digest
from handtools.host.files.change_detection import HASHED_BYTES, READ_ALONG_BYTES, file_mark, stat_mark
from handtools.host.files.folder_handle import kind_of
from handtools.host.sandbox.launch import Launch


@dataclass(frozen=True, slots=True)
class CapturedChanges:
    """What a command changed."""

    changes: tuple[Change, ...] | None
    """None: not captured, and it happened in place."""
    coverage: Coverage
    omitted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class CommandCapture(Protocol):
    """One command's capture."""

    @property
    def launch(self) -> Launch:
        """The launch, changed so that its writes are seen."""
        ...

    def finish(self) -> CapturedChanges:
        """After the command has ended: what it changed."""
        ...

    def discard(self) -> None:
        """Let go of everything that was held for it; the delta has landed or never will."""
        ...


class Capture(Protocol):
    """One way to see what commands change."""

    @property
    def apart(self) -> bool:
        """Whether what a command writes is kept apart: then nobody else's changes are taken for its own."""
        ...

    def begin(self, launch: Launch, name: str) -> CommandCapture:
        """Make ready for a command; `name` is the call's."""
        ...

    def close(self) -> None:
        """Let go of what is kept for the next command."""
        ...


@dataclass(frozen=True, slots=True)
class UncapturedCommand:
    """A command whose changes nobody sees."""

    launch: Launch

    def finish(self) -> CapturedChanges:
        """Nothing is known."""
        return CapturedChanges(None, "none")

    def discard(self) -> None:
        """Nothing was held."""


class NoCapture:
    """Commands write in place, and what they change is not recorded."""

    apart = False

    def begin(self, launch: Launch, name: str) -> UncapturedCommand:  # noqa: ARG002
        """As it is."""
        return UncapturedCommand(launch)

    def close(self) -> None:
        """Nothing is kept."""


_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class NodeReader:
    """Small files are told by their bytes, and kept in mind to be shown and merged, until that gets too much."""

    hashed_bytes: int = 256 << 20
    hashed_files: int = 10_000
    known_bytes: int = 8 << 20

    def node(
        self, folder: int, name: str, found: os.stat_result, *, ref: str, mode: int | None = None
    ) -> Node:
        """What is at a name, as a node that is held under `ref`."""
        kind = kind_of(found.st_mode)
        mode = stat.S_IMODE(found.st_mode) if mode is None else mode
        if kind == "folder":
            return Node("folder", mode=mode)
        if kind == "link":
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            return Node("link", target, None, BackupRef(ref, digest(target), 0))
        mark, known = self._looked(folder, name, found)
        return Node("file", known, mode, BackupRef(ref, mark, found.st_size))

    def _looked(self, folder: int, name: str, found: os.stat_result) -> tuple[str, bytes]:
        size = found.st_size
        if size > HASHED_BYTES or size > self.hashed_bytes or not self.hashed_files:
            return stat_mark(found), b""
        with contextlib.suppress(OSError):
            fd = os.open(name, _READ_FLAGS, dir_fd=folder)
            try:
                return self._read(fd, found)
            finally:
                os.close(fd)
        return stat_mark(found), b""

    def _read(self, fd: int, found: os.stat_result) -> tuple[str, bytes]:
        self.hashed_files -= 1
        self.hashed_bytes -= found.st_size
        if found.st_size > min(READ_ALONG_BYTES, self.known_bytes):
            return file_mark(fd, found, like="sha256"), b""
        data = os.pread(fd, found.st_size, 0)
        self.known_bytes -= len(data)
        return digest(data), data
