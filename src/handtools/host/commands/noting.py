"""Noting things as nodes: what a path holds, to be moved and not read; within a budget of looking closely."""

import contextlib
import os
import stat
from dataclasses import dataclass

from handtools.core.changes import Held, Node, digest
from handtools.host.folders import kind_of
from handtools.host.marking import HASHED_BYTES, KNOWN_BYTES, file_mark, seen_mark

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Notary:
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
            return Node("link", target, None, Held(ref, digest(target), 0))
        mark, known = self._looked(folder, name, found)
        return Node("file", known, mode, Held(ref, mark, found.st_size))

    def _looked(self, folder: int, name: str, found: os.stat_result) -> tuple[str, bytes]:
        size = found.st_size
        if size > HASHED_BYTES or size > self.hashed_bytes or not self.hashed_files:
            return seen_mark(found), b""
        with contextlib.suppress(OSError):
            fd = os.open(name, _READ, dir_fd=folder)
            try:
                return self._read(fd, found)
            finally:
                os.close(fd)
        return seen_mark(found), b""

    def _read(self, fd: int, found: os.stat_result) -> tuple[str, bytes]:
        self.hashed_files -= 1
        self.hashed_bytes -= found.st_size
        if found.st_size > min(KNOWN_BYTES, self.known_bytes):
            return file_mark(fd, found, like="sha256"), b""
        data = os.pread(fd, found.st_size, 0)
        self.known_bytes -= len(data)
        return digest(data), data
