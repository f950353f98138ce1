"""Confirming what ripgrep found: it opens files by name, and a link may have been swapped in at that moment.

So a hit counts only if its very bytes are in the file that was judged, opened by us through no link.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from handtools.core.errors import Redirected
from handtools.host.resolving import Root
from handtools.host.ripgrep_records import raw_line
from handtools.text.encoding import decode

TRANSCODED_BYTES = 64 << 20
"""Files in UTF-16 up to this size are read whole to find a hit in them again."""
CLOCK_NS = 20_000_000
"""File systems have the time of the kernel's last tick."""
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Confirmation:
    """Looks hits up again; those of one file come together, so one file is open at a time."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._path: str | None = None
        self._fd: int | None = None
        self.refused: list[str] = []
        """Paths where other bytes were, or nothing that may be opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def holds(self, path: str, data: dict[str, Any]) -> bool:
        """Whether what a match record shows is in the file at its path."""
        if path != self._path:
            self._close()
            self._path, self._fd = path, opened(self._root, path)
        if self._fd is not None and _holds(self._fd, raw_line(data), data.get("absolute_offset", 0)):
            return True
        self.refused.append(path)
        return False

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class QuietFolders:
    """Folders in which no name has changed since a moment: what was opened by name then is what is there now."""

    def __init__(self, root: Root, since_ns: int) -> None:
        self._root = root
        self._since = since_ns - CLOCK_NS
        self._known: dict[str, bool] = {}

    def hold(self, path: str) -> bool:
        """Whether a regular file is at a path, no link leads there, and all folders above it are quiet."""
        above = path
        while above:
            above = above.rpartition("/")[0]
            if above not in self._known:
                self._known[above] = self._is_quiet(above)
            if not self._known[above]:
                return False
        try:
            return stat.S_ISREG(self._root.stat(path).st_mode)
        except (OSError, Redirected):
            return False

    def _is_quiet(self, folder: str) -> bool:
        try:
            return self._root.stat(folder).st_ctime_ns < self._since
        except (OSError, Redirected):
            return False


def opened(root: Root, path: str) -> int | None:
    """A regular file open for reading, through no link; None where there is none."""
    try:
        return root.found(path)[1]
    except (OSError, Redirected):
        return None


@contextmanager
def all_opened(root: Root, paths: Sequence[str]) -> Iterator[dict[str, int]]:
    """Those of some files that can be opened through no link, by their handles."""
    handles: dict[str, int] = {}
    try:
        for path in paths:
            fd = opened(root, path)
            if fd is not None:
                handles[path] = fd
        yield handles
    finally:
        for fd in handles.values():
            os.close(fd)


def _holds(fd: int, line: bytes, offset: int) -> bool:
    if os.pread(fd, len(line), offset) == line:
        return True
    mark = os.pread(fd, len(_UTF8_MARK), 0)
    if mark == _UTF8_MARK:
        return os.pread(fd, len(line), offset + len(mark)) == line
    if not mark.startswith(_UTF16_MARKS) or os.fstat(fd).st_size > TRANSCODED_BYTES:
        return False
    return line.decode("utf-8", "replace") in decode(_whole(fd)).body


def _whole(fd: int) -> bytes:
    parts, start = [], 0
    while part := os.pread(fd, 1 << 20, start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
