"""Shifting: where a line is after an edit."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

from handtools.text.aligning import Edit


def shifted(edits: Sequence[Edit], line: int) -> int | None:
    """The number that a line has after the edits; None when it was among what was replaced."""
    at = bisect_right(edits, line - 1, key=itemgetter(0)) - 1
    # Of an insertion and a replacement at one place, the later one decides: it reaches further.
    if at < 0:
        return line
    edit = edits[at]
    if line - 1 < edit.end_a:
        return None
    return line + edit.end_b - edit.end_a
