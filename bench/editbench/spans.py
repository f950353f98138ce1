"""What the second generator works with: lines of a real file, one change in them, words to misremember."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.editbench.cases import Kind
from bench.editbench.corpus import Specimen

Change = Literal["change", "insert", "delete"]

_WORD = re.compile(r"[A-Za-z][A-Za-z_]{3,}")
_SYLLABLES = ("ra", "mo", "ti", "ke", "lu", "sa", "ven", "dor", "pli", "qua")


@dataclass(frozen=True, slots=True)
class Sent:
    """What a model sent for a file, and each text that is right afterwards."""

    content: str
    accept: tuple[str, ...]
    old: str = ""
    new: str = ""
    patch: str = ""


@dataclass(frozen=True, slots=True)
class ModelError:
    """One way in which models were seen to go wrong, and what an editor should make of it."""

    kind: Kind
    make: Callable[[random.Random, Specimen, list[Specimen]], Sent | None]

    @property
    def name(self) -> str:
        return self.make.__name__


@dataclass(frozen=True, slots=True)
class Span:
    """Lines `start` to `end` of a file, and what the change at the line `edited` (of the span) makes of them."""

    start: int
    lines: tuple[str, ...]
    edited: int
    fresh: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.lines)

    @property
    def old_lines(self) -> list[str]:
        return list(self.lines)

    @property
    def new_lines(self) -> list[str]:
        return [*self.lines[: self.edited], *self.fresh, *self.lines[self.edited + 1 :]]

    @property
    def old_text(self) -> str:
        return "\n".join(self.old_lines)

    @property
    def new_text(self) -> str:
        return "\n".join(self.new_lines)


def a_span(
    rng: random.Random, text: str, *, fewest: int, most: int, kind: Change | None = None
) -> Span | None:
    """Some lines with words at both ends, and one change in them whose text the file does not have."""
    lines = text.split("\n")
    size = rng.randint(fewest, most)
    if len(lines) <= size + 2:
        return None
    start = rng.randrange(len(lines) - size - 1)
    chosen = tuple(lines[start : start + size])
    if len(chosen[0].strip()) < 6 or len(chosen[-1].strip()) < 6:
        return None
    edited = rng.choice([i for i, line in enumerate(chosen) if len(line.strip()) > 5])
    fresh = a_line_like(rng, chosen[edited])
    if fresh is None or fresh.strip() in text:
        return None
    match kind or rng.choice(("change", "insert", "delete")):
        case "insert":
            put: tuple[str, ...] = (chosen[edited], fresh)
        case "delete" if size > 1:
            put = ()
        case _:
            put = (fresh,)
    return Span(start, chosen, edited, put)


def a_line_like(rng: random.Random, line: str) -> str | None:
    """The line with one of its words made new."""
    words = list(_WORD.finditer(line))
    if not words:
        return None
    word = rng.choice(words)
    return line[: word.start()] + word[0] + "_" + a_name(rng) + line[word.end() :]


def reworded(rng: random.Random, line: str) -> str | None:
    """The line as somebody remembers it who has not looked: most of its words are others."""
    words = list(_WORD.finditer(line))
    if not words:
        return None
    some = rng.sample(words, k=max(1, len(words) * 2 // 3))
    for word in sorted(some, key=lambda found: -found.start()):
        line = line[: word.start()] + a_name(rng) + line[word.end() :]
    return line


def a_name(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(3, 4)))


def with_lines(text: str, span: Span) -> str:
    lines = text.split("\n")
    return "\n".join([*lines[: span.start], *span.new_lines, *lines[span.end :]])


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
