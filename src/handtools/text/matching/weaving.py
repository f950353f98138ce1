"""Weaving: a changed line in the file's own spelling, by a three-way merge of its words."""

import re

from handtools.text.diffing import opcodes
from handtools.text.matching.folding import BLANKS, indent, same_word, tight

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
    merged = "".join(_merged(mine, theirs, wanted))
    return merged + tail


def content(line: str) -> str:
    """The line without its indentation."""
    return line[len(indent(line)) :]


def means_same(one: str, other: str) -> bool:
    """Whether two lines differ in nothing but blanks."""
    return tight(one) == tight(other)


def _tail(old: str, filed: str, new: str) -> str:
    """Blanks at the end: the model's, unless it only repeated blanks that the file has not."""
    ours = new[len(new.rstrip(BLANKS)) :]
    if ours and ours == old[len(old.rstrip(BLANKS)) :]:
        return filed[len(filed.rstrip(BLANKS)) :]
    return ours


Token = tuple[str, str]


def _merged(mine: list[Token], theirs: list[Token], wanted: list[Token]) -> list[str]:
    pieces: list[str] = []
    at = 0
    for edit in [*opcodes([word for _, word in mine], [word for _, word in wanted]), None]:
        stop = edit.start_a if edit else len(mine)
        shift = (edit.start_b - edit.start_a) if edit else len(wanted) - len(mine)
        for index in range(at, stop):
            (gap, word), (filed_gap, filed_word) = mine[index], theirs[index]
            new_gap = wanted[index + shift][0]
            pieces += [filed_gap if new_gap == gap else new_gap, filed_word]
        if edit:
            pieces += [gap + word for gap, word in wanted[edit.start_b : edit.end_b]]
            at = edit.end_a
    return pieces


def aligned(old: str, filed: str) -> bool:
    """Whether the two lines are the same words in another look."""
    mine, theirs = _TOKEN.findall(old), _TOKEN.findall(filed)
    return len(mine) == len(theirs) and all(same_word(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True))
