"""Token estimates, and what fits a budget of tokens: rows of a listing, or names with shortened descriptions.

Tokenizers differ and most are not public, so the weights lean high: about 4 characters a token for English prose,
3 for source code, 2 for dense JSON, and more than a token for a Chinese character.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

# Tokens per character, told by its first byte in UTF-8. Most letters share a token with their
# neighbours and a space joins the word after it; signs and digits rarely share.
_KINDS = (
    (bytes({*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1)}), 0.28),
    (b" \t", 0.08),
    (bytes(range(0x80, 0xC0)), 0.0),  # the later bytes of a character
    (b"0123456789", 0.5),
    (b"\r\n", 0.6),
    (bytes(range(0xC0, 0xE0)), 0.55),  # Cyrillic, Greek, Hebrew, Arabic, accented Latin
    (bytes(range(0xE0, 0xF0)), 1.2),  # Chinese, Japanese, Korean, Indic
    (bytes(range(0xF0, 0x100)), 2.5),  # emoji and rare scripts
)
_SIGN = 0.8
_PLAIN_KINDS = tuple((kind, weight) for kind, weight in _KINDS if kind.isascii())


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text costs a model, by kinds of characters."""
    rest = text.encode("utf-8", "surrogatepass")
    tokens = 0.0
    for kind, weight in _PLAIN_KINDS if text.isascii() else _KINDS:
        left = rest.translate(None, kind)
        tokens += (len(rest) - len(left)) * weight
        rest = left
    return math.ceil(tokens + len(rest) * _SIGN)


def count_rows_that_fit(rows: Sequence[str], tokens: int) -> int:
    """Count how many of the first rows fit a number of tokens together; at least one if there is one."""
    whole = "\n".join(rows)
    # No sign of ASCII costs more than a token.
    if (len(whole) <= tokens and whole.isascii()) or estimate_tokens(whole) <= tokens:
        return len(rows)
    costs = accumulate(estimate_tokens(f"{row}\n") for row in rows)
    return max(sum(cost <= tokens for cost in costs), 1)


@dataclass(frozen=True, slots=True)
class BudgetedListing:
    """A listing of names with descriptions that was fitted to a token budget, and what was cut for that."""

    rows: tuple[str, ...]
    shortened: int
    """How many descriptions of the listing were shortened."""
    left_out: int
    """How many names of the listing were left out."""
    foot: str = ""

    @property
    def note(self) -> str:
        """A sentence part that says what was cut, such as `2 more are left out`; empty when nothing was."""
        parts = [f"{self.left_out} more are left out"] if self.left_out else []
        parts += [f"{self.shortened} descriptions are shortened"] if self.shortened else []
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """The listing as text: the rows, the note on what was cut, and the footer."""
        return "\n".join(filter(None, (*self.rows, self.note and f"({self.note}.)", self.foot)))


def budgeted_listing(entries: Sequence[tuple[str, str]], tokens: int, *, foot: str = "") -> BudgetedListing:
    """Fit names with descriptions into a token budget: all names first, then equal shares of the descriptions.

    Short descriptions stay whole. A footer that would take more than a quarter of the room is dropped.
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
    """Find by bisection the largest number for which the listing fits the tokens; -1 when none does."""

    def cost(number: int) -> int:
        return estimate_tokens(made(number).text)

    if cost(most) <= tokens:
        return most
    found = bisect_right(range(most), tokens, key=cost) - 1
    # The note may grow by a digit where the rows shrink: what was found must fit itself.
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
