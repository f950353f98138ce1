"""Resuming: where a page of a newest-first list ended, told by time, so that newer entries move nothing."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_SHAPE = re.compile(r"(\d{1,7})\.(\d{1,7})@(none|-?\d{1,25})\.([0-9a-f]{8})")
Aged = tuple[str, float | None]
"""A path, and when it was changed if that is known."""
_SLACK = 200
"""How many entries may have become newer than a page before its successor has to say that it can't go on."""


class BadResume(ValueError):
    """Text that is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class Resume:
    """After how many entries a page ended, how many had the time of the last, that time, and what names it."""

    shown: int
    alike: int
    nanoseconds: int | None
    last: str

    def __str__(self) -> str:
        time = "none" if self.nanoseconds is None else self.nanoseconds
        return f"{self.shown}.{self.alike}@{time}.{self.last}"

    @classmethod
    def parse(cls, text: str) -> "Resume":
        """Read a cursor."""
        match = _SHAPE.fullmatch(text.strip())
        if match is None:
            raise BadResume("this is no cursor that a page ended with")
        return cls(int(match[1]), int(match[2]), None if match[3] == "none" else int(match[3]), match[4])

    @classmethod
    def after(cls, entries: Sequence[Aged], shown: int) -> "Resume":
        """Give the cursor after the first `shown` entries."""
        keys = [_nanoseconds(time) for _, time in entries[:shown]]
        return cls(shown, keys.count(keys[-1]), keys[-1], _name(entries[shown - 1][0]))

    @property
    def reach(self) -> int:
        """How many entries to look at to find the place again."""
        return self.shown + _SLACK

    def place(self, entries: Sequence[Aged]) -> tuple[int, bool]:
        """Give where the next page starts, and whether the last entry of the page before is still there."""
        ages = [_age(_nanoseconds(time)) for _, time in entries]
        last = bisect_right(ages, _age(self.nanoseconds))
        first = last - ages[:last].count(_age(self.nanoseconds))
        for index in range(first, last):
            if _name(entries[index][0]) == self.last:
                return index + 1, True
        return min(first + self.alike, last), False


def _name(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _nanoseconds(time: float | None) -> int | None:
    return None if time is None else round(time * 1e9)


def _age(nanoseconds: int | None) -> float:
    """What sorts: newest first, the unknown last."""
    return float("inf") if nanoseconds is None else -nanoseconds
