"""Application of a patch's hunks to the text of one file: each in the only possible place, or refused.

A place is found by the hunk's lines, its line number and the scopes named after `@@`. If as many places fit
as there are equal hunks, they are matched in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from typing import NamedTuple

from handtools.text import lines
from handtools.text.patch_model import Hunk, split_at_line_feeds
from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    EditApplied,
    EditCandidate,
    EditRefused,
    MatchHint,
)
from handtools.tools.editing.replacement import refuse_missing_old_string, replace_text

MAX_HUNK_DRIFT = 3
"""How many lines off its stated line number a hunk may match if its lines occur in several places."""
MAX_LINES_COMPARED = 3_000_000
"""Maximum number of line comparisons for one patch; that many take a few seconds."""
_COST_OF_LOOSE_MATCHING = 4
"""How many plain comparisons take as long as loosely matching one line."""
_MAX_SHOWN = 5
# Added lines with at least this many letters and digits don't occur in a file by coincidence.
_MIN_LETTERS = 24
_OPENERS, _CLOSERS = ("{", "(", "[", ":"), ("}", ")", "]")
RowNormalizer = Callable[[str], str]


class TooManyComparisons(Exception):
    """Raised if the hunks fit too many places to compare them all."""


class ScopeRows(NamedTuple):
    """Rows of the file that a scope named after `@@` matches; the hunk must be at row `stop` or below."""

    start: int
    stop: int


@dataclass(slots=True)
class PatchingState:
    """The rows of a file while hunks are applied to them one by one, with the position and notes so far."""

    rows: list[str]
    cursor: int = 0
    """The index of the first row below the last applied hunk."""
    shift: int = 0
    """Offset between the file's rows below the cursor and the patch's line numbers."""
    notes: list[str] = field(default_factory=list)
    there: int = 0
    """How many hunks were skipped because they were already applied."""
    scope_rows: list[ScopeRows] | None = None
    """Scopes for the next hunk, set by hunks that only locate it; None after a hunk that changes lines."""
    lines_compared: int = 0

    def count_comparisons(self, count: int) -> None:
        """Count compared lines, to limit the time a patch can take; raises `TooManyComparisons`."""
        self.lines_compared += count
        if self.lines_compared > MAX_LINES_COMPARED:
            raise TooManyComparisons

    def rows_below_scope(
        self, found: list[int], scope_rows: list[ScopeRows] | None, *, strictly: bool = False
    ) -> list[int]:
        """Filter candidate rows to those below the scope or the last hunk.

        If there are none, returns all candidates, or none if `strictly`.
        """
        if scope_rows is None:
            return [at for at in found if at >= self.cursor] or ([] if strictly else found)
        chosen = {at for reach in scope_rows for at in _rows_in_block_of_scope(self.rows, found, reach)}
        return sorted(chosen) or ([] if strictly else found)

    def refuse_many_places(self, found: list[int]) -> EditRefused:
        where = ", ".join(str(at + 1) for at in found[:_MAX_SHOWN])
        return EditRefused(
            code="ambiguous",
            message=f"The hunk fits {len(found)} places: lines {where}.",
            hint="Add context lines around the change, or name the place after `@@`.",
            candidates=tuple(self.edit_candidate_for_row(at) for at in found[:_MAX_SHOWN]),
        )

    def refuse_hunk_elsewhere(self, hunk: Hunk, found: list[int]) -> EditRefused:
        """Refuse a hunk whose lines occur in the file, but not at the stated place."""
        where = ", ".join(str(at + 1) for at in found[:_MAX_SHOWN])
        if hunk.line is None:
            message = f"The hunk's lines are at line {where}, above the lines that should precede them."
            return EditRefused(
                code="not_found", message=message, hint="After `@@`, name a line above them or nothing."
            )
        expected = hunk.line + self.shift
        return EditRefused(
            code="not_found",
            message=f"The hunk says line {expected}, but its lines are at line {where}: "
            f"more than {MAX_HUNK_DRIFT} lines away.",
            hint="Put the number of the right place in the header"
            f"{', and sort the hunks by line' if found[0] < self.cursor else ''}.",
            candidates=tuple(self.edit_candidate_for_row(at) for at in found[:_MAX_SHOWN]),
        )

    def edit_candidate_for_row(self, at: int) -> EditCandidate:
        """Return a row of the file as a candidate to show in a refusal."""
        return EditCandidate(at + 1, row_without_line_end(self.rows[at]).strip())


def row_without_line_end(row: str) -> str:
    """Return a row of a file without its line ending."""
    return row.rstrip("\n").removesuffix("\r")


def is_locator_for_next_hunk(hunk: Hunk) -> bool:
    """Whether a hunk changes nothing and has no line number: it only locates the next hunk."""
    return hunk.line is None and [row.text_with_line_feed for row in hunk.old_rows] == [
        row.text_with_line_feed for row in hunk.new_rows
    ]


def find_hunk(state: PatchingState, hunk: Hunk, *, loosely: bool = False) -> tuple[list[int], bool]:
    """Find the rows where the old lines of a hunk occur, and whether they match including line endings.

    Matches at the hunk's line number take precedence. With `loosely`, surrounding blanks are ignored, which
    is enough to recognise lines that the hunk does not change.
    """
    keys: list[RowNormalizer] = (
        [str, row_without_line_end, str.strip] if loosely else [str, row_without_line_end]
    )
    if hunk.line is not None and not hunk.at_end and not hunk.is_open_ended:
        # Search the rest of the file only if the lines are not near the line number.
        expected = hunk.line + state.shift - 1
        stop = max(expected + MAX_HUNK_DRIFT + len(hunk.old_rows), 0)
        found = _find_in_rows(state, hunk, keys, max(state.cursor, expected - MAX_HUNK_DRIFT), stop)
        if found[0]:
            return found
    return _find_in_rows(state, hunk, keys, 0, len(state.rows))


def _find_in_rows(
    state: PatchingState, hunk: Hunk, keys: list[RowNormalizer], start: int, stop: int
) -> tuple[list[int], bool]:
    first: tuple[list[int], bool] = [], False
    for key in keys:
        wanted = [key(row.text_with_line_feed) for row in hunk.old_rows]
        rows = state.rows[start:stop]
        if key is not str:
            state.count_comparisons(len(rows))
            rows = [key(row) for row in rows]
        places = list(_exact_match_starts(state, rows, wanted))
        if hunk.at_end:
            # A patch does not mention blank lines at the end of a file.
            places = [at for at in places if not any(map(str.strip, rows[at + len(wanted) :]))][-1:]
        elif hunk.is_open_ended:
            places = [at for at in places if at + len(wanted) == len(rows)]
        found = [start + at for at in places]
        if hunk.line is None or hunk.line + state.shift - 1 in found:
            if found:
                return found, key is str
        elif not first[0]:
            first = found, key is str
    return first


def _exact_match_starts(state: PatchingState, rows: list[str], wanted: list[str]) -> Iterator[int]:
    at = 0
    while True:
        try:
            at = rows.index(wanted[0], at)
        except ValueError:
            return
        state.count_comparisons(1)
        if rows[at : at + len(wanted)] == wanted:
            yield at
        at += 1


def choose_hunk_row(
    state: PatchingState,
    hunk: Hunk,
    found: list[int],
    scope_rows: list[ScopeRows] | None,
    other_hunks: tuple[Hunk, ...],
) -> int | EditRefused:
    """Choose a hunk's row among the matching ones by line number, scope and order, or refuse."""
    if hunk.line is not None:
        expected = hunk.line + state.shift - 1
        near = [at for at in found if at >= state.cursor and abs(at - expected) <= MAX_HUNK_DRIFT]
        left = [at for at in near if at == expected] or near or _only_place(state, hunk, found)
    else:
        left = state.rows_below_scope(found, scope_rows, strictly=scope_rows is not None)
    if len(left) == 1:
        return left[0]
    if not left:
        return state.refuse_hunk_elsewhere(hunk, found)
    # If there are as many equal hunks as places, the first hunk belongs to the first place.
    state.count_comparisons(len(other_hunks))
    alike = 1 + sum(
        other.line is None and not other.scopes and other.old_rows == hunk.old_rows for other in other_hunks
    )
    if scope_rows is None and hunk.line is None and alike == len(left):
        return left[0]
    return state.refuse_many_places(left)


def _only_place(state: PatchingState, hunk: Hunk, found: list[int]) -> list[int]:
    """Return the only place of a hunk that is not at its line number; empty if another one may be meant.

    The lines may be a copy of lines that the hunk has changed already: its new lines must not occur elsewhere.
    """
    old, new = ([row.text_without_line_ending for row in rows] for rows in (hunk.old_rows, hunk.new_rows))
    unclear = not all(any(map(str.isalnum, "".join(side))) for side in (old, new))
    if len(found) > 1 or found[0] < state.cursor or unclear:
        return []
    if is_hunk_applied(state, hunk, found[0]):
        return found
    state.count_comparisons(len(state.rows))
    rows = [row_without_line_end(row) for row in state.rows]
    return [] if any(True for _ in _exact_match_starts(state, rows, new)) else found


def is_hunk_applied(state: PatchingState, hunk: Hunk, at: int) -> bool:
    """Whether the rows around a match are already as the hunk would make them."""
    mine, wanted = (
        [row.text_without_line_ending for row in rows] for rows in (hunk.old_rows, hunk.new_rows)
    )
    added = "".join(row.text for row in hunk.rows if row.sign == "+")
    if len(wanted) <= len(mine) or not any(map(str.isalnum, added)):
        return False
    for skipped in range(len(wanted) - len(mine) + 1):
        start = at - skipped
        there = [row_without_line_end(row) for row in state.rows[max(start, 0) : start + len(wanted)]]
        if wanted[skipped : skipped + len(mine)] == mine and there == wanted:
            return True
    return False


def find_hunk_scope_rows(state: PatchingState, hunk: Hunk) -> list[ScopeRows] | EditRefused | None:
    """Find the rows of the innermost scope named after `@@`.

    Returns None if no scope is named, a refusal if it is not found.
    """
    reaches = state.scope_rows
    for scope in hunk.scopes:
        state.count_comparisons(len(state.rows))
        found = _rows_of_scope_line(state.rows, scope)
        if not found:
            return EditRefused(
                code="not_found",
                message=f"The line `{scope}` after `@@` does not occur.",
                hint="Copy a line from above the hunk, or leave it out.",
            )
        reaches = [ScopeRows(at, at + 1) for at in state.rows_below_scope(found, reaches)]
    return reaches


def _rows_of_scope_line(rows: list[str], scope: str) -> list[int]:
    """Find the rows equal to the line named after `@@`; if there are none, the rows that begin with it."""
    wanted = scope.strip()
    whole = [at for at, row in enumerate(rows) if row.strip() == wanted]
    return whole or [at for at, row in enumerate(rows) if row.strip().startswith(wanted)]


def _rows_in_block_of_scope(rows: list[str], found: list[int], scope_rows: ScopeRows) -> list[int]:
    """Filter candidates to rows in the scope's block.

    Falls back to rows that close the block, then to all rows below the scope.
    """
    below = [at for at in found if at >= scope_rows.stop]
    if len(below) < 2:
        return below
    stop = _row_after_block(rows, scope_rows)
    inside = [at for at in below if at < stop]
    return inside or [at for at in below if _is_closing_row(rows, scope_rows, at)] or below


def _row_after_block(rows: list[str], scope_rows: ScopeRows) -> int:
    """Return the row after a scope's block: a Markdown section, or deeper rows and the one that ends them."""
    level = _heading_level(rows[scope_rows.start])
    if level:
        ends = (at for at in range(scope_rows.stop, len(rows)) if 0 < _heading_level(rows[at]) <= level)
        return next(ends, len(rows))
    depth = _least_depth(rows, scope_rows)
    ends = (
        at
        for at in range(scope_rows.stop, len(rows))
        if rows[at].strip() and _indentation_length(rows[at]) <= depth
    )
    return next((at + 1 for at in ends if not _continues_block(rows[at])), len(rows))


def _least_depth(rows: list[str], scope_rows: ScopeRows) -> int:
    """Return the least indentation of a scope's rows; -1 if all are blank, so that no row ends the block."""
    return min(
        (_indentation_length(row) for row in rows[scope_rows.start : scope_rows.stop] if row.strip()),
        default=-1,
    )


def _continues_block(row: str) -> bool:
    """Whether a row closes one bracket and opens the next part: `) -> int {`, `} else {`."""
    return row.strip().startswith(_CLOSERS) and row.rstrip().endswith(_OPENERS)


def _is_closing_row(rows: list[str], scope_rows: ScopeRows, at: int) -> bool:
    """Whether a row closes the block that the scope is in."""
    depth, between = _indentation_length(rows[at]), rows[scope_rows.stop : at]
    closing = rows[at].strip().startswith(_CLOSERS)
    return closing and all(_indentation_length(row) > depth for row in between if row.strip())


def _heading_level(row: str) -> int:
    """Return the level of a Markdown heading; 0 for any other row."""
    signs = len(row) - len(row.lstrip("#"))
    return signs if signs and row[signs : signs + 1] == " " else 0


def _indentation_length(row: str) -> int:
    return len(lines.indentation_of_line(row))


def insertion_row(state: PatchingState, hunk: Hunk) -> int | EditRefused:
    """Return the row at which to insert a hunk that only adds lines, or a refusal if that is unclear.

    The row follows from the hunk's scope, or is the end of the file.
    """
    if hunk.at_end or not state.rows:
        return len(state.rows)
    reaches = find_hunk_scope_rows(state, hunk)
    if isinstance(reaches, EditRefused):
        return reaches
    if reaches is None:
        return _refusal_of_unplaced_addition(state, hunk)
    if len(reaches) > 1:
        return state.refuse_many_places([reach.start for reach in reaches])
    [reach] = reaches
    if _belongs_outside_scope(state.rows, reach, hunk):
        return _file_end_or_refusal(state, reach)
    return reach.stop if hunk.scopes else _refusal_of_unplaced_addition(state, hunk)


def _belongs_outside_scope(rows: list[str], scope_rows: ScopeRows, hunk: Hunk) -> bool:
    """Whether added lines belong outside the scope's section or block, by heading level or indentation."""
    first = next((row.text for row in hunk.rows if row.text.strip()), "")
    if _heading_level(rows[scope_rows.start]):
        return 0 < _heading_level(first) <= _heading_level(rows[scope_rows.start])
    depth = _least_depth(rows, scope_rows)
    below = next((row for row in rows[scope_rows.stop :] if row.strip()), "")
    return _indentation_length(below) > depth >= _indentation_length(first)


def _file_end_or_refusal(state: PatchingState, scope_rows: ScopeRows) -> int | EditRefused:
    """Return the end of the file if the scope's block is the last one; otherwise refuse."""
    last = _last_row_of_scope(state.rows, scope_rows)
    if not any(row.strip() for row in state.rows[last + 1 :]):
        return len(state.rows)
    named = row_without_line_end(state.rows[scope_rows.start]).strip()
    return EditRefused(
        code="not_found",
        message=f"The hunk only adds lines, and they don't belong to the block that `{named}` opens.",
        hint=f"To put them after it, add line {last + 1} to the hunk as context, with a space before it.",
        candidates=(state.edit_candidate_for_row(last),),
    )


def _last_row_of_scope(rows: list[str], scope_rows: ScopeRows) -> int:
    """Return the last non-blank row of a scope's section, or of its block including the closing row."""
    if _heading_level(rows[scope_rows.start]):
        stop = _row_after_block(rows, scope_rows)
    else:
        depth = _least_depth(rows, scope_rows)
        below = ((at, rows[at]) for at in range(scope_rows.stop, len(rows)) if rows[at].strip())
        ends = (at for at, row in below if _indentation_length(row) <= depth and not _continues_block(row))
        stop = next(ends, len(rows))
        stop += stop < len(rows) and rows[stop].strip().startswith(_CLOSERS)
    return max(at for at in range(stop) if rows[at].strip())


def _refusal_of_unplaced_addition(state: PatchingState, hunk: Hunk) -> EditRefused:
    last = max((at for at, row in enumerate(state.rows) if row.strip()), default=0)
    how = "" if hunk.line is not None else "; or put `*** End of File` below them"
    return EditRefused(
        code="not_found",
        message="The hunk only adds lines and names no line to put them after.",
        hint="Add the line before them to the hunk as context, with a space before it. "
        f"For the end of the file that is line {last + 1}{how}.",
        candidates=(state.edit_candidate_for_row(last),),
    )


def find_added_lines(state: PatchingState, hunk: Hunk, at: int | None) -> int | None:
    """Find the row where a hunk's added lines already are: at its place, or anywhere if it names no place.

    Returns None if they are not there.
    """
    added = [row.text_without_line_ending for row in hunk.rows]
    while added and not added[-1].strip():
        added.pop()
    letters = sum(map(str.isalnum, "".join(added)))
    state.count_comparisons(len(state.rows))
    rows = [row_without_line_end(row) for row in state.rows]
    if at is not None and at < len(rows):
        return at if letters and rows[at : at + len(added)] == added else None
    if letters < _MIN_LETTERS:
        return None
    found = list(_exact_match_starts(state, rows, added))
    if at is None and hunk.line is not None:
        expected = hunk.line + state.shift
        found = [start for start in found if abs(start - expected) <= MAX_HUNK_DRIFT]
    if at is not None:
        found = [start for start in found if not any(row.strip() for row in rows[start + len(added) :])]
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class PatchedText:
    """Result of applying hunks: new text, notes on inexact matches, and how many were already applied."""

    text: str
    notes: tuple[str, ...] = ()
    there: int = 0


@dataclass(frozen=True, slots=True)
class HunkMisfit:
    """The first hunk that can't be applied, counted from 1, and the refusal."""

    hunk: int
    refused: EditRefused


def apply_hunks(text: str, hunks: tuple[Hunk, ...]) -> PatchedText | HunkMisfit:
    """Apply all hunks to a text; return the patched text, or the first hunk that does not fit and why."""
    state = PatchingState(split_at_line_feeds(text))
    for number, hunk in enumerate(hunks, 1):
        try:
            refused = _apply_hunk(state, hunk, number, hunks[number:])
        except TooManyComparisons:
            refused = EditRefused(
                code="ambiguous",
                message="The hunks of this patch fit too many places in the file.",
                hint="Send fewer hunks at a time, with the exact line numbers in their headers.",
            )
        if refused is not None:
            return HunkMisfit(number, refused)
    return PatchedText("".join(state.rows), tuple(state.notes), state.there)


def _apply_hunk(
    state: PatchingState, hunk: Hunk, number: int, other_hunks: tuple[Hunk, ...]
) -> EditRefused | None:
    if not hunk.old_rows:
        return _apply_insertion_hunk(state, hunk, number)
    stated = _exact_row_at_line_number(state, hunk)
    if stated is not None:
        # Diffs made by git match exactly at their line number: skip searching the rest of the file.
        _replace_hunk_rows(state, stated, hunk, own_ends=True)
        return None
    reaches = find_hunk_scope_rows(state, hunk)
    if isinstance(reaches, EditRefused):
        return reaches
    if is_locator_for_next_hunk(hunk):
        return _process_locator_hunk(state, hunk, reaches)
    found, by_bytes = find_hunk(state, hunk)
    if not found:
        return _apply_hunk_loosely(state, hunk, number, reaches)
    at = choose_hunk_row(state, hunk, found, reaches, other_hunks)
    if isinstance(at, EditRefused):
        return at
    if hunk.line is not None and at + 1 != hunk.line + state.shift:
        state.notes.append(f"hunk {number} matched at line {at + 1}, not {hunk.line + state.shift}")
    if is_hunk_applied(state, hunk, at):
        _skip_applied_hunk(state, number, at, len(hunk.old_rows))
    else:
        _replace_hunk_rows(state, at, hunk, own_ends=by_bytes)
    return None


def _process_locator_hunk(
    state: PatchingState, hunk: Hunk, scope_rows: list[ScopeRows] | None
) -> EditRefused | None:
    """Process a hunk that has only context lines, and so limits where the next hunk may match.

    Returns a refusal if its lines are not in the file.
    """
    found, _ = find_hunk(state, hunk, loosely=True)
    if not found:
        refused = refuse_missing_old_string(
            "".join(state.rows), "".join(f"{row.text_without_line_ending}\n" for row in hunk.old_rows)
        )
        why = "The hunk changes nothing and only locates the next one, but its lines are not in the file."
        return dataclass_replace(refused, message=f"{why} {refused.message}")
    state.scope_rows = [
        ScopeRows(at, at + len(hunk.old_rows)) for at in state.rows_below_scope(found, scope_rows)
    ]
    return None


def _skip_applied_hunk(state: PatchingState, number: int, at: int, height: int) -> None:
    """Note that a hunk is already applied, and move the cursor below it."""
    state.notes.append(f"hunk {number} was already applied, at line {at + 1}")
    state.there += 1
    state.cursor, state.scope_rows = at + height, None


def _exact_row_at_line_number(state: PatchingState, hunk: Hunk) -> int | None:
    """Return the row at a hunk's line number if the hunk's old lines are exactly there, otherwise None.

    Also None if the hunk names a scope or is tied to the end of the file.
    """
    if hunk.line is None or hunk.scopes or hunk.at_end or hunk.is_open_ended:
        return None
    at, wanted = hunk.line + state.shift - 1, [row.text_with_line_feed for row in hunk.old_rows]
    return at if at >= state.cursor and state.rows[at : at + len(wanted)] == wanted else None


def _apply_insertion_hunk(state: PatchingState, hunk: Hunk, number: int) -> EditRefused | None:
    """Apply a hunk that only adds lines; skip it if they exist, refuse it if its place is unclear."""
    at = insertion_row(state, hunk)
    there = find_added_lines(state, hunk, None if isinstance(at, EditRefused) else at)
    if there is not None:
        _skip_applied_hunk(state, number, there, len(hunk.rows))
    elif isinstance(at, EditRefused):
        return at
    else:
        _replace_hunk_rows(state, at, hunk, own_ends=not state.rows)
    return None


def _replace_hunk_rows(state: PatchingState, at: int, hunk: Hunk, *, own_ends: bool) -> None:
    """Replace the hunk's old rows with the new ones; context rows keep the file's bytes."""
    height = len(hunk.old_rows)
    end = _line_ending_near(state.rows, at, height)
    there = iter(state.rows[at : at + height])
    written: list[str] = []
    for row in hunk.rows:
        if row.sign == "+":
            written.append(
                row.text_with_line_feed
                if own_ends
                else row.text_without_line_ending + (end if row.ended else "")
            )
        elif row.sign == " ":
            written.append(next(there))
        else:
            next(there)
    was_open = at + height == len(state.rows) and state.rows[-1:] != [] and state.rows[-1][-1] != "\n"
    state.rows[at : at + height] = written
    state.cursor, state.scope_rows = at + len(written), None
    for index in range(max(at - 1, 0), min(state.cursor, len(state.rows) - 1)):
        if not state.rows[index].endswith("\n"):
            state.rows[index] += end
    silent = all(row.ended for row in hunk.rows)
    if was_open and silent and written and hunk.new_rows[-1].sign == "+":
        # The patch does not mention the missing final line ending, so the file stays without one.
        state.rows[-1] = row_without_line_end(state.rows[-1])
    if hunk.line is not None:
        start = hunk.line if hunk.old_rows else hunk.line + 1
        state.shift = at + 1 - start + hunk.added_minus_removed


def _line_ending_near(rows: list[str], at: int, height: int) -> str:
    """Return the line ending of a hunk's rows, or of the row above if the hunk has no old rows."""
    near = [*rows[at if height else max(at - 1, 0) : at + height], *rows[:1]]
    ended = next((row for row in near if row.endswith("\n")), "\n")
    return "\r\n" if ended.endswith("\r\n") else "\n"


def _apply_hunk_loosely(
    state: PatchingState, hunk: Hunk, number: int, scope_rows: list[ScopeRows] | None
) -> EditRefused | None:
    """Apply a hunk whose lines don't match exactly, by matching whole lines loosely below its scope.

    Returns a refusal if that is not possible.
    """
    if any("\r" in row.text_without_line_ending for row in hunk.rows):
        # Loose matching would treat the carriage return as a line ending.
        return EditRefused(
            code="not_found",
            message="The hunk's lines don't match the file exactly, and some contain a carriage return.",
            hint="Read the file again and copy its lines exactly, or change them with a command.",
        )
    state.count_comparisons(_COST_OF_LOOSE_MATCHING * len(state.rows))
    text = "".join(state.rows)
    line = None if hunk.line is None else hunk.line + state.shift
    hint = None if line is None else MatchHint(line=line, within=MAX_HUNK_DRIFT)
    old, new = (
        "".join(f"{row.text_without_line_ending}\n" for row in rows)
        for rows in (hunk.old_rows, hunk.new_rows)
    )
    outcome = replace_text(text, old, new, hint=hint)
    if isinstance(outcome, EditRefused):
        return outcome
    if isinstance(outcome, AlreadyApplied):
        _skip_applied_hunk(state, number, outcome.excerpt.line - 1, len(outcome.excerpt.lines))
        return None
    span = outcome.spans[0]
    first = lines.line_number_at(text, span.start)
    if span.start and text[span.start - 1] not in "\r\n":
        row = row_without_line_end(state.rows[first - 1])
        return EditRefused(
            code="not_found",
            message=f"The hunk's first line is only part of line {first}.",
            hint="Send whole lines in hunks.",
            candidates=(EditCandidate(first, row),),
        )
    last = lines.line_number_at(text, outcome.spans[-1].end - 1)
    if hunk.is_open_ended and last < lines.count_lines(text):
        return EditRefused(
            code="not_found",
            message=f"The hunk says that the file ends with its lines, but they are at line {first}.",
            hint="If that is the right place, leave out `\\ No newline at end of file`.",
            candidates=(state.edit_candidate_for_row(first - 1),),
        )
    if not state.rows_below_scope(
        [first - 1], scope_rows, strictly=hunk.line is not None or scope_rows is not None
    ):
        return state.refuse_hunk_elsewhere(hunk, [first - 1])
    _apply_loose_match(state, outcome, hunk, number, first)
    return None


def _apply_loose_match(
    state: PatchingState, applied: EditApplied, hunk: Hunk, number: int, first: int
) -> None:
    height, before = len(hunk.new_rows), len(state.rows)
    text = applied.text
    if hunk.new_rows and hunk.is_open_ended:
        was_open = not state.rows[-1].endswith("\n")
        if was_open and hunk.new_rows[-1].ended:
            text += _line_ending_near(state.rows, first - 1, len(hunk.old_rows))
        elif not was_open and not hunk.new_rows[-1].ended:
            text = lines.without_line_ending(text)
    state.rows = split_at_line_feeds(text)
    said = "" if applied.tier == "exact" else f" except for {applied.tier}"
    notes = "".join(f"; {note}" for note in applied.notes)
    state.notes.append(f"hunk {number} matched at line {first}{said}{notes}")
    state.cursor, state.scope_rows = min(first - 1 + height, len(state.rows)), None
    if hunk.line is not None:
        state.shift = first - hunk.line + len(state.rows) - before
