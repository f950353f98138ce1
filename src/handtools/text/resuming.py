"""Resuming: where a page of a newest-first list ended, told by time, so that newer entries move nothing."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_SHAPE = re.compile(r"(\d{1,7})\.(\d{1,7})@(none|-?\d{1,25})")
_SLACK = 200
"""How many entries may have become newer than a page before its successor has to say that it can't go on."""


class BadResume(ValueError):
    """Text that is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class Resume:
    """After how many entries a page ended, the time of the last of them, and how many had that time."""

    shown: int
    alike: int
    nanoseconds: int | None

    def __str__(self) -> str:
        return f"{self.shown}.{self.alike}@{'none' if self.nanoseconds is None else self.nanoseconds}"

    @classmethod
    def parse(cls, text: str) -> "Resume":
        """Read a cursor."""
        match = _SHAPE.fullmatch(text.strip())
        if match is None:
            raise BadResume("this is no cursor that a page ended with")
        return cls(int(match[1]), int(match[2]), None if match[3] == "none" else int(match[3]))

    @classmethod
    def after(cls, times: Sequence[float | None], shown: int) -> "Resume":
        """Give the cursor after the first `shown` entries."""
        keys = [_nanoseconds(time) for time in times[:shown]]
        return cls(shown, keys.count(keys[-1]), keys[-1])

    @property
    def reach(self) -> int:
        """How many entries to look at to find the place again."""
        return self.shown + _SLACK

    def place(self, times: Sequence[float | None]) -> tuple[int, bool]:
        """Give where the next page starts, and whether entries before it have changed."""
        ages = [_age(_nanoseconds(time)) for time in times]
        last = bisect_right(ages, _age(self.nanoseconds))
        first = last - ages[:last].count(_age(self.nanoseconds))
        start = min(first + self.alike, last)
        return start, start != self.shown


def _nanoseconds(time: float | None) -> int | None:
    return None if time is None else round(time * 1e9)


def _age(nanoseconds: int | None) -> float:
    """What sorts: newest first, the unknown last."""
    return float("inf") if nanoseconds is None else -nanoseconds
