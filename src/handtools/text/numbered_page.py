"""Numbered lines of a file for a reader, as many as fit a budget; long lines are cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handtools.text.lines import number_lines, without_line_ending
from handtools.text.token_estimate import estimate_tokens
from handtools.text.truncation import clip_line

LINE_NUMBER_TOKENS = 4
"""Estimated tokens of a line number."""
MINIFIED_LINE_CHARS = 5_000
"""Lines longer than this are not for people."""
SHOWN_LINES_NOTE_TOKENS = 35
"""Estimated tokens of the note that says which lines are shown."""


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """The lines, bytes and tokens that a file view may still use."""

    lines: int
    bytes: int
    tokens: int | None = None

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up, or too small for anything but a note."""
        scarce = self.tokens is not None and self.tokens < SHOWN_LINES_NOTE_TOKENS
        return scarce or not self.lines or not self.bytes

    def less(self, text: str) -> "ReadBudget":
        """Give the read budget that is left after some text is shown."""
        tokens = None if self.tokens is None else max(self.tokens - estimate_tokens(text), 0)
        return ReadBudget(
            max(self.lines - text.count("\n") - 1, 0), max(self.bytes - _size(text), 0), tokens
        )

    def keeping(self, tokens: int) -> "ReadBudget":
        """Give the read budget with some tokens set aside for a note."""
        return self if self.tokens is None else replace(self, tokens=max(self.tokens - tokens, 1))

    def holds(self, text: str) -> bool:
        """Whether a text fits the read budget in lines, bytes and tokens."""
        return (
            text.count("\n") < self.lines
            and _size(text) <= self.bytes
            and (self.tokens is None or estimate_tokens(text) <= self.tokens)
        )


@dataclass(frozen=True, slots=True)
class RequestedLines:
    """The lines of a file that a caller asks for; both ends are included, None where an end is open."""

    first: int | None = None
    last: int | None = None
    limit: int | None = None

    @property
    def whole(self) -> bool:
        """Whether the caller asks for the whole file, with no line range or limit."""
        return self.first is None and self.last is None and self.limit is None

    def within(self, total: int) -> tuple[int, int]:
        """Give the first and last line meant in a file of `total` lines; a negative start counts from the end.

        Raises `ValueError` with a sentence for the caller when the range is empty or beyond the end.
        """
        start = self.first or 1
        start = max(total + start + 1, 1) if start < 0 else start
        end = total if self.last is None else min(self.last, total)
        if start > max(total, 1):
            raise ValueError(f"it has {total} lines; start_line={start} is past its end")
        if self.last is not None and self.last < start:
            raise ValueError(f"end_line={self.last} is before start_line={start}")
        return start, min(end, start + self.limit - 1) if self.limit else end


@dataclass(frozen=True, slots=True)
class NumberedPage:
    """Numbered lines of a file as they are shown, with the numbers of the first and last."""

    text: str
    first: int
    end: int
    clipped: bool
    """Whether lines that were asked for did not fit the budget."""


def number_page(
    lines: list[str], span: tuple[int, int], total: int, budget: ReadBudget, *, max_chars: int
) -> NumberedPage:
    """Render the lines of a range with their numbers, as many as fit.

    `lines` begin with the first of the range.
    """
    first, last = span
    room = budget.keeping(SHOWN_LINES_NOTE_TOKENS)
    shown = lines_that_fit(lines[: max(min(last - first, room.lines) + 1, 0)], room, max_chars=max_chars)
    end = first + len(shown) - 1
    text = number_lines(shown, first) if shown else "(The file is empty.)"
    if end < total or first > 1:
        text += f"\n(Showing lines {first}-{end} of {total} total."
        text += f" Use start_line={end + 1} to continue reading.)" if end < total else ")"
    return NumberedPage(text, first, end, clipped=end < min(last, total))


def is_minified(lines: Sequence[str]) -> bool:
    """Whether a text is written for machines: most of it lies in lines too long to be read.

    An outline of such a text repeats a line, and parsing it may take seconds.
    """
    long = [len(line) for line in lines if len(line) > MINIFIED_LINE_CHARS]
    return bool(long) and 2 * sum(long) > sum(map(len, lines))


def clip_long_lines(lines: list[str], max_chars: int) -> list[str]:
    """Clip each line that is longer than `max_chars`, with a note of what was cut."""
    if max(map(len, lines), default=0) <= max_chars:
        return lines
    return [
        clip_line(without_line_ending(line), max_chars) if len(line) > max_chars else line for line in lines
    ]


def lines_that_fit(lines: list[str], budget: ReadBudget, *, max_chars: int) -> list[str]:
    """Give as many lines from the start as fit a budget, long ones clipped; at least one, or a part of it."""
    kept = _whole(clip_long_lines(lines, max_chars), budget)
    if len(kept) == 1 and budget.tokens is not None and estimate_tokens(kept[0]) > budget.tokens:
        return clip_long_lines(lines[:1], min(max_chars, max(budget.tokens, 1)))
    return kept


def _whole(lines: list[str], budget: ReadBudget) -> list[str]:
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
    """Find by bisection how many of the first lines, with their numbers, fit a number of tokens."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens("".join(lines[:middle])) + LINE_NUMBER_TOKENS * middle <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
