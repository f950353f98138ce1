"""A listing of names with descriptions, shortened and cut until it fits a token budget."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from handtools.text.token_estimate import estimate_tokens


@dataclass(frozen=True, slots=True)
class BudgetedListing:
    """A listing of names with descriptions that fits a token budget, and what was cut to make it fit."""

    rows: tuple[str, ...]
    shortened: int
    """How many descriptions of the listing were shortened."""
    left_out: int
    """How many names of the listing were left out."""
    foot: str = ""

    @property
    def note(self) -> str:
        """A phrase that says what was cut, such as `2 more are left out`; empty if nothing was."""
        parts = [f"{self.left_out} more are left out"] if self.left_out else []
        parts += [f"{self.shortened} descriptions are shortened"] if self.shortened else []
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """The listing as text: the rows, the note on what was cut, and the footer."""
        return "\n".join(filter(None, (*self.rows, self.note and f"({self.note}.)", self.foot)))


def budgeted_listing(entries: Sequence[tuple[str, str]], tokens: int, *, foot: str = "") -> BudgetedListing:
    """Fit names with descriptions into a token budget: all names first, then equal parts of descriptions.

    Short descriptions stay in full. A footer that would take more than a quarter of the budget is dropped.
    """
    below = estimate_tokens(f"{foot}\n") if foot else 0
    if below and below <= tokens // 4:
        return replace(budgeted_listing(entries, tokens - below), foot=foot)
    longest = max((len(description) for _, description in entries), default=0)
    width = _largest(longest, tokens, lambda width: _shared(entries, len(entries), width))
    if width >= 0:
        return _shared(entries, len(entries), width)
    count = _largest(len(entries), tokens, lambda count: _shared(entries, count, 0))
    return _shared(entries, max(count, 0), 0)


def _largest(most: int, tokens: int, made: Callable[[int], BudgetedListing]) -> int:
    """Find by bisection the largest number for which the listing fits the tokens; -1 if none does."""

    def cost(number: int) -> int:
        return estimate_tokens(made(number).text)

    if cost(most) <= tokens:
        return most
    found = bisect_right(range(most), tokens, key=cost) - 1
    # The note may get a digit longer while the rows shrink, so check that the found listing really fits.
    while found >= 0 and cost(found) > tokens:
        found -= 1
    return found


def _shared(entries: Sequence[tuple[str, str]], count: int, width: int) -> BudgetedListing:
    cut = [(name, _cut(description, width)) for name, description in entries[:count]]
    shortened = sum(short != whole for (_, short), (_, whole) in zip(cut, entries, strict=False))
    rows = tuple(f"- {name}: {short}" if short else f"- {name}" for name, short in cut)
    return BudgetedListing(rows, shortened, len(entries) - count)


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return f"{text[: width - 1].rstrip()}…" if width > 1 else ""
