"""Scripting: the change from old to new as steps over lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.fuzz import ratio

from handtools.text.diffing import Edit, opcodes
from handtools.text.matching.folding import BLANKS

_ALIKE = 50.0
_MOST_CELLS = 2500
_LONGEST_COMPARED = 1000


@dataclass(frozen=True, slots=True)
class Op:
    """One step: `old` and `new` are line indexes of the arguments, -1 where there is no such line."""

    kind: Literal["keep", "change", "drop", "add"]
    old: int = -1
    new: int = -1


def script(old: list[str], new: list[str]) -> list[Op]:
    """The steps in order; within a replaced block, lines that are alike become changes."""
    steps: list[Op] = []
    # A line that both have was moved, not changed, if the diff does not keep it.
    common = set(old) & set(new)
    at = shift = 0
    for edit in opcodes(old, new):
        steps += [Op("keep", index, index + shift) for index in range(at, edit.start_a)]
        steps += _block(old, new, edit, common)
        at, shift = edit.end_a, edit.end_b - edit.end_a
    return steps + [Op("keep", index, index + shift) for index in range(at, len(old))]


def _block(old: list[str], new: list[str], edit: Edit, common: set[str]) -> Iterator[Op]:
    i, j = edit.start_a, edit.start_b
    found = _pairs(old[i : edit.end_a], new[j : edit.end_b], common)
    for a, b in [*((i + a, j + b) for a, b in found), (edit.end_a, edit.end_b)]:
        yield from (Op("drop", index) for index in range(i, a))
        yield from (Op("add", new=index) for index in range(j, b))
        i, j = a, b
        if i < edit.end_a and j < edit.end_b:
            same = old[i].rstrip(BLANKS) == new[j].rstrip(BLANKS)
            yield Op("keep" if same else "change", i, j)
            i, j = i + 1, j + 1


def _pairs(old: list[str], new: list[str], common: set[str]) -> list[tuple[int, int]]:
    """Pairs in order, of the greatest likeness in all; lines that are not alike stay alone."""
    if not old or not new:
        return []
    if len(old) * len(new) > _MOST_CELLS:
        return [(i, i) for i in range(len(old))] if len(old) == len(new) else []
    score = [
        [0.0 if common & {a, b} else _likeness(a.strip(BLANKS), b.strip(BLANKS)) for b in new] for a in old
    ]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            both = score[i][j] + best[i + 1][j + 1] if score[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], both)
    return list(_walk(score, best))


def _walk(score: list[list[float]], best: list[list[float]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(score) and j < len(score[0]):
        if score[i][j] and best[i][j] == score[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _likeness(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    return ratio(one[:_LONGEST_COMPARED], other[:_LONGEST_COMPARED], score_cutoff=_ALIKE)
