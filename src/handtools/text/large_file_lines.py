"""Lines of a file too large for memory, located through an index that counts line ends per window of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.encoding import decode


@dataclass(frozen=True, slots=True)
class LargeTextEncoding:
    """How a large file is read: its line end, and its encoding if characters are two or four bytes wide."""

    end: bytes = b"\n"
    r"""The line end: `\n`, or `\r` in a file that has no other."""
    wide: str = ""
    """The encoding of the large file if it is UTF-16 or UTF-32; else empty."""

    @classmethod
    def detect(cls, head: bytes) -> "LargeTextEncoding":
        """Detect the line end and encoding from the first bytes of a file."""
        encoding = decode(head).encoding
        wide = encoding if encoding.startswith(("utf-16", "utf-32")) else ""
        known = cls(wide=wide).to_utf8(head)
        return cls(b"\r" if b"\r" in known and b"\n" not in known else b"\n", wide)

    def to_utf8(self, window: bytes) -> bytes:
        """Convert a window of UTF-16 or UTF-32 bytes to UTF-8; other bytes are unchanged."""
        if not self.wide:
            return window
        return window.decode(self.wide, "replace").removeprefix("\ufeff").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class LargeFileIndex:
    """Index of a large file: how many line ends each window of bytes has."""

    counts: Sequence[int]
    ended: bool
    """Whether the last line of the file has a line end."""
    reading: LargeTextEncoding = LargeTextEncoding()
    bytes: int = 0

    @property
    def total(self) -> int:
        """The number of lines of the file."""
        return sum(self.counts) + (not self.ended)

    def place(self, line: int) -> tuple[int, int]:
        """Locate the start of a line: the number of its window, and how many line ends to skip inside it."""
        before = line - 1
        for window, count in enumerate(self.counts):
            if before <= count:
                return window, before
            before -= count
        return len(self.counts), 0


def bytes_after_skipped_lines(data: bytes, ends: int, end: bytes = b"\n") -> bytes:
    """Give the bytes of a window after its first `ends` line ends."""
    start = 0
    for _ in range(ends):
        start = data.find(end, start) + 1
    return data[start:]


def cut_at_character(data: bytes, max_bytes: int) -> bytes:
    """Cut UTF-8 bytes to at most `max_bytes`, not inside a character."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(max_bytes - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
