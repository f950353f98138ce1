"""Pairing: which new line is a changed old line, inside a block that was replaced."""

from rapidfuzz.fuzz import ratio

from handtools.text.matching.folding import BLANKS

_ALIKE = 50.0
_MOST_CELLS = 2500


def pair(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Pairs in order, of the greatest likeness in all; lines that are not alike stay alone."""
    if not old or not new:
        return []
    if len(old) * len(new) > _MOST_CELLS:
        return [(i, i) for i in range(len(old))] if len(old) == len(new) else []
    mine = [line.strip(BLANKS) for line in old]
    theirs = [line.strip(BLANKS) for line in new]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    score = [[_likeness(a, b) for b in theirs] for a in mine]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], score[i][j] + best[i + 1][j + 1] if score[i][j] else 0.0)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if score[i][j] and best[i][j] == score[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _likeness(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    return ratio(one, other, score_cutoff=_ALIKE)
