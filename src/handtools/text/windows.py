"""Windows: lines of a file too large to hold, found through counts of line ends."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where to begin reading: a window, and how many line ends to pass in it."""

    window: int
    passed: int


@dataclass(frozen=True, slots=True)
class Index:
    """How many line ends each window of a file holds; only `\\n` counts in a file of this size."""

    counts: Sequence[int]
    complete: bool
    """Whether the last line has an end."""

    @property
    def total(self) -> int:
        """The number of lines."""
        return sum(self.counts) + (not self.complete)

    def place(self, line: int) -> Place:
        """Where a line begins: after the end of the one before it."""
        before = line - 1
        for window, count in enumerate(self.counts):
            if before <= count:
                return Place(window, before)
            before -= count
        return Place(max(len(self.counts) - 1, 0), 0)


def skipped(data: bytes, ends: int) -> bytes:
    """The bytes after so many line ends."""
    start = 0
    for _ in range(ends):
        start = data.find(b"\n", start) + 1
    return data[start:]


def taken(data: bytes, count: int) -> tuple[bytes, int]:
    """Up to `count` whole lines from the start, and how many there are; a last one without an end counts."""
    end = found = 0
    while found < count:
        at = data.find(b"\n", end)
        if at < 0:
            return data, found + (end < len(data))
        end, found = at + 1, found + 1
    return data[:end], found
