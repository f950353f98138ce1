"""Paging: which lines of a text are shown, how many fit, and what is said about the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handtools.text.clipping import clip_line
from handtools.text.lines import bare, number
from handtools.text.tokens import estimate

NUMBER_TOKENS = 4
"""About what a line's number costs."""
NOTE_TOKENS = 35
"""About what it costs to say what is shown."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an answer may still take."""

    lines: int
    bytes: int
    tokens: int | None = None

    @property
    def spent(self) -> bool:
        """Whether nothing is left, or too little to say something."""
        scarce = self.tokens is not None and self.tokens < NOTE_TOKENS
        return scarce or not self.lines or not self.bytes

    def less(self, text: str) -> "Budget":
        """What is left after some text."""
        tokens = None if self.tokens is None else max(self.tokens - estimate(text), 0)
        return Budget(max(self.lines - text.count("\n") - 1, 0), max(self.bytes - _size(text), 0), tokens)

    def keeping(self, tokens: int) -> "Budget":
        """What is left when some tokens are kept for a note."""
        return self if self.tokens is None else replace(self, tokens=max(self.tokens - tokens, 1))

    def holds(self, text: str) -> bool:
        """Whether a text fits."""
        return (
            text.count("\n") < self.lines
            and _size(text) <= self.bytes
            and (self.tokens is None or estimate(text) <= self.tokens)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Lines that are asked for: both ends included, None where it is left open."""

    first: int | None = None
    last: int | None = None
    limit: int | None = None

    @property
    def whole(self) -> bool:
        """Whether no part is asked for."""
        return self.first is None and self.last is None and self.limit is None

    def within(self, total: int) -> tuple[int, int]:
        """The lines that are meant, 0 as 1 and a negative start from the end; `ValueError` says what is wrong."""
        start = self.first or 1
        start = max(total + start + 1, 1) if start < 0 else start
        end = total if self.last is None else min(self.last, total)
        if start > max(total, 1):
            raise ValueError(f"it has {total} lines; start_line={start} is past its end")
        if self.last is not None and self.last < start:
            raise ValueError(f"end_line={self.last} is before start_line={start}")
        return start, min(end, start + self.limit - 1) if self.limit else end


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines as they are shown, and where they stand."""

    text: str
    first: int
    end: int
    clipped: bool
    """Whether lines that were asked for did not fit."""


def page(lines: list[str], span: tuple[int, int], total: int, budget: Budget, *, max_chars: int) -> Page:
    """Number the lines that fit; `lines` begin with the first of the span."""
    first, last = span
    room = budget.keeping(NOTE_TOKENS)
    shown = fitting(lines[: max(min(last - first, room.lines) + 1, 0)], room, max_chars=max_chars)
    end = first + len(shown) - 1
    text = number(shown, first) if shown else "(The file is empty.)"
    if end < total or first > 1:
        text += f"\n(Showing lines {first}-{end} of {total} total."
        text += f" Use start_line={end + 1} to continue reading.)" if end < total else ")"
    return Page(text, first, end, clipped=end < min(last, total))


def shortened(lines: list[str], max_chars: int) -> list[str]:
    """The lines, overlong ones clipped."""
    if max(map(len, lines), default=0) <= max_chars:
        return lines
    return [clip_line(bare(line), max_chars) if len(line) > max_chars else line for line in lines]


def fitting(lines: list[str], budget: Budget, *, max_chars: int) -> list[str]:
    """As many lines from the start as fit, overlong ones clipped; one at least, or as much of it as fits."""
    kept = _whole(shortened(lines, max_chars), budget)
    if len(kept) == 1 and budget.tokens is not None and estimate(kept[0]) > budget.tokens:
        return shortened(lines[:1], min(max_chars, max(budget.tokens, 1)))
    return kept


def _whole(lines: list[str], budget: Budget) -> list[str]:
    count = min(len(lines), max(budget.lines, 1))
    if _size("".join(lines[:count])) > budget.bytes:
        used = 0
        for index, line in enumerate(lines[:count]):
            used += _size(line)
            if used > budget.bytes:
                count = max(index, 1)
                break
    if budget.tokens is not None:
        count = max(_most(lines, count, budget.tokens), 1)
    return lines[:count] if count < len(lines) else lines


def _most(lines: Sequence[str], count: int, tokens: int) -> int:
    """The largest number of lines within the tokens, by halving."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if estimate("".join(lines[:middle])) + NUMBER_TOKENS * middle <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
