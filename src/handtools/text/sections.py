"""Sections: the parts of a long Markdown text, by their headings; and pieces of it that fit."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handtools.text.ranges import Lines, united
from handtools.text.tokens import estimate

CONTEXT_LINES = 2
TITLE_CHARS = 100
HEADING_CHARS = 1_000
"""As much of a line is looked at for a title: the patterns below go back over what they have passed."""
MOST_CHARS = 16
"""No token stands for more, at least not for long."""
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_PIECE = 64 << 10
_CURSOR = re.compile(r"(\d{1,8})\.([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and all below it, down to the next of its rank."""

    level: int
    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Portion:
    """A piece of a text, and where it ends in the whole."""

    text: str
    end: int


def sections(text: str) -> list[Section]:
    """Every section in order, those within others too. What looks like a heading in a code block is none."""
    heads = list(_heads(text))
    ends = [len(text)] * len(heads)
    # Those that are still open, outermost first: a page may have more headings than words.
    waiting: list[int] = []
    for index, (level, _, start) in enumerate(heads):
        while waiting and heads[waiting[-1]][0] >= level:
            ends[waiting.pop()] = start
        waiting.append(index)
    return [
        Section(level, title, start, end) for (level, title, start), end in zip(heads, ends, strict=True)
    ]


def named(found: Sequence[Section], title: str) -> Section | None:
    """The section of a title: exactly, or else the first that begins with it or holds it."""
    wanted = _plain(title)
    for fits in (str.__eq__, str.startswith, str.__contains__):
        for section in found:
            if fits(_plain(section.title), wanted):
                return section
    return None


def contents(text: str, found: Sequence[Section], *, most: int) -> str:
    """A table of contents with what each section costs; the deepest levels go when there are too many."""
    rows = list(found)
    for deepest in range(5, 0, -1):
        if len(rows) <= most:
            break
        rows = [section for section in found if section.level <= deepest]
    shown = [_row(text, section) for section in rows[:most]]
    left = len(found) - len(shown)
    return "\n".join([*shown, *([f"… and {left} more"] if left else [])])


def mentions(text: str, wanted: str) -> list[str]:
    """The places where some words occur, each with the lines around it below its section's title."""
    lines = text.split("\n")
    low = wanted.casefold()
    hits = [index for index, line in enumerate(lines) if low in line.casefold()]
    titles = _titles(lines)
    pieces = []
    around = (Lines(max(hit - CONTEXT_LINES, 0), min(hit + CONTEXT_LINES, len(lines) - 1)) for hit in hits)
    for first, last in united(around):
        pieces.append("\n".join([f"[{titles[first] or 'beginning'}]", *lines[first : last + 1]]))
    return pieces


def portion(text: str, start: int, tokens: int) -> Portion:
    """As many whole lines as fit, a part of one where not even that does; never nothing."""
    most = min(start + tokens * MOST_CHARS, len(text))
    if most == len(text) and estimate(text[start:]) <= tokens:
        return Portion(text[start:], len(text))
    low, high = start + 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[start:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    line = text.rfind("\n", start, low) + 1
    end = line if line > start else low
    return Portion(text[start:end], end)


def cost(text: str) -> int:
    """About how many tokens a text of any length costs, a piece at a time."""
    return sum(estimate(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))


def cursor(text: str, offset: int) -> str:
    """Where a page of this very text ended."""
    return f"{offset}.{_digest(text)}"


def resumed(text: str, given: str) -> tuple[int, bool]:
    """Where to go on, and whether the text is still the one; raises `ValueError`."""
    match = _CURSOR.fullmatch(given.strip())
    if match is None:
        raise ValueError("this is no cursor that a page ended with")
    return min(int(match[1]), len(text)), match[2] == _digest(text)


def _heads(text: str) -> Iterator[tuple[int, str, int]]:
    fence, at = "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            closes = mark and mark[1].startswith(fence) and not line.strip(" `~")
            fence = "" if closes else fence
        elif mark:
            fence = mark[1]
        elif line.startswith("#") and (head := _HEADING.match(line[:HEADING_CHARS])):
            yield len(head[1]), _LINK.sub(r"\1", head[2])[:TITLE_CHARS], at
        at += len(line) + 1


def _titles(lines: Sequence[str]) -> list[str]:
    """The title under which each line stands."""
    heads = {at: title for _, title, at in _heads("\n".join(lines))}
    titles, current, at = [], "", 0
    for line in lines:
        current = heads.get(at, current)
        titles.append(current)
        at += len(line) + 1
    return titles


def _row(text: str, section: Section) -> str:
    tokens = cost(text[section.start : section.end])
    return f"{'  ' * (section.level - 1)}- {section.title} ({tokens:,} tokens)"


def _plain(title: str) -> str:
    return " ".join(re.sub(r"[`*_¶§#]", "", title).casefold().split())


def _digest(text: str) -> str:
    seen = hashlib.sha256()
    for at in range(0, len(text), _PIECE):
        seen.update(text[at : at + _PIECE].encode("utf-8", "surrogatepass"))
    return seen.hexdigest()[:8]
