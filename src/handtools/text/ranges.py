"""Ranges: consecutive lines, and several of them as few."""

from collections.abc import Iterable
from typing import NamedTuple


class Lines(NamedTuple):
    """Consecutive lines, by their numbers, both included."""

    first: int
    last: int


def united(ranges: Iterable[Lines]) -> tuple[Lines, ...]:
    """The same lines, those that touch as one, in the order they stand."""
    joined: list[Lines] = []
    for lines in sorted(ranges):
        if joined and lines.first <= joined[-1].last + 1:
            joined[-1] = Lines(joined[-1].first, max(lines.last, joined[-1].last))
        else:
            joined.append(lines)
    return tuple(joined)
