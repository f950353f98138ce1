"""Eliding: an `old_string` with lines left out, taken piece by piece."""

from dataclasses import dataclass

from handtools.text.matching.guarding import is_elision

MOST_PIECES = 12


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
