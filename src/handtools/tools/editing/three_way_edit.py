"""Edits of a text that differs from what the model remembers, by three-way merge.

`merge_edit_of_seen_text` applies an edit of the text as last read to the current text. If `old_string` is
almost in the file, in only one place, it is used as the base of a merge: the change is made if it does not
overlap the differences, or if the differences are an earlier version of the same change.
"""

import re
from dataclasses import dataclass, replace

from handtools.text import lines
from handtools.text.diffs import three_way_merge
from handtools.text.diffs.alignment import common_ends
from handtools.text.diffs.unified_diff import diff_line_edits
from handtools.text.lines import BLANKS, SplicedText
from handtools.tools.editing import already_applied, refusals
from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    CharSpan,
    EditApplied,
    EditRefused,
    Excerpt,
    MatchTier,
)
from handtools.tools.editing.nearest_lines import find_nearest_lines
from handtools.tools.editing.normalized_lines import LineIndex, is_blank, substring_offsets


def checked_against_seen(
    line_index: LineIndex, old: str, outcome: EditApplied | AlreadyApplied | EditRefused, seen: str
) -> EditApplied | AlreadyApplied | EditRefused:
    """Refuse an applied edit if its old text was ambiguous in the text that the agent read."""
    if not isinstance(outcome, EditApplied):
        return outcome
    if (
        len(
            substring_offsets(
                lines.convert_line_ends(seen, "\n"), lines.convert_line_ends(old, "\n"), most=2
            )
        )
        < 2
    ):
        return outcome
    first = lines.line_number_at(line_index.text, outcome.spans[0].start) - 1
    stale = refusals.refuse_stale(line_index, first, first + lines.count_lines(old))
    return replace(stale, hint="Read the file again, then send the edit.", suggestion=None)


def merge_edit_of_seen_text(
    line_index: LineIndex, seen: str, edited: EditApplied
) -> EditApplied | AlreadyApplied | EditRefused:
    """Merge an edit of the text that the agent read into the current text, or refuse on a conflict."""
    merge = three_way_merge.three_way_merge(seen, line_index.text, edited.text)
    if merge.conflicts:
        first = merge.conflicts[0]
        height = max(1, lines.count_lines(first.ours))
        return refusals.refuse_stale(line_index, first.line - 1, first.line - 1 + height)
    if merge.text == line_index.text:
        line = lines.line_number_at(edited.text, edited.spans[0].start)
        return AlreadyApplied(text=line_index.text, excerpt=line_index.excerpt_of_lines(line - 1, line))
    sides = map(lines.split_lines, (seen, line_index.text, edited.text))
    if (touched := three_way_merge.edit_overlapping_theirs(*sides)) is not None:
        return refusals.refuse_stale(line_index, touched.start_b, max(touched.end_b, touched.start_b + 1))
    span = _changed_span(line_index.text, merge.text)
    written = merge.text[span.start : len(merge.text) - len(line_index.text) + span.end]
    return EditApplied(
        spliced=SplicedText(line_index.text, span.start, span.end, written),
        tier="text as last read",
        spans=(span,),
        notes=edited.notes,
    )


def _changed_span(before: str, after: str) -> CharSpan:
    """Return the smallest range of `before` outside which both texts are equal."""
    head, tail = common_ends(before, after)
    return CharSpan(head, len(before) - tail)


# Different blocks share fewer equal lines than this. With this many it is the same block, and the model
# misremembered the rest.
_MIN_SAME_LINES = 13
_MIN_SAME_SHARE = 0.75
# An earlier version of the change already identifies the place, so fewer equal lines are enough.
_MIN_SAME_BESIDE_VERSION = 2
_MIN_LETTERS_BESIDE_VERSION = 24
# One text is a version of the other if they share this many letters of added lines and words, and this
# share of all added words.
_MIN_SHARED_LETTERS = 12
_MIN_SHARED_PART = 0.75
_LONGEST = 2000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Merged:
    rows: list[str]
    tier: MatchTier


def replace_in_nearest_lines(
    line_index: LineIndex, old: list[str], new: list[str]
) -> EditApplied | AlreadyApplied | None:
    """Apply the change to the file's nearly equal lines by a three-way merge.

    Returns None if the place or the meaning of the change is unclear.
    """
    ending = lines.uniform_ending(line_index.text)
    if ending is None or len(old) > _LONGEST or len(new) > _LONGEST:
        return None
    window = find_nearest_lines(line_index, "\n".join(old))
    if window is None:
        return None
    if (
        wider := already_applied.widen_edit_by_present_lines(
            line_index, window.line - 1, window.end_line, old, new
        )
    ) is not None:
        window, old, new = line_index.excerpt_of_lines(wider.first, wider.last), wider.old, wider.new
    merged = _merge_into_file_lines(old, list(window.lines), new)
    if merged is None or not _is_only_place(line_index, old, window, merged.tier):
        return None
    if merged.rows == list(window.lines):
        return AlreadyApplied(text=line_index.text, excerpt=window)
    span = line_index.span(window.line - 1, window.end_line)
    ends_with_line_ending = bool(lines.ending_of_line(line_index.text[span.start : span.end]))
    written = ending.join(merged.rows) + (ending if ends_with_line_ending and merged.rows else "")
    return EditApplied(
        spliced=SplicedText(line_index.text, span.start, span.end, written),
        tier=merged.tier,
        spans=(span,),
        notes=(_difference_note(old, window, merged.tier),),
    )


def _merge_into_file_lines(old: list[str], there: list[str], new: list[str]) -> _Merged | None:
    """Merge the change into the file's lines.

    Returns None on a conflict, unless the file has an earlier version of the change.
    """
    # Ignore trailing blanks; the file keeps its own.
    base, ours, theirs = ([f"{line.rstrip(BLANKS)}\n" for line in side] for side in (old, there, new))
    known = set(_WORD.findall("".join(base)))
    rows: list[str] = []
    tier: MatchTier = "misremembered context"
    ours_at = theirs_at = 0
    for region in three_way_merge.split_into_merge_regions(base, ours, theirs):
        ours_end = ours_at + region.ours.count("\n")
        theirs_end = theirs_at + region.theirs.count("\n")
        settled = three_way_merge.agreed_text(region)
        if settled is None and not _is_earlier_version(region, known):
            return None
        if settled is None:
            tier = "an earlier version of the change"
        takes_new = settled is None or (settled == region.theirs != region.ours)
        rows += new[theirs_at:theirs_end] if takes_new else there[ours_at:ours_end]
        ours_at, theirs_at = ours_end, theirs_end
    if tier == "misremembered context" and three_way_merge.edit_overlapping_theirs(base, ours, theirs):
        return None
    return _Merged(rows, tier)


def _is_earlier_version(region: three_way_merge.MergeRegion, known: set[str]) -> bool:
    """Whether most words that the file adds to the old text are also added by the new text.

    They must share whole added lines too, since any two texts about the same thing share a few words.
    """
    added, wanted = (set(_WORD.findall(side)) - known for side in (region.ours, region.theirs))
    shared = sum(map(len, added & wanted))
    # An earlier version keeps most of what the change keeps; unrelated text does not.
    base, ours, theirs = (set(_WORD.findall(side)) for side in (region.base, region.ours, region.theirs))
    if 2 * sum(map(len, base & theirs & ours)) < sum(map(len, base & theirs)):
        return False
    lines_added = _non_blank_lines(region.ours) & _non_blank_lines(region.theirs) - _non_blank_lines(
        region.base
    )
    letters = sum(map(str.isalnum, "".join(lines_added)))
    enough = min(letters, shared) >= _MIN_SHARED_LETTERS
    return enough and shared >= _MIN_SHARED_PART * sum(map(len, added))


def _non_blank_lines(text: str) -> set[str]:
    return {line.strip() for line in text.split("\n") if not is_blank(line)}


def _is_only_place(line_index: LineIndex, old: list[str], excerpt: Excerpt, tier: MatchTier) -> bool:
    """Whether the excerpt contains enough of the old text, and nothing similar is elsewhere in the file."""
    same = _common_lines(old, list(excerpt.lines))
    filled = sum(not is_blank(line) for line in old)
    letters = sum(map(str.isalnum, "".join(same)))
    if tier == "misremembered context":
        enough = len(set(same)) >= _MIN_SAME_LINES and len(same) >= _MIN_SAME_SHARE * filled
    else:
        enough = len(same) >= max(_MIN_SAME_BESIDE_VERSION, filled / 2)
        enough = enough and letters >= _MIN_LETTERS_BESIDE_VERSION
    if not enough:
        return False
    above, below = (
        line_index.lines_without_ends[: excerpt.line - 1],
        line_index.lines_without_ends[excerpt.end_line :],
    )
    return not any(_has_similar_block(rows, same) for rows in (above, below))


def _common_lines(old: list[str], there: list[str]) -> list[str]:
    """Return the non-blank lines that two lists have in common, in order."""
    mine, theirs = ([line.rstrip(BLANKS) for line in side if not is_blank(line)] for side in (old, there))
    at, same = 0, []
    for edit in [*diff_line_edits(mine, theirs), None]:
        same += mine[at : edit.start_a if edit else None]
        at = edit.end_a if edit else at
    return same


def _has_similar_block(rows: list[str], same: list[str]) -> bool:
    """Whether half of the lines in `same` also occur in `rows`, close together."""
    wanted = set(same)
    found = [index for index, row in enumerate(rows) if row.rstrip(BLANKS) in wanted]
    need = max(2, (len(wanted) + 1) // 2)
    return any(
        found[end] - found[end - need + 1] <= 2 * len(same)
        and len({rows[index].rstrip(BLANKS) for index in found[end - need + 1 : end + 1]}) == need
        for end in range(need - 1, len(found))
    )


def _difference_note(old: list[str], excerpt: Excerpt, tier: MatchTier) -> str:
    where = f"lines {excerpt.line}-{excerpt.end_line}"
    if tier == "misremembered context":
        missing = next(
            (line for line in _missing_lines(old, list(excerpt.lines)) if not is_blank(line)), ""
        )
        said = f", such as {missing.strip()[:60]!r}" if missing else ""
        return f"{where} of the file differ from old_string{said}; lines outside the edit were kept"
    return f"{where} had an earlier version of the change, not in old_string; it was replaced"


def _missing_lines(old: list[str], there: list[str]) -> list[str]:
    known = {line.rstrip(BLANKS) for line in there}
    return [line for line in old if line.rstrip(BLANKS) not in known]
