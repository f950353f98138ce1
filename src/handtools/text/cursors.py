"""Cursors: where a page ended, so that the next one neither skips nor repeats.

A ranked answer is ranked in blocks of a fixed number of hits, in the order of paths. A cursor names
the hit before its block, how much of the block was shown, and what the block was: changes before
the block then move nothing, and a change inside it is noticed.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_SHAPE = re.compile(r"(\d{1,6})\.(\d{1,6})\.([0-9a-f]{8})\.([0-9a-f]{8})")
_NONE = "0" * 8


class BadCursor(ValueError):
    """Text that is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of a page."""

    block: int
    shown: int
    """How many of the block's entries were shown."""
    before: str
    """Names the entry before the block."""
    content: str
    """Names the entries of the block; zeros before it was looked at."""

    def __str__(self) -> str:
        return f"{self.block}.{self.shown}.{self.before}.{self.content}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page starts in what was found now."""

    start: int
    """The first entry of the block."""
    shown: int
    moved: bool
    """Whether what is here is no longer what the last page was taken from."""


def parse(text: str) -> Cursor:
    """Read a cursor."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise BadCursor("this is no cursor that a page ended with")
    return Cursor(int(match[1]), int(match[2]), match[3], match[4])


def cursor(keys: Sequence[str], start: int, size: int, shown: int) -> Cursor:
    """Give the cursor after `shown` entries from the block on that starts at `start`."""
    passed, shown = divmod(shown, size)
    start += passed * size
    before = _name(keys[start - 1 : start]) if start else _NONE
    content = _name(keys[start : start + size]) if shown else _NONE
    return Cursor(start // size, shown, before, content)


def place(given: Cursor, keys: Sequence[str], size: int) -> Place:
    """Find where a page goes on in the entries that are there now."""
    start = _after(given, keys, size)
    if start is None:
        return Place(min(given.block * size, len(keys)), given.shown, moved=True)
    same = given.content in {_NONE, _name(keys[start : start + size])}
    return Place(start, given.shown, moved=not same)


def _after(given: Cursor, keys: Sequence[str], size: int) -> int | None:
    """The entry after the named one, looked for from where it was outwards."""
    if given.before == _NONE:
        return 0
    here = given.block * size
    nearest = sorted(range(len(keys)), key=lambda index: abs(index + 1 - here))
    return next((index + 1 for index in nearest if _name(keys[index : index + 1]) == given.before), None)


def _name(keys: Sequence[str]) -> str:
    joined = "\0".join(keys).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:8]
