"""Detects edits that a file already contains: the new text is there instead of the old text, or around it."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice, takewhile

from handtools.text import lines
from handtools.text.diffs.unified_diff import diff_line_edits
from handtools.tools.editing.edit_outcome import AlreadyApplied, Excerpt
from handtools.tools.editing.nearest_lines import find_nearest_lines
from handtools.tools.editing.normalized_lines import (
    LineIndex,
    LineMatch,
    is_blank,
    normalize_for_matching,
    substring_offsets,
)

# How many letters and digits of new text rule out a coincidence: where the old text was expected, anywhere
# in the file, and right next to the edited lines.
_MIN_LETTERS = 16
_MIN_LETTERS_ANYWHERE = 24
_MIN_LETTERS_BESIDE = 8


def find_applied_around_text(
    line_index: LineIndex, text: str, at: int, old: str, new: str
) -> AlreadyApplied | None:
    """Detect that the old text, found at offset `at`, already has the rest of the new text around it.

    Returns None if the edit has not been made yet.
    """
    for skipped in substring_offsets(new, old, most=len(new)):
        start = at - skipped
        if (
            start >= 0
            and text.startswith(new, start)
            and _has_significant_text(new[:skipped] + new[skipped + len(old) :])
        ):
            first = text.count("\n", 0, start)
            return _already_applied_outcome(
                line_index,
                line_index.excerpt_of_lines(first, first + lines.count_lines(new.rstrip("\r\n"))),
            )
    return None


def find_applied_around_lines(
    line_index: LineIndex, match: LineMatch, old: list[str], new: list[str]
) -> AlreadyApplied | None:
    """Detect that the file has the other lines of `new` around loosely matched old lines.

    Returns None if it does not.
    """
    mine, wanted = (
        [normalize_for_matching(line) for line in side if not is_blank(line)] for side in (old, new)
    )
    rows = line_index.normalized_text[1:-1].split("\n")
    first = bisect_left(line_index.filled, match.first)
    for skipped in range(len(wanted) - len(mine) + 1):
        start, stop = first - skipped, first - skipped + len(wanted)
        added = wanted[:skipped] + wanted[skipped + len(mine) :]
        if start >= 0 and rows[start:stop] == wanted and _has_significant_text("\n".join(["", *added])):
            return _already_applied_outcome(
                line_index,
                line_index.excerpt_of_lines(line_index.filled[start], line_index.filled[stop - 1] + 1),
            )
    return None


def _has_significant_text(text: str) -> bool:
    """Whether a text has letters or digits, or is one non-blank line.

    Several lines of only brackets don't count.
    """
    return any(map(str.isalnum, text)) or ("\n" not in text and bool(text.strip()))


@dataclass(frozen=True, slots=True)
class WidenedEdit:
    """An edit with both arguments extended by neighbouring lines of the file, and the lines it replaces."""

    first: int
    last: int
    old: list[str]
    new: list[str]


def widen_edit_by_present_lines(
    line_index: LineIndex, first: int, last: int, old: list[str], new: list[str]
) -> WidenedEdit | None:
    """Extend an edit by lines that `new` adds at its start or end and the file already has there.

    Returns None if there are none. A model that leaves out lines of `old` but includes them in `new` does not
    mean to duplicate them.
    """
    above = _count_present_lines_at_edge(line_index.lines_without_ends[:first][::-1], old, new)
    below = _count_present_lines_at_edge(line_index.lines_without_ends[last:], old[::-1], new[::-1])
    if above is None and below is None:
        return None
    rows_above, added_above = above or (0, 0)
    rows_below, added_below = below or (0, 0)
    head, foot = (
        line_index.lines_without_ends[first - rows_above : first],
        line_index.lines_without_ends[last : last + rows_below],
    )
    middle = new[added_above : len(new) - added_below]
    return WidenedEdit(first - rows_above, last + rows_below, [*head, *old, *foot], [*head, *middle, *foot])


def _count_present_lines_at_edge(rows: list[str], old: list[str], new: list[str]) -> tuple[int, int] | None:
    """Find the lines that `new` adds at one edge and the file already has there.

    Returns how many rows of the file and how many lines of `new` they are, or None if there are none. `old`
    and `new` start at the outer edge of the arguments; `rows` goes from the edited lines outwards.
    """
    edits = diff_line_edits(old, new)
    # Lines that replace others, or that `old` contains elsewhere, were not left out of `old`.
    if not edits or edits[0].end_a:
        return None
    known = {normalize_for_matching(line) for line in old if not is_blank(line)}
    for count in range(edits[0].end_b, 0, -1):
        wanted = [normalize_for_matching(line) for line in new[:count] if not is_blank(line)]
        if known.intersection(wanted):
            continue
        if is_blank(new[count - 1]) or sum(map(str.isalnum, "".join(wanted))) < _MIN_LETTERS_BESIDE:
            continue
        filled = (index for index, row in enumerate(rows) if not is_blank(row))
        there = list(islice(filled, len(wanted)))
        if [normalize_for_matching(rows[index]) for index in there] == wanted[::-1]:
            blanks = len(list(takewhile(is_blank, new[count:])))
            return there[-1] + 1, count + min(blanks, there[0])
    return None


def find_applied_new_text(line_index: LineIndex, old: str, new: str) -> AlreadyApplied | None:
    """Detect that the file has the new text instead of the old text.

    Returns None if it does not, or if the new text may be there by coincidence.
    """
    wanted = lines.convert_line_ends(new, "\n").strip("\n")
    letters = sum(map(str.isalnum, wanted))
    if letters < _MIN_LETTERS or wanted in lines.convert_line_ends(old, "\n"):
        return None
    at = line_index.text_with_line_feeds.find(wanted)
    if at < 0 or not _is_whole_lines(line_index.text_with_line_feeds, at, wanted):
        return None
    first = line_index.text_with_line_feeds.count("\n", 0, at)
    there = line_index.excerpt_of_lines(first, first + lines.count_lines(wanted))
    near = find_nearest_lines(line_index, old)
    if (
        near is not None
        and lines.count_lines(wanted) < lines.count_lines(old.strip("\n"))
        and _is_part_of_longer_block(near, there)
    ):
        return None
    # The edit was made if nothing like the old text remains, if the new text is where the old text should
    # be, or if it is too long to be there by coincidence.
    is_made = near is None or _has_overlap(near, there) or letters >= _MIN_LETTERS_ANYWHERE
    return _already_applied_outcome(line_index, there) if is_made else None


def _is_whole_lines(text: str, at: int, wanted: str) -> bool:
    """Whether the text at an offset fills whole lines, except for blanks before and after it."""
    before, after = text[:at].rpartition("\n")[2], text[at + len(wanted) :].partition("\n")[0]
    return not before.strip() and not after.strip()


def _is_part_of_longer_block(near_excerpt: Excerpt, excerpt: Excerpt) -> bool:
    """Whether the new text is part of a longer block like the old text, with lines still to be removed."""
    inside = near_excerpt.line <= excerpt.line and excerpt.end_line <= near_excerpt.end_line
    return inside and len(excerpt.lines) < len(near_excerpt.lines)


def _has_overlap(excerpt: Excerpt, other_excerpt: Excerpt) -> bool:
    return excerpt.line <= other_excerpt.end_line and other_excerpt.line <= excerpt.end_line


def _already_applied_outcome(line_index: LineIndex, excerpt: Excerpt) -> AlreadyApplied:
    return AlreadyApplied(text=line_index.text, excerpt=excerpt)
