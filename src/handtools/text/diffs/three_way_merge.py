"""Three-way merge of two changed texts with their common base, by lines, with conflict markers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.text import lines
from handtools.text.diffs.unified_diff import LineEdit, diff_line_edits


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One conflict of a three-way merge: its lines in the merged text, markers included, and its versions."""

    line: int
    end_line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class MergedText:
    """The result of a three-way merge: the text with conflict markers, and the list of conflicts."""

    text: str
    conflicts: list[MergeConflict]


@dataclass(frozen=True, slots=True)
class MergeRegion:
    """A run of lines of the base text with the lines that each side has instead."""

    base: str
    ours: str
    theirs: str


def three_way_merge(base: str, ours: str, theirs: str) -> MergedText:
    """Merge the changes that `ours` and `theirs` made to `base`.

    Changes that touch and differ become conflicts.
    """
    end = lines.dominant_ending(ours)
    pieces: list[str] = []
    conflicts: list[MergeConflict] = []
    line = 1
    for region in split_into_merge_regions(
        lines.split_lines(base), lines.split_lines(ours), lines.split_lines(theirs)
    ):
        piece = agreed_text(region)
        if piece is None:
            piece = _conflict_text(region, end)
            height = lines.count_lines(piece)
            sides = region.base, region.ours, region.theirs
            conflicts.append(MergeConflict(line, line + height - 1, *sides))
        pieces.append(piece)
        line += lines.count_line_ends(piece)
    return MergedText("".join(pieces), conflicts)


def agreed_text(region: MergeRegion) -> str | None:
    """Return the merged text of a region that at most one side changed, or both in the same way.

    Returns None for a conflict.
    """
    if region.ours in (region.base, region.theirs):
        return region.theirs
    return region.ours if region.theirs == region.base else None


def _conflict_text(region: MergeRegion, end: str) -> str:
    ours, theirs = (
        side + end if side and side == lines.without_line_ending(side) else side
        for side in (region.ours, region.theirs)
    )
    return f"<<<<<<< ours{end}{ours}======={end}{theirs}>>>>>>> theirs{end}"


def split_into_merge_regions(base: list[str], ours: list[str], theirs: list[str]) -> Iterator[MergeRegion]:
    """Divide three texts into consecutive regions, unchanged or changed by one side or both."""
    place = 0
    shift_ours = shift_theirs = 0
    for start, end, grown_ours, grown_theirs in _joined_touching_edits(
        diff_line_edits(base, ours), diff_line_edits(base, theirs)
    ):
        same = "".join(base[place:start])
        yield MergeRegion(same, same, same)
        yield MergeRegion(
            "".join(base[start:end]),
            "".join(ours[start + shift_ours : end + shift_ours + grown_ours]),
            "".join(theirs[start + shift_theirs : end + shift_theirs + grown_theirs]),
        )
        shift_ours += grown_ours
        shift_theirs += grown_theirs
        place = end
    same = "".join(base[place:])
    yield MergeRegion(same, same, same)


def _joined_touching_edits(
    our_edits: list[LineEdit], their_edits: list[LineEdit]
) -> Iterator[tuple[int, int, int, int]]:
    """Join touching edits of both sides.

    Yields the start and end of each group in the base, and by how many lines each side grew there.
    """
    edits = sorted([(edit, 0) for edit in our_edits] + [(edit, 1) for edit in their_edits])
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


def edit_overlapping_theirs(base: list[str], ours: list[str], theirs: list[str]) -> LineEdit | None:
    """Find an edit in `ours` that, slid along equal lines, could overlap an edit in `theirs`.

    Returns None if there is none.
    """
    made = [(edit, *_slide_range_in_base(base, theirs, edit)) for edit in diff_line_edits(base, theirs)]
    for edit in diff_line_edits(base, ours):
        start, end = _slide_range_in_base(base, ours, edit)
        for other, begin, stop in made:
            same = edit[:2] == other[:2] and _new_lines_of_edit(ours, edit) == _new_lines_of_edit(
                theirs, other
            )
            if start <= stop and begin <= end and not same:
                return edit
    return None


def take_shown_changes(known: bytes, current: bytes, shown: Iterable[tuple[int, int]]) -> bytes:
    """Return a known text with those of its changes that are within shown lines of the current text.

    `shown` are ranges of line numbers, both ends included. A deletion is seen if the lines around it are.
    """
    # Latin-1 keeps all bytes of any encoding.
    old, new = (lines.split_lines(side.decode("latin-1")) for side in (known, current))
    ranges, taken, done = list(shown), [], 0
    for edit in diff_line_edits(old, new):
        above, below = edit.start_b + 1, edit.end_b
        if edit.start_b == edit.end_b:
            above, below = max(edit.start_b, 1), min(edit.start_b + 1, len(new))
        seen = any(first <= above and below <= last for first, last in ranges)
        taken += old[done : edit.start_a]
        taken += new[edit.start_b : edit.end_b] if seen else old[edit.start_a : edit.end_a]
        done = edit.end_a
    return "".join([*taken, *old[done:]]).encode("latin-1")


def changed_line_ranges(before: bytes, after: bytes) -> list[tuple[int, int]]:
    """Return the line numbers of changes in `after`, each with the line above and the line below it."""
    edits = diff_line_edits(*(lines.split_lines(side.decode("latin-1")) for side in (before, after)))
    return [(edit.start_b, edit.end_b + 1) for edit in edits]


def _new_lines_of_edit(rows: list[str], edit: LineEdit) -> list[str]:
    return rows[edit.start_b : edit.end_b]


def _slide_range_in_base(base: list[str], other: list[str], edit: LineEdit) -> tuple[int, int]:
    """Return the range of base lines over which an insertion or deletion can slide along equal lines."""
    if edit.start_b == edit.end_b:
        found = [
            outside < edit.start_a for outside, _ in shifts_of_equal_rows(base, edit.start_a, edit.end_a)
        ]
    elif edit.start_a == edit.end_a:
        found = [
            outside < edit.start_b for outside, _ in shifts_of_equal_rows(other, edit.start_b, edit.end_b)
        ]
    else:
        found = []
    return edit.start_a - sum(found), edit.end_a + len(found) - sum(found)


def shifts_of_equal_rows(rows: list[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of equal lines, one outside and one inside a run, along which the run can slide."""
    up = 1
    while start - up >= 0 and rows[start - up] == rows[end - up]:
        yield start - up, end - up
        up += 1
    down = 0
    while end + down < len(rows) and rows[start + down] == rows[end + down]:
        yield end + down, start + down
        down += 1
