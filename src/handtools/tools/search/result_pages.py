"""Cursors between pages of search results.

Ranked results are divided into blocks of a fixed number of hits, in path order. A cursor stores digests of
the hit before its block and of the block, and how much of the block was shown. So changes before the block
don't shift the page, and a change inside it is detected. A cursor in a newest-first list stores the time of
the last entry.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_SHAPE = re.compile(r"(\d{1,6})\.(\d{1,6})\.([0-9a-f]{8})\.([0-9a-f]{8})")
_NONE = "0" * 8


class BadCursor(ValueError):
    """Raised for text that is not a cursor of ranked search results."""


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """Cursor after a page of ranked search results: the entry from which the next page continues."""

    block: int
    shown: int
    """How many entries of the cursor's block were shown so far."""
    before: str
    """Digest of the entry before the cursor's block, by which the block is found again."""
    content: str
    """Digest of the entries of the block; zeros if none of them was shown yet."""

    def __str__(self) -> str:
        return f"{self.block}.{self.shown}.{self.before}.{self.content}"


@dataclass(frozen=True, slots=True)
class ResultPageStart:
    """Where the page after a cursor starts in the current search results."""

    start: int
    """The index of the first entry of the block that the page is in."""
    shown: int
    moved: bool
    """Whether the entries of the block changed since the last page."""


def parse_cursor(text: str) -> SearchCursor:
    """Parse a cursor of ranked search results; raises `BadCursor`."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise BadCursor("this is not a cursor from a previous page")
    return SearchCursor(int(match[1]), int(match[2]), match[3], match[4])


def cursor_after(keys: Sequence[str], start: int, size: int, shown: int) -> SearchCursor:
    """Make the cursor after `shown` entries, counted from the block that starts at `start`.

    Blocks have `size` entries.
    """
    passed, shown = divmod(shown, size)
    start += passed * size
    before = _digest_of_keys(keys[start - 1 : start]) if start else _NONE
    content = _digest_of_keys(keys[start : start + size]) if shown else _NONE
    return SearchCursor(start // size, shown, before, content)


def find_result_page_start(cursor: SearchCursor, keys: Sequence[str], size: int) -> ResultPageStart:
    """Find where the page after a cursor starts in the current entries, and whether they have changed."""
    start = _index_after_cursor(cursor, keys, size)
    if start is None:
        return ResultPageStart(min(cursor.block * size, len(keys)), cursor.shown, moved=True)
    same = cursor.content in {_NONE, _digest_of_keys(keys[start : start + size])}
    return ResultPageStart(start, cursor.shown, moved=not same)


def _index_after_cursor(cursor: SearchCursor, keys: Sequence[str], size: int) -> int | None:
    """Find the index after the entry that a cursor names, searching outwards from its old place.

    Returns None if the entry no longer exists.
    """
    if cursor.before == _NONE:
        return 0
    here = cursor.block * size
    nearest = sorted(range(len(keys)), key=lambda index: abs(index + 1 - here))
    return next(
        (index + 1 for index in nearest if _digest_of_keys(keys[index : index + 1]) == cursor.before), None
    )


def _digest_of_keys(keys: Sequence[str]) -> str:
    joined = "\0".join(keys).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:8]


_RECENCY_SHAPE = re.compile(r"(\d{1,7})\.(\d{1,7})@(none|-?\d{1,25})\.([0-9a-f]{8})")
DatedPath = tuple[str, float | None]
"""A path with its modification time in seconds; None if that is unknown."""
_RECENCY_SLACK = 200
"""How many entries may become newer between two pages before the cursor's place can't be found any more."""


class BadRecencyCursor(ValueError):
    """Raised for text that is not a cursor of a newest-first list."""


@dataclass(frozen=True, slots=True)
class RecencyCursor:
    """Cursor after a page of a newest-first list: number of shown entries, last one's time and digest."""

    shown: int
    alike: int
    nanoseconds: int | None
    last: str

    def __str__(self) -> str:
        time = "none" if self.nanoseconds is None else self.nanoseconds
        return f"{self.shown}.{self.alike}@{time}.{self.last}"

    @classmethod
    def parse(cls, text: str) -> "RecencyCursor":
        """Parse a cursor of a newest-first list; raises `BadRecencyCursor`."""
        match = _RECENCY_SHAPE.fullmatch(text.strip())
        if match is None:
            raise BadRecencyCursor("this is not a cursor from a previous page")
        return cls(int(match[1]), int(match[2]), None if match[3] == "none" else int(match[3]), match[4])

    @classmethod
    def after(cls, entries: Sequence[DatedPath], shown: int) -> "RecencyCursor":
        """Make the cursor after the first `shown` entries of a newest-first list."""
        keys = [_nanoseconds(time) for _, time in entries[:shown]]
        return cls(shown, keys.count(keys[-1]), keys[-1], _path_digest(entries[shown - 1][0]))

    @property
    def entries_needed(self) -> int:
        """How many entries of the current list are needed to find the place again."""
        return self.shown + _RECENCY_SLACK

    def place(self, entries: Sequence[DatedPath]) -> tuple[int, bool]:
        """Return where the next page starts, and whether the last entry of the old page still exists."""
        ages = [_newest_first_key(_nanoseconds(time)) for _, time in entries]
        last = bisect_right(ages, _newest_first_key(self.nanoseconds))
        first = last - ages[:last].count(_newest_first_key(self.nanoseconds))
        for index in range(first, last):
            if _path_digest(entries[index][0]) == self.last:
                return index + 1, True
        return min(first + self.alike, last), False


def _path_digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _nanoseconds(time: float | None) -> int | None:
    return None if time is None else round(time * 1e9)


def _newest_first_key(nanoseconds: int | None) -> float:
    """Sort key of a modification time: newest first, unknown last."""
    return float("inf") if nanoseconds is None else -nanoseconds
