"""Eliding: an `old_string` with lines left out, taken piece by piece."""

from dataclasses import dataclass

from handtools.text.matching.folding import OPENERS, indent, is_blank
from handtools.text.matching.guarding import is_elision
from handtools.text.matching.indenting import columns
from handtools.text.matching.pages import Page
from handtools.text.matching.tiers import Match

MOST_PIECES = 12
MOST_INNER_LINES = 2000


@dataclass(frozen=True, slots=True)
class Piece:
    """What stands between two elisions, in old and in new."""

    old: str
    new: str

    @property
    def is_changed(self) -> bool:
        """Whether the edit lies here."""
        return self.old != self.new


def pieces(old: str, new: str) -> list[Piece] | None:
    """The pieces of both, if both leave out the same; None when nothing is left out or they do not agree."""
    mine, my_marks = _cut(old)
    theirs, their_marks = _cut(new)
    if not my_marks or my_marks != their_marks:
        return None
    found = [Piece(a, b) for a, b in zip(mine, theirs, strict=True)]
    # A piece that is new, or gone, has no place between lines that nobody named.
    if any(bool(piece.old.strip()) != bool(piece.new.strip()) for piece in found):
        return None
    return [piece for piece in found if piece.old.strip()]


def is_elided(text: str) -> bool:
    """Whether any line says that lines were left out."""
    return any(map(is_elision, text.split("\n")))


def stand_in_order(page: Page, found: list[list[Match]]) -> bool:
    """Whether each piece has a place behind one of the piece before, in the same block."""
    above = found[0]
    for places in found[1:]:
        above = [match for match in places if _follows(page, above, match)]
    return bool(above)


def _follows(page: Page, above: list[Match], match: Match) -> bool:
    """Whether no line between the two leaves the block that is open above and still is below."""
    nearest = next((before for before in reversed(above) if before.last < match.first), None)
    if nearest is None:
        return False
    last = page.bare[nearest.last - 1]
    head, foot = _depth(last), _depth(page.bare[match.first])
    least = min(head + last.rstrip().endswith(OPENERS), foot)
    left_out = range(nearest.last, match.first)
    return not least or (
        len(left_out) <= MOST_INNER_LINES and all(_is_inner(page.bare[row], least) for row in left_out)
    )


def _is_inner(line: str, least: int) -> bool:
    """Whether the line is as deep as that; what begins with `#` may stand at the margin anywhere."""
    return _depth(line) >= least or is_blank(line) or line.lstrip().startswith("#")


def _depth(line: str) -> int:
    return columns(indent(line))


def _cut(text: str) -> tuple[list[str], list[str]]:
    found: list[list[str]] = [[]]
    marks: list[str] = []
    for line in text.split("\n"):
        if is_elision(line):
            marks.append(line.strip())
            found.append([])
        else:
            found[-1].append(line)
    return ["\n".join(piece) for piece in found], marks
