"""Weaving: a changed line in the file's own spelling, by a three-way merge of its words."""

import re

from handtools.text.diffing import Edit, opcodes
from handtools.text.matching.folding import BLANKS

_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
_LONGEST = 4000


def weave(old: str, filed: str, new: str) -> str:
    """The change from `old` to `new`, made to the file's line; both without indentation."""
    tail = _tail(old, filed, new)
    old, filed, new = (line.strip(BLANKS) for line in (old, filed, new))
    if old == filed or len(old) > _LONGEST or len(new) > _LONGEST:
        return new + tail
    mine, theirs, wanted = (_TOKEN.findall(line) for line in (old, filed, new))
    if len(mine) != len(theirs):
        return new + tail
    merged = _merged(mine, theirs, wanted)
    return (new if merged is None else merged) + tail


def _tail(old: str, filed: str, new: str) -> str:
    """Blanks at the end: the model's, unless it only repeated blanks that the file has not."""
    ours = new[len(new.rstrip(BLANKS)) :]
    if ours and ours == old[len(old.rstrip(BLANKS)) :]:
        return filed[len(filed.rstrip(BLANKS)) :]
    return ours


Token = tuple[str, str]
_END: Token = ("", "")


def _merged(mine: list[Token], theirs: list[Token], wanted: list[Token]) -> str | None:
    """The file's words and gaps wherever old and new agree; None when a gap could be two of them.

    None too where the new words have a quote that would end the string in the file's own quotes.
    """
    swapped = {filed for (_, word), (_, filed) in zip(mine, theirs, strict=True) if word != filed}
    pieces: list[str] = []
    at = shift = 0
    gap: str | None = None
    for edit in [*opcodes([word for _, word in mine], [word for _, word in wanted]), None]:
        stop = edit.start_a if edit else len(mine)
        for index in range(at, stop):
            if gap is None:
                gap = _gap(mine[index], theirs[index], wanted[index + shift])
            pieces += [gap, theirs[index][1]]
            gap = None
        if edit is None:
            break
        gaps = _gaps(
            *([*side, _END][start : end + 1] for side, start, end in _sides(mine, theirs, wanted, edit))
        )
        if gaps is None:
            return None
        first, gap = gaps
        new = wanted[edit.start_b : edit.end_b]
        if any(word in swapped for _, word in new):
            return None
        pieces += [first + new[0][1], *(space + word for space, word in new[1:])] if new else []
        at, shift = edit.end_a, edit.end_b - edit.end_a
    return "".join(pieces)


def _sides(
    mine: list[Token], theirs: list[Token], wanted: list[Token], edit: Edit
) -> tuple[tuple[list[Token], int, int], ...]:
    return (
        (mine, edit.start_a, edit.end_a),
        (theirs, edit.start_a, edit.end_a),
        (wanted, edit.start_b, edit.end_b),
    )


def _gap(mine: Token, theirs: Token, wanted: Token) -> str:
    return theirs[0] if wanted[0] == mine[0] else wanted[0]


def _gaps(mine: list[Token], theirs: list[Token], wanted: list[Token]) -> tuple[str, str] | None:
    """The gaps before a changed run and after it; each list ends with the token after the run."""
    if len(mine) > 1 and len(wanted) > 1:
        return _gap(mine[0], theirs[0], wanted[0]), _gap(mine[-1], theirs[-1], wanted[-1])
    if len(wanted) == 1:
        before = wanted[0][0] == mine[0][0]
        return "", theirs[0][0] if before else _gap(mine[-1], theirs[-1], wanted[0])
    old, filed = mine[0][0], theirs[0][0]
    left, right = wanted[0][0], wanted[-1][0]
    if old == filed or old not in (left, right):
        return left, right
    if left == right or filed in (left, right):
        return None
    return (filed, right) if left == old else (left, filed)
