"""Merging: two changed texts of one origin into one, by lines."""

from collections.abc import Iterator
from dataclasses import dataclass

from handtools.text import lines
from handtools.text.diffing import Edit, opcodes


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place both sides changed differently: its lines in the merged text, markers included."""

    line: int
    end_line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """The merged text, with markers around each conflict."""

    text: str
    conflicts: list[Conflict]


@dataclass(frozen=True, slots=True)
class _Region:
    """Lines of the origin and what each side made of them."""

    base: str
    ours: str
    theirs: str


def merge(base: str, ours: str, theirs: str) -> Merge:
    """Merge the changes of both sides; a conflict where they touch and differ."""
    end = lines.dominant_ending(ours)
    pieces: list[str] = []
    conflicts: list[Conflict] = []
    line = 1
    for region in _regions(lines.split(base), lines.split(ours), lines.split(theirs)):
        piece = _settled(region)
        if piece is None:
            piece = _marked(region, end)
            height = lines.count(piece)
            sides = region.base, region.ours, region.theirs
            conflicts.append(Conflict(line, line + height - 1, *sides))
        pieces.append(piece)
        line += lines.count_endings(piece)
    return Merge("".join(pieces), conflicts)


def _settled(region: _Region) -> str | None:
    """Give the text both sides agree on, None when they do not."""
    if region.ours in (region.base, region.theirs):
        return region.theirs
    return region.ours if region.theirs == region.base else None


def _marked(region: _Region, end: str) -> str:
    ours, theirs = (
        side + end if side and side == lines.bare(side) else side for side in (region.ours, region.theirs)
    )
    return f"<<<<<<< ours{end}{ours}======={end}{theirs}>>>>>>> theirs{end}"


def _regions(base: list[str], ours: list[str], theirs: list[str]) -> Iterator[_Region]:
    """Cut the three texts into regions, each untouched or changed by one side or both."""
    place = 0
    shift_ours = shift_theirs = 0
    for start, end, grown_ours, grown_theirs in _gathered(opcodes(base, ours), opcodes(base, theirs)):
        same = "".join(base[place:start])
        yield _Region(same, same, same)
        yield _Region(
            "".join(base[start:end]),
            "".join(ours[start + shift_ours : end + shift_ours + grown_ours]),
            "".join(theirs[start + shift_theirs : end + shift_theirs + grown_theirs]),
        )
        shift_ours += grown_ours
        shift_theirs += grown_theirs
        place = end
    same = "".join(base[place:])
    yield _Region(same, same, same)


def _gathered(ours: list[Edit], theirs: list[Edit]) -> Iterator[tuple[int, int, int, int]]:
    """Join edits that touch: start and end in the origin, and how much each side grew."""
    edits = sorted([(edit, 0) for edit in ours] + [(edit, 1) for edit in theirs])
    start = end = -1
    grown = [0, 0]
    for edit, side in edits:
        if edit.start_a > end:
            if end >= 0:
                yield start, end, grown[0], grown[1]
            start, end, grown = edit.start_a, edit.end_a, [0, 0]
        end = max(end, edit.end_a)
        grown[side] += (edit.end_b - edit.start_b) - (edit.end_a - edit.start_a)
    if end >= 0:
        yield start, end, grown[0], grown[1]
