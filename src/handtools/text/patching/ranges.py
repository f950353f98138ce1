"""Ranges: the numbers in the header of a hunk."""

import re
from typing import NamedTuple

_RANGE = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Range(NamedTuple):
    """Where a hunk stands, and how many lines it has before and after."""

    old_start: int
    old_size: int
    new_start: int
    new_size: int


def range_of(row: str) -> Range | None:
    """Read `@@ -1,3 +1,4 @@`; None where the header has no numbers."""
    match = _RANGE.match(row)
    if match is None:
        return None
    old_start, old_size, new_start, new_size = (1 if part is None else int(part) for part in match.groups())
    return Range(old_start, old_size, new_start, new_size)
