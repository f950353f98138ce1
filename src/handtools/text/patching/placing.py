"""Placing: where a hunk goes, by its lines, by the scopes named above it, and by how many are alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from handtools.text.matching import Place, Refused
from handtools.text.patching.forms import Hunk

MOST_DRIFT = 3
"""By so many lines a hunk may stand above or below where it says."""
_MOST_SHOWN = 5
# So many letters and digits of added lines are no coincidence, wherever they stand.
_FEWEST_LETTERS = 24
_OPENERS, _CLOSERS = ("{", "(", "[", ":"), ("}", ")", "]")
Key = Callable[[str], str]


class Reach(NamedTuple):
    """Rows that are named above a hunk: it stands below `stop`."""

    start: int
    stop: int

    @property
    def height(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class Sheet:
    """A text while hunks are laid on it."""

    rows: list[str]
    cursor: int = 0
    """The first row below the last hunk."""
    shift: int = 0
    """How far rows below the cursor stand from where the patch counts them."""
    notes: list[str] = field(default_factory=list)
    there: int = 0
    """How many hunks had nothing to do."""
    reaches: list[Reach] | None = None
    """Where hunks that only keep lines may stand; None after a hunk that changes any."""

    def below(self, found: list[int], reaches: list[Reach] | None, *, strictly: bool = False) -> list[int]:
        """Those that a scope or the hunk before allows; without either, and where none is, all of them."""
        if reaches is None:
            return [at for at in found if at >= self.cursor] or ([] if strictly else found)
        chosen = {at for reach in reaches for at in _in_reach(self.rows, found, reach)}
        return sorted(chosen) or ([] if strictly else found)

    def many(self, found: list[int]) -> Refused:
        where = ", ".join(str(at + 1) for at in found[:_MOST_SHOWN])
        return Refused(
            code="ambiguous",
            message=f"The hunk fits {len(found)} places: lines {where}.",
            hint="Add kept lines around the change, or name the place after `@@`.",
            places=tuple(self.place(at) for at in found[:_MOST_SHOWN]),
        )

    def elsewhere(self, hunk: Hunk, found: list[int]) -> Refused:
        """It stands, but not where the hunk may be."""
        where = ", ".join(str(at + 1) for at in found[:_MOST_SHOWN])
        if hunk.line is None:
            message = (
                f"The hunk's lines stand at line {where}, above the lines that are to stand above them."
            )
            return Refused(
                code="not_found", message=message, hint="Name a line above them after `@@`, or none."
            )
        expected = hunk.line + self.shift
        return Refused(
            code="not_found",
            message=f"The hunk says line {expected}, but its lines stand at line {where}: "
            f"more than {MOST_DRIFT} lines away.",
            hint="If that is the place, put that number into the header, or leave the numbers out.",
            places=tuple(self.place(at) for at in found[:_MOST_SHOWN]),
        )

    def place(self, at: int) -> Place:
        """The row as a refusal shows it."""
        return Place(at + 1, bare(self.rows[at]).strip())


def bare(row: str) -> str:
    """The row without its line end."""
    return row.rstrip("\n").removesuffix("\r")


def is_locator(hunk: Hunk) -> bool:
    """Whether the hunk changes nothing and has no number: then it says where the next one is."""
    return hunk.line is None and [row.full for row in hunk.old] == [row.full for row in hunk.new]


def find(sheet: Sheet, hunk: Hunk, *, loosely: bool = False) -> tuple[list[int], bool]:
    """Where the old lines stand: letter for letter, else with other line ends; and whether it was the former.

    Loosely, blanks around a line do not count: lines that stay as they are need no more to be recognised.
    """
    keys: list[Key] = [str, bare, str.strip] if loosely else [str, bare]
    for key in keys:
        wanted = [key(row.full) for row in hunk.old]
        rows = sheet.rows if key is str else [key(row) for row in sheet.rows]
        found = list(_places(rows, wanted))
        if hunk.at_end:
            # Of blank lines at the end of a file a patch says nothing.
            found = [at for at in found if not any(map(str.strip, rows[at + len(wanted) :]))][-1:]
        if found:
            return found, key is str
    return [], False


def _places(rows: list[str], wanted: list[str]) -> Iterator[int]:
    at = 0
    while True:
        try:
            at = rows.index(wanted[0], at)
        except ValueError:
            return
        if rows[at : at + len(wanted)] == wanted:
            yield at
        at += 1


def standing(
    sheet: Sheet, hunk: Hunk, found: list[int], reaches: list[Reach] | None, rest: tuple[Hunk, ...]
) -> int | Refused:
    """The one place that is meant, of those that fit."""
    if hunk.line is not None:
        expected = hunk.line + sheet.shift - 1
        near = [at for at in found if at >= sheet.cursor and abs(at - expected) <= MOST_DRIFT]
        left = [at for at in near if at == expected] or near
    else:
        left = sheet.below(found, reaches, strictly=reaches is not None)
    if len(left) == 1:
        return left[0]
    if not left:
        return sheet.elsewhere(hunk, found)
    # As many hunks as places, all alike: the first is for the first.
    alike = 1 + sum(other.old == hunk.old and not other.scopes and other.line is None for other in rest)
    if reaches is None and hunk.line is None and alike == len(left):
        return left[0]
    return sheet.many(left)


def has_already(sheet: Sheet, hunk: Hunk, at: int) -> bool:
    """Whether the rows around the old ones are what the hunk would make of them."""
    mine, wanted = ([row.bare for row in rows] for rows in (hunk.old, hunk.new))
    added = "".join(row.text for row in hunk.rows if row.sign == "+")
    if len(wanted) <= len(mine) or not any(map(str.isalnum, added)):
        return False
    for skipped in range(len(wanted) - len(mine) + 1):
        start = at - skipped
        there = [bare(row) for row in sheet.rows[max(start, 0) : start + len(wanted)]]
        if wanted[skipped : skipped + len(mine)] == mine and there == wanted:
            return True
    return False


def reaches_of(sheet: Sheet, hunk: Hunk) -> list[Reach] | Refused | None:
    """The rows that are named above the hunk, by the innermost of them; None where none is."""
    reaches = sheet.reaches
    for scope in hunk.scopes:
        found = _scopes(sheet.rows, scope)
        if not found:
            return Refused(
                code="not_found",
                message=f"The line `{scope}` after `@@` does not occur.",
                hint="Copy a line that stands above the hunk, or leave it out.",
            )
        reaches = [Reach(at, at + 1) for at in sheet.below(found, reaches)]
    return reaches


def _scopes(rows: list[str], scope: str) -> list[int]:
    """Where the line named after `@@` stands: whole, else as the beginning of a line."""
    wanted = scope.strip()
    whole = [at for at, row in enumerate(rows) if row.strip() == wanted]
    return whole or [at for at, row in enumerate(rows) if row.strip().startswith(wanted)]


def _in_reach(rows: list[str], found: list[int], reach: Reach) -> list[int]:
    """Those below in the block that the named rows open, or what closes one that they are in; else all."""
    below = [at for at in found if at >= reach.stop]
    if len(below) < 2:
        return below
    stop = _end_of_block(rows, reach)
    inside = [at for at in below if at < stop]
    return inside or [at for at in below if _closes(rows, reach, at)][:1] or below


def _end_of_block(rows: list[str], reach: Reach) -> int:
    """The row after the block: of a heading its section, else the deeper rows and the one that closes them."""
    level = _level(rows[reach.start])
    if level:
        ends = (at for at in range(reach.stop, len(rows)) if 0 < _level(rows[at]) <= level)
        return next(ends, len(rows))
    depth = _least_depth(rows, reach)
    ends = (at for at in range(reach.stop, len(rows)) if rows[at].strip() and _depth(rows[at]) <= depth)
    return next((at for at in ends if not _goes_on(rows[at])), len(rows) - 1) + 1


def _least_depth(rows: list[str], reach: Reach) -> int:
    return min(_depth(row) for row in rows[reach.start : reach.stop] if row.strip() or reach.height == 1)


def _goes_on(row: str) -> bool:
    """Whether the row closes one bracket and opens the next part: `) -> int {`, `} else {`."""
    return row.strip().startswith(_CLOSERS) and row.rstrip().endswith(_OPENERS)


def _closes(rows: list[str], reach: Reach, at: int) -> bool:
    """Whether the row closes the bracket that the last named row opens, or else the block it stands in."""
    if not rows[at].strip().startswith(_CLOSERS):
        return False
    depth, last = _depth(rows[at]), rows[reach.stop - 1]
    if last.rstrip().endswith(_OPENERS) and _depth(last) == depth:
        return True
    return all(_depth(row) > depth for row in rows[reach.stop : at] if row.strip())


def _level(row: str) -> int:
    """Which level of heading the row is in Markdown; 0 where it is none."""
    signs = len(row) - len(row.lstrip("#"))
    return signs if signs and row[signs : signs + 1] == " " else 0


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip(" \t"))


def add_below(sheet: Sheet, hunk: Hunk) -> int | Refused:
    """Where a hunk goes that only adds: below the line it names, at the end if it says so or that is below."""
    if not sheet.rows:
        return 0
    if hunk.at_end:
        return len(sheet.rows)
    reaches = reaches_of(sheet, hunk)
    if isinstance(reaches, Refused):
        return reaches
    if reaches is None:
        return _nowhere(sheet, hunk)
    if len(reaches) > 1:
        return sheet.many([reach.start for reach in reaches])
    [reach] = reaches
    if _is_beside(sheet.rows, reach, hunk):
        return _beside(sheet, reach)
    return reach.stop if hunk.scopes else _nowhere(sheet, hunk)


def _is_beside(rows: list[str], reach: Reach, hunk: Hunk) -> bool:
    """Whether the added lines are no part of the section or block that the named rows open."""
    first = next((row.text for row in hunk.rows if row.text.strip()), "")
    if _level(rows[reach.start]):
        return 0 < _level(first) <= _level(rows[reach.start])
    depth = _least_depth(rows, reach)
    below = next((row for row in rows[reach.stop :] if row.strip()), "")
    return _depth(below) > depth >= _depth(first)


def _beside(sheet: Sheet, reach: Reach) -> int | Refused:
    """Behind the section or block, where that is the end of the file."""
    last = _last_row(sheet.rows, reach)
    if not any(row.strip() for row in sheet.rows[last + 1 :]):
        return len(sheet.rows)
    named = bare(sheet.rows[reach.start]).strip()
    return Refused(
        code="not_found",
        message=f"The hunk only adds lines, and they are no part of what `{named}` opens.",
        hint=f"To put them behind it, keep line {last + 1} in the hunk, with a space in front of it.",
        places=(sheet.place(last),),
    )


def _last_row(rows: list[str], reach: Reach) -> int:
    """The last filled row of the section, or of the block and what closes it."""
    if _level(rows[reach.start]):
        stop = _end_of_block(rows, reach)
    else:
        depth = _least_depth(rows, reach)
        below = ((at, rows[at]) for at in range(reach.stop, len(rows)) if rows[at].strip())
        ends = (at for at, row in below if _depth(row) <= depth and not _goes_on(row))
        stop = next(ends, len(rows))
        stop += stop < len(rows) and rows[stop].strip().startswith(_CLOSERS)
    return max(at for at in range(stop) if rows[at].strip())


def _nowhere(sheet: Sheet, hunk: Hunk) -> Refused:
    last = max((at for at, row in enumerate(sheet.rows) if row.strip()), default=0)
    how = "" if hunk.line is not None else ", or put `*** End of File` below them"
    return Refused(
        code="not_found",
        message="The hunk only adds lines and names no line to put them after.",
        hint="Keep the line before them in the hunk, with a space in front of it. "
        f"For the end of the file keep line {last + 1}{how}.",
        places=(sheet.place(last),),
    )


def added_already(sheet: Sheet, hunk: Hunk, at: int | None) -> int | None:
    """The row where what the hunk adds stands: at its place, at the end, or anywhere if it has no place."""
    added = [row.bare for row in hunk.rows]
    while added and not added[-1].strip():
        added.pop()
    letters = sum(map(str.isalnum, "".join(added)))
    rows = [bare(row) for row in sheet.rows]
    if at is not None and at < len(rows):
        return at if letters and rows[at : at + len(added)] == added else None
    if letters < _FEWEST_LETTERS:
        return None
    found = list(_places(rows, added))
    if at is not None:
        found = [start for start in found if not any(row.strip() for row in rows[start + len(added) :])]
    return found[-1] if found else None
