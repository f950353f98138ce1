"""Applying: the hunks of one file on its text, each in the one place that can be meant or not at all."""

from dataclasses import dataclass
from dataclasses import replace as dataclass_replace

from handtools.text import lines
from handtools.text.matching import AlreadyApplied, Applied, Hint, Place, Refused, missing, replace
from handtools.text.patching.forms import Hunk, split_rows
from handtools.text.patching.placing import (
    MOST_DRIFT,
    Reach,
    Sheet,
    add_below,
    added_already,
    bare,
    find,
    has_already,
    is_locator,
    reaches_of,
    standing,
)


@dataclass(frozen=True, slots=True)
class Patched:
    """The new text, what was not letter for letter as the patch has it, and how many hunks had nothing to do."""

    text: str
    notes: tuple[str, ...] = ()
    there: int = 0


@dataclass(frozen=True, slots=True)
class Misfit:
    """The hunk that does not fit, counted from 1, and why."""

    hunk: int
    refused: Refused


def apply(text: str, hunks: tuple[Hunk, ...]) -> Patched | Misfit:
    """Lay every hunk on the text; the first that does not fit is named."""
    sheet = Sheet(split_rows(text))
    for number, hunk in enumerate(hunks, 1):
        refused = _lay(sheet, hunk, number, hunks[number:])
        if refused is not None:
            return Misfit(number, refused)
    return Patched("".join(sheet.rows), tuple(sheet.notes), sheet.there)


def _lay(sheet: Sheet, hunk: Hunk, number: int, rest: tuple[Hunk, ...]) -> Refused | None:
    if not hunk.old:
        return _add(sheet, hunk, number)
    if _stands_as_said(sheet, hunk):
        # What git wrote fits where it says: no need to look at the rest of the file.
        _write(sheet, (hunk.line or 0) + sheet.shift - 1, hunk, own_ends=True)
        return None
    reaches = reaches_of(sheet, hunk)
    if isinstance(reaches, Refused):
        return reaches
    if is_locator(hunk):
        return _locate(sheet, hunk, reaches)
    found, by_bytes = find(sheet, hunk)
    if not found:
        return _lay_loosely(sheet, hunk, number, reaches)
    at = standing(sheet, hunk, found, reaches, rest)
    if isinstance(at, Refused):
        return at
    if hunk.line is not None and at + 1 != hunk.line + sheet.shift:
        sheet.notes.append(f"hunk {number} stood at line {at + 1}, not {hunk.line + sheet.shift}")
    if has_already(sheet, hunk, at):
        _pass_by(sheet, number, at, len(hunk.old))
    else:
        _write(sheet, at, hunk, own_ends=by_bytes)
    return None


def _locate(sheet: Sheet, hunk: Hunk, reaches: list[Reach] | None) -> Refused | None:
    """A hunk that only keeps lines says where the next one is."""
    found, _ = find(sheet, hunk, loosely=True)
    if not found:
        refused = missing("".join(sheet.rows), "".join(f"{row.bare}\n" for row in hunk.old))
        why = "The hunk changes nothing: it says where the next one is, but its lines are not there."
        return dataclass_replace(refused, message=f"{why} {refused.message}")
    sheet.reaches = [Reach(at, at + len(hunk.old)) for at in sheet.below(found, reaches)]
    return None


def _pass_by(sheet: Sheet, number: int, at: int, height: int) -> None:
    """Say that the hunk has nothing to do, and go on below it."""
    sheet.notes.append(f"hunk {number} has nothing to do: it is already there, at line {at + 1}")
    sheet.there += 1
    sheet.cursor, sheet.reaches = at + height, None


def _stands_as_said(sheet: Sheet, hunk: Hunk) -> bool:
    if hunk.line is None or hunk.scopes or hunk.at_end:
        return False
    at, wanted = hunk.line + sheet.shift - 1, [row.full for row in hunk.old]
    return at >= sheet.cursor and sheet.rows[at : at + len(wanted)] == wanted


def _add(sheet: Sheet, hunk: Hunk, number: int) -> Refused | None:
    """A hunk that only adds: never again where it is there, never just anywhere."""
    at = add_below(sheet, hunk)
    there = added_already(sheet, hunk, None if isinstance(at, Refused) else at)
    if there is not None:
        _pass_by(sheet, number, there, len(hunk.rows))
    elif isinstance(at, Refused):
        return at
    else:
        _write(sheet, at, hunk, own_ends=not sheet.rows)
    return None


def _write(sheet: Sheet, at: int, hunk: Hunk, *, own_ends: bool) -> None:
    """Replace the old rows by the new: what is kept keeps the file's bytes."""
    height = len(hunk.old)
    end = _ending(sheet.rows, at, height)
    there = iter(sheet.rows[at : at + height])
    written: list[str] = []
    for row in hunk.rows:
        if row.sign == "+":
            written.append(row.full if own_ends else row.bare + (end if row.ended else ""))
        elif row.sign == " ":
            written.append(next(there))
        else:
            next(there)
    was_open = at + height == len(sheet.rows) and sheet.rows[-1:] != [] and sheet.rows[-1][-1] != "\n"
    sheet.rows[at : at + height] = written
    sheet.cursor, sheet.reaches = at + len(written), None
    for index in range(max(at - 1, 0), min(sheet.cursor, len(sheet.rows) - 1)):
        if not sheet.rows[index].endswith("\n"):
            sheet.rows[index] += end
    silent = all(row.ended for row in hunk.rows)
    if was_open and silent and written and hunk.new[-1].sign == "+":
        # The patch says nothing of the end of the file: one without a final line end stays so.
        sheet.rows[-1] = bare(sheet.rows[-1])
    if hunk.line is not None:
        start = hunk.line if hunk.old else hunk.line + 1
        sheet.shift = at + 1 - start + hunk.growth


def _ending(rows: list[str], at: int, height: int) -> str:
    """The line end of the lines around."""
    near = [*rows[max(at - 1, 0) : at + height + 1], *rows[:1]]
    ended = next((row for row in near if row.endswith("\n")), "\n")
    return "\r\n" if ended.endswith("\r\n") else "\n"


def _lay_loosely(sheet: Sheet, hunk: Hunk, number: int, reaches: list[Reach] | None) -> Refused | None:
    """Not there letter for letter: the matcher decides, and what it finds must be whole lines below the scope."""
    text = "".join(sheet.rows)
    line = None if hunk.line is None else hunk.line + sheet.shift
    hint = None if line is None else Hint(line=line, within=MOST_DRIFT)
    old, new = ("".join(f"{row.bare}\n" for row in rows) for rows in (hunk.old, hunk.new))
    outcome = replace(text, old, new, hint=hint)
    if isinstance(outcome, Refused):
        return outcome
    if isinstance(outcome, AlreadyApplied):
        _pass_by(sheet, number, outcome.window.line - 1, len(outcome.window.lines))
        return None
    span = outcome.spans[0]
    first = lines.line_at(text, span.start)
    if span.start and text[span.start - 1] not in "\r\n":
        row = bare(sheet.rows[first - 1])
        return Refused(
            code="not_found",
            message=f"The hunk's first line is only a part of line {first}.",
            hint="Hunks have whole lines.",
            places=(Place(first, row),),
        )
    if not sheet.below([first - 1], reaches, strictly=hunk.line is not None or reaches is not None):
        return sheet.elsewhere(hunk, [first - 1])
    _take(sheet, outcome, hunk, number, first)
    return None


def _take(sheet: Sheet, outcome: Applied, hunk: Hunk, number: int, first: int) -> None:
    height, before = len(hunk.new), len(sheet.rows)
    sheet.rows = split_rows(outcome.text)
    said = "" if outcome.tier == "exact" else f" except for {outcome.tier}"
    notes = "".join(f"; {note}" for note in outcome.notes)
    sheet.notes.append(f"hunk {number} matched at line {first}{said}{notes}")
    sheet.cursor, sheet.reaches = min(first - 1 + height, len(sheet.rows)), None
    if hunk.line is not None:
        sheet.shift = first - hunk.line + len(sheet.rows) - before
