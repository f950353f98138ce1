"""Paging: which lines of a text are shown, and how many fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.clipping import clip_line
from handtools.text.lines import bare
from handtools.text.tokens import estimate


@dataclass(frozen=True, slots=True)
class Budget:
    """What an answer may still take."""

    lines: int
    bytes: int
    tokens: int | None = None

    def less(self, text: str) -> "Budget":
        """What is left after some text."""
        tokens = None if self.tokens is None else max(self.tokens - estimate(text), 0)
        return Budget(max(self.lines - text.count("\n") - 1, 0), max(self.bytes - _size(text), 0), tokens)

    def holds(self, text: str) -> bool:
        """Whether a text fits."""
        return (
            text.count("\n") < self.lines
            and _size(text) <= self.bytes
            and (self.tokens is None or estimate(text) <= self.tokens)
        )


def bounds(first: int | None, last: int | None, limit: int | None, total: int) -> tuple[int, int]:
    """The lines that are meant, both ends included; 0 is 1, and a negative start counts from the end."""
    start = first or 1
    start = max(total + start + 1, 1) if start < 0 else start
    end = total if last is None else min(last, total)
    return start, min(end, start + limit - 1) if limit else end


def shortened(lines: list[str], max_chars: int) -> list[str]:
    """The lines, overlong ones clipped."""
    if max(map(len, lines), default=0) <= max_chars:
        return lines
    return [clip_line(bare(line), max_chars) if len(line) > max_chars else line for line in lines]


def fitting(lines: Sequence[str], budget: Budget) -> Sequence[str]:
    """As many whole lines from the start as fit, one at least."""
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
    return lines[:count]


def _most(lines: Sequence[str], count: int, tokens: int) -> int:
    """The largest number of lines within the tokens, by halving."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        # A line costs its number too.
        if estimate("".join(lines[:middle])) + 4 * middle <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
