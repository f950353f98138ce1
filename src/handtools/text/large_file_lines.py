"""Lines of a file too large for memory, located through an index of line endings per window of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.encoding import decode


@dataclass(frozen=True, slots=True)
class LargeTextEncoding:
    """How to read a large file: its line ending, and its encoding if that is UTF-16 or UTF-32."""

    end: bytes = b"\n"
    r"""The line ending: `\n`, or `\r` in a file that has no other."""
    wide: str = ""
    """The encoding of the file if it is UTF-16 or UTF-32; otherwise empty."""

    @classmethod
    def detect(cls, head: bytes) -> "LargeTextEncoding":
        """Detect the line ending and encoding from the first bytes of a file."""
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
    """Index of a large file: how many line endings each window of bytes has."""

    counts: Sequence[int]
    ended: bool
    """Whether the last line of the file has a line ending."""
    encoding: LargeTextEncoding = LargeTextEncoding()
    bytes: int = 0

    @property
    def total(self) -> int:
        """The number of lines of the file."""
        return sum(self.counts) + (not self.ended)

    def place(self, line: int) -> tuple[int, int]:
        """Locate the start of a line: its window's number, and how many line endings to skip in it."""
        before = line - 1
        for window, count in enumerate(self.counts):
            if before <= count:
                return window, before
            before -= count
        return len(self.counts), 0


def bytes_after_skipped_lines(data: bytes, ends: int, end: bytes = b"\n") -> bytes:
    """Return the bytes of a window after its first `ends` line endings."""
    start = 0
    for _ in range(ends):
        start = data.find(end, start) + 1
    return data[start:]


def cut_at_character(data: bytes, max_bytes: int) -> bytes:
    """Cut UTF-8 bytes to at most `max_bytes`, without splitting a character."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(max_bytes - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
