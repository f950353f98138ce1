"""Sharing: a list of names and what they are for, within a budget of tokens."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from handtools.text.tokens import estimate


@dataclass(frozen=True, slots=True)
class Shared:
    """As many rows as fit, and what had to go."""

    rows: tuple[str, ...]
    shortened: int
    """How many descriptions are not whole."""
    left_out: int
    """How many names are not there at all."""
    foot: str = ""

    @property
    def note(self) -> str:
        """What is not there, in words; empty when all of it is."""
        parts = [f"{self.left_out} more are left out"] if self.left_out else []
        parts += [f"{self.shortened} descriptions are shortened"] if self.shortened else []
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """The rows, the note and the foot."""
        return "\n".join(filter(None, (*self.rows, self.note and f"({self.note}.)", self.foot)))


def share(entries: Sequence[tuple[str, str]], tokens: int, *, foot: str = "") -> Shared:
    """Every name first, then as much of each description as all can have alike: short ones stay whole.

    A foot that would take more than a quarter of the room goes before anything else does.
    """
    below = estimate(f"{foot}\n") if foot else 0
    if below and below <= tokens // 4:
        return replace(share(entries, tokens - below), foot=foot)
    longest = max((len(description) for _, description in entries), default=0)
    width = _largest(longest, tokens, lambda width: _shared(entries, len(entries), width))
    if width >= 0:
        return _shared(entries, len(entries), width)
    count = _largest(len(entries), tokens, lambda count: _shared(entries, count, 0))
    return _shared(entries, max(count, 0), 0)


def _largest(most: int, tokens: int, made: Callable[[int], Shared]) -> int:
    """The largest number whose rows fit; -1 when not even none does."""

    def cost(number: int) -> int:
        return estimate(made(number).text)

    if cost(most) <= tokens:
        return most
    found = bisect_right(range(most), tokens, key=cost) - 1
    # The note may grow by a digit where the rows shrink: what was found must fit itself.
    while found >= 0 and cost(found) > tokens:
        found -= 1
    return found


def _shared(entries: Sequence[tuple[str, str]], count: int, width: int) -> Shared:
    cut = [(name, _cut(description, width)) for name, description in entries[:count]]
    shortened = sum(short != whole for (_, short), (_, whole) in zip(cut, entries, strict=False))
    rows = tuple(f"- {name}: {short}" if short else f"- {name}" for name, short in cut)
    return Shared(rows, shortened, len(entries) - count)


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return f"{text[: width - 1].rstrip()}…" if width > 1 else ""
