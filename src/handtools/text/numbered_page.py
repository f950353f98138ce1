"""Numbered lines of a file, as many as fit a budget; long lines are cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handtools.text.lines import render_numbered_lines, without_line_ending
from handtools.text.token_estimate import estimate_tokens
from handtools.text.truncation import clip_line

LINE_NUMBER_TOKENS = 4
"""Estimated tokens of a line number."""
MINIFIED_LINE_CHARS = 5_000
"""Lines longer than this count as minified, not meant to be read by people."""
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

    def budget_after_text(self, text: str) -> "ReadBudget":
        """Return the budget that is left after some text is shown."""
        tokens = None if self.tokens is None else max(self.tokens - estimate_tokens(text), 0)
        return ReadBudget(
            max(self.lines - text.count("\n") - 1, 0), max(self.bytes - _utf8_size(text), 0), tokens
        )

    def with_tokens_reserved(self, tokens: int) -> "ReadBudget":
        """Return the budget with some tokens reserved for a note."""
        return self if self.tokens is None else replace(self, tokens=max(self.tokens - tokens, 1))

    def has_room_for(self, text: str) -> bool:
        """Whether a text fits the budget in lines, bytes and tokens."""
        return (
            text.count("\n") < self.lines
            and _utf8_size(text) <= self.bytes
            and (self.tokens is None or estimate_tokens(text) <= self.tokens)
        )


@dataclass(frozen=True, slots=True)
class RequestedLines:
    """The lines of a file that a caller asks for; both ends are included, None for an open end."""

    first: int | None = None
    last: int | None = None
    limit: int | None = None

    @property
    def is_whole_file(self) -> bool:
        """Whether the caller asks for the whole file, without a line range or limit."""
        return self.first is None and self.last is None and self.limit is None

    def first_and_last_line(self, total: int) -> tuple[int, int]:
        """Return the first and last requested line of `total` lines; a negative start counts from the end.

        Raises `ValueError` with a message for the caller if the range is empty or beyond the end.
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
    """Whether some requested lines did not fit the budget."""


def render_numbered_page(
    lines: list[str], span: tuple[int, int], total: int, budget: ReadBudget, *, max_chars: int
) -> NumberedPage:
    """Render as many lines of a range as fit, with numbers; `lines` begins with the range's first line."""
    first, last = span
    room = budget.with_tokens_reserved(SHOWN_LINES_NOTE_TOKENS)
    shown = lines_that_fit(lines[: max(min(last - first, room.lines) + 1, 0)], room, max_chars=max_chars)
    end = first + len(shown) - 1
    text = render_numbered_lines(shown, first) if shown else "(The file is empty.)"
    if end < total or first > 1:
        text += f"\n(Showing lines {first}-{end} of {total} total."
        text += f" Use start_line={end + 1} to continue reading.)" if end < total else ")"
    return NumberedPage(text, first, end, clipped=end < min(last, total))


def is_minified(lines: Sequence[str]) -> bool:
    """Whether most of a text is in lines too long for people to read.

    An outline of such a text would only repeat a line, and parsing it may take seconds.
    """
    long = [len(line) for line in lines if len(line) > MINIFIED_LINE_CHARS]
    return bool(long) and 2 * sum(long) > sum(map(len, lines))


def clip_long_lines(lines: list[str], max_chars: int) -> list[str]:
    """Clip each line that is longer than `max_chars`, with a note of how much was cut."""
    if max(map(len, lines), default=0) <= max_chars:
        return lines
    return [
        clip_line(without_line_ending(line), max_chars) if len(line) > max_chars else line for line in lines
    ]


def lines_that_fit(lines: list[str], budget: ReadBudget, *, max_chars: int) -> list[str]:
    """Return as many of the first lines as fit a budget, long ones clipped; at least part of one line."""
    kept = _lines_within_budget(clip_long_lines(lines, max_chars), budget)
    if len(kept) == 1 and budget.tokens is not None and estimate_tokens(kept[0]) > budget.tokens:
        return clip_long_lines(lines[:1], min(max_chars, max(budget.tokens, 1)))
    return kept


def _lines_within_budget(lines: list[str], budget: ReadBudget) -> list[str]:
    count = min(len(lines), max(budget.lines, 1))
    if _utf8_size("".join(lines[:count])) > budget.bytes:
        used = 0
        for index, line in enumerate(lines[:count]):
            used += _utf8_size(line)
            if used > budget.bytes:
                count = max(index, 1)
                break
    if budget.tokens is not None:
        count = max(_count_lines_within_tokens(lines, count, budget.tokens), 1)
    return lines[:count] if count < len(lines) else lines


def _count_lines_within_tokens(lines: Sequence[str], count: int, tokens: int) -> int:
    """Find by bisection how many of the first lines, with their numbers, fit a number of tokens."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens("".join(lines[:middle])) + LINE_NUMBER_TOKENS * middle <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
