"""Applying: the hunks of one file on its text, in file order, each where it says or not at all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from handtools.text import lines
from handtools.text.matching import Applied, Hint, Place, Refused, replace
from handtools.text.patching.forms import Hunk, split_rows

MOST_DRIFT = 3
"""By so many lines a hunk may stand above or below where it says."""
_MOST_SHOWN = 5
Key = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Patched:
    """The new text, and what was not letter for letter as the patch has it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Misfit:
    """The hunk that does not fit, counted from 1, and why."""

    hunk: int
    refused: Refused


@dataclass(slots=True)
class _Sheet:
    """A text while hunks are laid on it."""

    rows: list[str]
    cursor: int = 0
    """The first row below the last hunk."""
    shift: int = 0
    """How far rows below the cursor stand from where the patch counts them."""
    notes: list[str] = field(default_factory=list)


def apply(text: str, hunks: tuple[Hunk, ...]) -> Patched | Misfit:
    """Lay every hunk on the text; the first that does not fit is named."""
    sheet = _Sheet(split_rows(text))
    for number, hunk in enumerate(hunks, 1):
        refused = _lay(sheet, hunk, number)
        if refused is not None:
            return Misfit(number, refused)
    return Patched("".join(sheet.rows), tuple(sheet.notes))


def _lay(sheet: _Sheet, hunk: Hunk, number: int) -> Refused | None:
    if not hunk.old:
        return _add(sheet, hunk)
    if _stands_as_said(sheet, hunk):
        # What git wrote fits where it says: no need to look at the rest of the file.
        _write(sheet, (hunk.line or 0) + sheet.shift - 1, hunk, own_ends=True)
        return None
    start = _below_scopes(sheet, hunk)
    if isinstance(start, Refused):
        return start
    found, key = _found(sheet, hunk, start)
    if not found:
        return _lay_loosely(sheet, hunk, number)
    left = _narrowed(sheet, hunk, found)
    if len(left) != 1:
        return _many(sheet, left) if left else _elsewhere(sheet, hunk, found)
    at = left[0]
    if hunk.line is not None and at + 1 != hunk.line + sheet.shift:
        sheet.notes.append(f"hunk {number} stood at line {at + 1}, not {hunk.line + sheet.shift}")
    _write(sheet, at, hunk, own_ends=key is _whole)
    return None


def _stands_as_said(sheet: _Sheet, hunk: Hunk) -> bool:
    if hunk.line is None or hunk.scopes or hunk.at_end:
        return False
    at, wanted = hunk.line + sheet.shift - 1, [row.full for row in hunk.old]
    return at >= sheet.cursor and sheet.rows[at : at + len(wanted)] == wanted


def _whole(row: str) -> str:
    return row


def _bare(row: str) -> str:
    return row.rstrip("\n").removesuffix("\r")


def _found(sheet: _Sheet, hunk: Hunk, start: int) -> tuple[list[int], Key]:
    """Where the old lines stand below `start`: letter for letter, else with other line ends."""
    for key in (_whole, _bare):
        wanted = [key(row.full) for row in hunk.old]
        rows = sheet.rows if key is _whole else [_bare(row) for row in sheet.rows]
        found = list(_places(rows, wanted, start))
        if hunk.at_end:
            found = [at for at in found if at + len(wanted) == len(rows)]
        if found:
            return found, key
    return [], _bare


def _places(rows: list[str], wanted: list[str], start: int) -> Iterator[int]:
    at = start
    while True:
        try:
            at = rows.index(wanted[0], at)
        except ValueError:
            return
        if rows[at : at + len(wanted)] == wanted:
            yield at
        at += 1


def _narrowed(sheet: _Sheet, hunk: Hunk, found: list[int]) -> list[int]:
    """Those that the header's number and the scopes allow."""
    if hunk.line is not None:
        expected = hunk.line + sheet.shift - 1
        near = [at for at in found if abs(at - expected) <= MOST_DRIFT]
        return [at for at in near if at == expected] or near
    if hunk.scopes and len(found) > 1:
        return [at for at in found if _encloses(sheet.rows, at, hunk.scopes[-1])] or found
    return found


def _below_scopes(sheet: _Sheet, hunk: Hunk) -> int | Refused:
    """The first row below the lines that the hunk names above itself."""
    start = sheet.cursor
    for scope in hunk.scopes:
        at = _scope(sheet.rows, start, scope)
        if at is None:
            return _no_scope(sheet, scope)
        start = at + 1
    return start


def _scope(rows: list[str], start: int, scope: str) -> int | None:
    wanted = scope.strip()
    rest = range(start, len(rows))
    whole = next((at for at in rest if rows[at].strip() == wanted), None)
    return (
        whole
        if whole is not None
        else next((at for at in rest if rows[at].strip().startswith(wanted)), None)
    )


def _encloses(rows: list[str], at: int, scope: str) -> bool:
    """Whether the nearest line of that text is around the row by indentation."""
    depth = _depth(rows[at])
    for row in reversed(rows[:at]):
        if row.strip() and _depth(row) < depth:
            depth = _depth(row)
            if row.strip().startswith(scope.strip()):
                return True
    return False


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip(" \t"))


def _add(sheet: _Sheet, hunk: Hunk) -> Refused | None:
    """A hunk that only adds: after the line it names, never just at the end."""
    if not sheet.rows:
        at = 0
    elif hunk.at_end:
        at = len(sheet.rows)
    elif hunk.scopes:
        below = _below_scopes(sheet, hunk)
        if isinstance(below, Refused):
            return below
        at = below
        again = _scope(sheet.rows, at, hunk.scopes[-1])
        if again is not None and len(hunk.scopes) == 1:
            return _many(sheet, [at - 1, again])
    else:
        return Refused(
            code="not_found",
            message="The hunk only adds lines and names no line to put them after.",
            hint="Keep the line before them in the hunk, with a space in front of it.",
        )
    _write(sheet, at, hunk, own_ends=not sheet.rows)
    return None


def _write(sheet: _Sheet, at: int, hunk: Hunk, *, own_ends: bool) -> None:
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
    sheet.cursor = at + len(written)
    for index in range(max(at - 1, 0), min(sheet.cursor, len(sheet.rows) - 1)):
        if not sheet.rows[index].endswith("\n"):
            sheet.rows[index] += end
    silent = all(row.ended for row in hunk.rows)
    if was_open and silent and written and hunk.new[-1].sign == "+":
        # The patch says nothing of the end of the file: one without a final line end stays so.
        sheet.rows[-1] = _bare(sheet.rows[-1])
    if hunk.line is not None:
        start = hunk.line if hunk.old else hunk.line + 1
        sheet.shift = at + 1 - start + hunk.growth


def _ending(rows: list[str], at: int, height: int) -> str:
    """The line end of the lines around."""
    near = [*rows[max(at - 1, 0) : at + height + 1], *rows[:1]]
    ended = next((row for row in near if row.endswith("\n")), "\n")
    return "\r\n" if ended.endswith("\r\n") else "\n"


def _lay_loosely(sheet: _Sheet, hunk: Hunk, number: int) -> Refused | None:
    """Not there letter for letter: the matcher decides, and what it finds must be below the last hunk."""
    text = "".join(sheet.rows)
    line = None if hunk.line is None else hunk.line + sheet.shift
    hint = None if line is None else Hint(line=line, within=MOST_DRIFT)
    old, new = ("".join(f"{row.bare}\n" for row in rows) for rows in (hunk.old, hunk.new))
    outcome = replace(text, old, new, hint=hint)
    if isinstance(outcome, Refused):
        return outcome
    span = outcome.spans[0]
    first = lines.line_at(text, span.start)
    if span.start and text[span.start - 1] not in "\r\n":
        row = _bare(sheet.rows[first - 1])
        return Refused(
            code="not_found",
            message=f"The hunk's first line is only a part of line {first}.",
            hint="Hunks have whole lines.",
            places=(Place(first, row),),
        )
    if first <= sheet.cursor and span.start < len("".join(sheet.rows[: sheet.cursor])):
        return _elsewhere(sheet, hunk, [first - 1])
    _take(sheet, outcome, hunk, number, first)
    return None


def _take(sheet: _Sheet, outcome: Applied, hunk: Hunk, number: int, first: int) -> None:
    height, before = len(hunk.new), len(sheet.rows)
    sheet.rows = split_rows(outcome.text)
    said = "" if outcome.tier == "exact" else f" except for {outcome.tier}"
    notes = "".join(f"; {note}" for note in outcome.notes)
    sheet.notes.append(f"hunk {number} matched at line {first}{said}{notes}")
    sheet.cursor = min(first - 1 + height, len(sheet.rows))
    if hunk.line is not None:
        sheet.shift = first - hunk.line + len(sheet.rows) - before


def _many(sheet: _Sheet, found: list[int]) -> Refused:
    where = ", ".join(str(at + 1) for at in found[:_MOST_SHOWN])
    return Refused(
        code="ambiguous",
        message=f"The hunk fits {len(found)} places: lines {where}.",
        hint="Add kept lines around the change, or name the place after `@@`.",
        places=tuple(_place(sheet, at) for at in found[:_MOST_SHOWN]),
    )


def _elsewhere(sheet: _Sheet, hunk: Hunk, found: list[int]) -> Refused:
    where = ", ".join(str(at + 1) for at in found[:_MOST_SHOWN])
    if hunk.line is None:
        message = f"The hunk's lines stand at line {where}, above the hunk before it."
        return Refused(code="not_found", message=message, hint="Give the hunks in the order of the file.")
    expected = hunk.line + sheet.shift
    return Refused(
        code="not_found",
        message=f"The hunk says line {expected}, but its lines stand at line {where}: "
        f"more than {MOST_DRIFT} lines away.",
        hint="If that is the place, put that number into the header, or leave the numbers out.",
        places=tuple(_place(sheet, at) for at in found[:_MOST_SHOWN]),
    )


def _no_scope(sheet: _Sheet, scope: str) -> Refused:
    above = _scope(sheet.rows, 0, scope)
    more = f" below line {sheet.cursor}; it stands at line {above + 1}" if above is not None else ""
    return Refused(code="not_found", message=f"The line `{scope}` after `@@` does not occur{more}.")


def _place(sheet: _Sheet, at: int) -> Place:
    return Place(at + 1, _bare(sheet.rows[at]).strip())
