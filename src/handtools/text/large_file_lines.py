"""Lines of a file too large to hold, found through an index of line ends per window."""

from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.encoding import decode


@dataclass(frozen=True, slots=True)
class LargeFileFormat:
    """How the bytes of a large file are read: one kind of line end, and what its characters are."""

    end: bytes = b"\n"
    """`\\n`, also where a search counts; `\\r` in a file that has no other."""
    wide: str = ""
    """The encoding of characters of two or four bytes, else empty."""

    @classmethod
    def of(cls, head: bytes) -> "LargeFileFormat":
        """Tell it from the beginning of a file."""
        encoding = decode(head).encoding
        wide = encoding if encoding.startswith(("utf-16", "utf-32")) else ""
        known = cls(wide=wide).plain(head)
        return cls(b"\r" if b"\r" in known and b"\n" not in known else b"\n", wide)

    def plain(self, window: bytes) -> bytes:
        """The bytes of a window with wide characters turned into UTF-8."""
        if not self.wide:
            return window
        return window.decode(self.wide, "replace").removeprefix("\ufeff").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class LargeFileIndex:
    """How many line ends each window of a file holds."""

    counts: Sequence[int]
    ended: bool
    """Whether the last line has an end."""
    reading: LargeFileFormat = LargeFileFormat()
    bytes: int = 0

    @property
    def total(self) -> int:
        """The number of lines."""
        return sum(self.counts) + (not self.ended)

    def place(self, line: int) -> tuple[int, int]:
        """Where a line begins: the window, and how many line ends to pass in it."""
        before = line - 1
        for window, count in enumerate(self.counts):
            if before <= count:
                return window, before
            before -= count
        return len(self.counts), 0


def bytes_after_line_ends(data: bytes, ends: int, end: bytes = b"\n") -> bytes:
    """The bytes after so many line ends."""
    start = 0
    for _ in range(ends):
        start = data.find(end, start) + 1
    return data[start:]


def cut_at_character(data: bytes, max_bytes: int) -> bytes:
    """At most so many bytes, none of them a part of a character."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(max_bytes - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
