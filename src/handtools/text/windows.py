"""Windows: lines of a file too large to hold, found through counts of line ends."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Index:
    """How many line ends each window of a file holds; in a file of this size only `\\n` counts."""

    counts: Sequence[int]
    ended: bool
    """Whether the last line has an end."""

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


def after(data: bytes, ends: int) -> bytes:
    """The bytes after so many line ends."""
    start = 0
    for _ in range(ends):
        start = data.find(b"\n", start) + 1
    return data[start:]


def uncut(data: bytes, max_bytes: int) -> bytes:
    """At most so many bytes, none of them a part of a character."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(max_bytes - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
