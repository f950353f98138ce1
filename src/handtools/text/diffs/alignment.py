"""Alignment of two texts: common prefix and suffix, and the minimal line diff (longest common subsequence).

Also maps a line number through a diff (`line_after_edits`).

Three exact searches are combined, because each is fast where the others are slow: `_lcs_by_hunt_szymanski` if few
pairs of lines are equal, `_lcs_by_myers` if few lines changed, and rapidfuzz's bit table otherwise, for repetitive
text.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from handtools.text.lines import SplicedText

_FIRST_STEP = 64
# Pieces of this size stay in the processor's cache, so comparing them is faster than comparing all at once.
_LARGEST_STEP = 1 << 16
Sliceable = str | bytes | SplicedText


def common_prefix_length(a: Sliceable, b: Sliceable, known: int = 0) -> int:
    """Return the length of the common prefix of two texts.

    The first `known` characters are known to be equal and are not compared.
    """
    at, most = min(known, len(a), len(b)), min(len(a), len(b))
    step = _FIRST_STEP
    while at < most:
        end = min(at + step, most)
        if a[at:end] != b[at:end]:
            return at + _common_prefix_length(a[at:end], b[at:end])
        at, step = end, min(2 * step, _LARGEST_STEP)
    return most


def common_suffix_length(a: Sliceable, b: Sliceable, known: int = 0) -> int:
    """Return the length of the common suffix of two texts.

    The last `known` characters are known to be equal and are not compared.
    """
    at, most = min(known, len(a), len(b)), min(len(a), len(b))
    step = _FIRST_STEP
    while at < most:
        end = min(at + step, most)
        tail_a, tail_b = a[len(a) - end : len(a) - at], b[len(b) - end : len(b) - at]
        if tail_a != tail_b:
            return at + _common_prefix_length(tail_a[::-1], tail_b[::-1])
        at, step = end, min(2 * step, _LARGEST_STEP)
    return most


def common_ends(a: Sliceable, b: Sliceable) -> tuple[int, int]:
    """Return the lengths of the common prefix of two texts and of the common suffix of the rest."""
    head = common_prefix_length(a, b)
    return head, min(common_suffix_length(a, b), min(len(a), len(b)) - head)


def _common_prefix_length(a: str | bytes, b: str | bytes) -> int:
    """Return the length of the common prefix of two unequal strings of the same length, by bisection."""
    low, high = 0, len(a)
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


# `_lcs_by_hunt_szymanski` takes one step for each pair of equal lines; beyond this many pairs per line, the others
# are cheaper.
_SPARSE_PAIRS = 4
# The cost of `_lcs_by_myers` grows with the square of the edit distance; beyond this, a table is cheaper.
_NEAR_DISTANCE = 96
# Below this many cells, a table takes a few milliseconds regardless of the distance.
_SMALL_CELLS = 1 << 21
# A table of this many bits takes 128 MiB. Beyond it (32,768 by 32,768 lines), the diff is correct but may
# not be minimal.
_TABLE_CELLS = 1 << 30

LineIds: TypeAlias = list[int]
IndexPairs: TypeAlias = list[tuple[int, int]]


class LineEdit(NamedTuple):
    """One changed region of a line diff: lines `start_a:end_a` became `start_b:end_b` in the other text."""

    start_a: int
    end_a: int
    start_b: int
    end_b: int


def align_lines(a: Sequence[str], b: Sequence[str]) -> list[LineEdit]:
    """Align two lists of lines by a longest common subsequence and return the changed regions, in order."""
    a, b = list(a), list(b)
    head, tail = _shared_prefix_and_suffix_lengths(a, b)
    ids: dict[str, int] = {}
    middle_a = [ids.setdefault(line, len(ids)) for line in a[head : len(a) - tail]]
    middle_b = [ids.setdefault(line, len(ids)) for line in b[head : len(b) - tail]]
    edits: list[LineEdit] = []
    next_a = next_b = head
    for i, j in [*_lcs_of_line_ids(middle_a, middle_b), (len(middle_a), len(middle_b))]:
        if (i + head, j + head) != (next_a, next_b):
            edits.append(LineEdit(next_a, i + head, next_b, j + head))
        next_a, next_b = i + head + 1, j + head + 1
    return edits


def _lcs_of_line_ids(a: LineIds, b: LineIds) -> IndexPairs:
    """Return the index pairs of a longest common subsequence of two lists of line ids."""
    in_a, in_b = set(a), set(b)
    # A line that the other side lacks can't be in the common subsequence; dropping such lines removes most
    # edits.
    places_a = [i for i, line in enumerate(a) if line in in_b]
    places_b = [j for j, line in enumerate(b) if line in in_a]
    pairs = _match_ends_then_middle(
        [a[i] for i in places_a], [b[j] for j in places_b], _cuts_at_unique_lines
    )
    return [(places_a[i], places_b[j]) for i, j in pairs]


def _match_ends_then_middle(
    a: LineIds, b: LineIds, cut: Callable[[LineIds, LineIds], IndexPairs]
) -> IndexPairs:
    """Match the common prefix and suffix of two lists directly; search only the middle for common lines."""
    head, tail = _shared_prefix_and_suffix_lengths(a, b)
    size_a, size_b = len(a) - tail, len(b) - tail
    middle = _lcs_by_best_algorithm(a[head:size_a], b[head:size_b], cut)
    pairs = [(i, i) for i in range(head)]
    pairs += [(i + head, j + head) for i, j in middle]
    pairs += [(size_a + k, size_b + k) for k in range(tail)]
    return pairs


def _lcs_by_best_algorithm(
    a: LineIds, b: LineIds, cut: Callable[[LineIds, LineIds], IndexPairs]
) -> IndexPairs:
    if not a or not b:
        return []
    in_a, in_b = Counter(a), Counter(b)
    equal_pairs = sum(times * in_b[line] for line, times in in_a.items())
    if equal_pairs <= _SPARSE_PAIRS * (len(a) + len(b)):
        return _lcs_by_hunt_szymanski(a, b)
    cells = len(a) * len(b)
    if cells > _SMALL_CELLS and (near := _lcs_by_myers(a, b)) is not None:
        return near
    if cells > _TABLE_CELLS:
        return _align_pieces(a, b, cut(a, b), partial(_match_ends_then_middle, cut=_cuts_into_even_parts))
    return _lcs_by_rapidfuzz(a, b)


def _shared_prefix_and_suffix_lengths(a: Sequence[object], b: Sequence[object]) -> tuple[int, int]:
    """Return the lengths of the common prefix of two sequences and of the common suffix of the rest."""
    head = _count_equal_from(a, b, 0, 0)
    return head, _count_equal_from(a[head:][::-1], b[head:][::-1], 0, 0)


def _count_equal_from(a: Sequence[object], b: Sequence[object], i: int, j: int) -> int:
    """Count the equal elements of `a` from `i` on and `b` from `j` on, by comparing ever larger slices."""
    most = min(len(a) - i, len(b) - j)
    size, same = 1, 0
    while same < most and a[i + same : i + same + size] == b[j + same : j + same + size]:
        same += size
        size = min(2 * size, most - same)
    while size > 1 and same < most:
        size = (size + 1) // 2
        if a[i + same : i + same + size] == b[j + same : j + same + size]:
            same += size
    return same


def _lcs_by_hunt_szymanski(a: LineIds, b: LineIds) -> IndexPairs:
    """Find a longest common subsequence by the Hunt–Szymanski algorithm: fast if few lines are equal."""
    places = defaultdict(list)
    for j in range(len(b) - 1, -1, -1):
        places[b[j]].append(j)
    ends: list[int] = []
    chains: list[tuple[int, int, object]] = []
    for i, line in enumerate(a):
        for j in places.get(line, ()):
            rank = bisect_left(ends, j)
            chain = (i, j, chains[rank - 1] if rank else None)
            if rank == len(ends):
                ends.append(j)
                chains.append(chain)
            else:
                ends[rank] = j
                chains[rank] = chain
    return _index_pairs_of_chain(chains)


def _index_pairs_of_chain(chains: list[tuple[int, int, object]]) -> IndexPairs:
    pairs: IndexPairs = []
    link: object = chains[-1] if chains else None
    while isinstance(link, tuple):
        i, j, link = link
        pairs.append((i, j))
    return pairs[::-1]


def _lcs_by_myers(a: LineIds, b: LineIds) -> IndexPairs | None:
    """Find a longest common subsequence by Myers' algorithm.

    Returns None if the edit distance exceeds `_NEAR_DISTANCE`.
    """
    goal = len(a) - len(b)
    reach = [0] * (2 * _NEAR_DISTANCE + 3)  # negative diagonals count from the list's end
    history: list[list[int]] = []
    for distance in range(_NEAR_DISTANCE + 1):
        history.append(reach.copy())
        for diagonal in range(-distance, distance + 1, 2):
            origin = _previous_diagonal(reach, diagonal, distance)
            i = reach[origin] + (origin < diagonal)
            reach[diagonal] = i + _count_equal_from(a, b, i, i - diagonal)
        if abs(goal) <= distance and reach[goal] >= len(a):
            return _index_pairs_on_path(history, goal, len(a))
    return None


def _previous_diagonal(reach: list[int], diagonal: int, distance: int) -> int:
    """Return the neighbouring diagonal from which Myers' path of this edit distance enters the diagonal."""
    if diagonal == -distance:
        return diagonal + 1
    if diagonal == distance or reach[diagonal - 1] >= reach[diagonal + 1]:
        return diagonal - 1
    return diagonal + 1


def _index_pairs_on_path(history: list[list[int]], diagonal: int, end: int) -> IndexPairs:
    """Trace Myers' path back from its end through the stored reaches.

    Returns the pairs of equal lines on it.
    """
    pairs: IndexPairs = []
    for distance in range(len(history) - 1, -1, -1):
        reach = history[distance]
        origin = _previous_diagonal(reach, diagonal, distance)
        entry = reach[origin] + (origin < diagonal)
        pairs += [(i, i - diagonal) for i in range(end - 1, entry - 1, -1)]
        diagonal, end = origin, reach[origin]
    return pairs[::-1]


def _lcs_by_rapidfuzz(a: LineIds, b: LineIds) -> IndexPairs:
    """Find a longest common subsequence with rapidfuzz, which keeps one bit for each pair of lines."""
    from rapidfuzz.distance import LCSseq

    pairs: IndexPairs = []
    for block in LCSseq.editops(a, b).as_matching_blocks():
        pairs += [(block.a + k, block.b + k) for k in range(block.size)]
    return pairs


def _align_pieces(
    a: LineIds, b: LineIds, cuts: IndexPairs, solve: Callable[[LineIds, LineIds], IndexPairs]
) -> IndexPairs:
    """Align the pieces between given cut points separately, and return the index pairs of all of them."""
    pairs: IndexPairs = []
    for (i, j), (end_i, end_j) in pairwise([(0, 0), *cuts, (len(a), len(b))]):
        pairs += [(i + x, j + y) for x, y in solve(a[i:end_i], b[j:end_j])]
    return pairs


def _cuts_at_unique_lines(a: LineIds, b: LineIds) -> IndexPairs:
    """Return cut points before the lines that occur exactly once in both texts and in the same order."""
    in_a, in_b = Counter(a), Counter(b)
    places_a = [i for i, line in enumerate(a) if in_a[line] == in_b[line] == 1]
    places_b = [j for j, line in enumerate(b) if in_a[line] == in_b[line] == 1]
    pairs = _lcs_by_hunt_szymanski([a[i] for i in places_a], [b[j] for j in places_b])
    return [(places_a[i], places_b[j]) for i, j in pairs]


def _cuts_into_even_parts(a: LineIds, b: LineIds) -> IndexPairs:
    """Return cut points that divide both texts into equal parts, each small enough for an exact search."""
    parts = len(a) * len(b) // _TABLE_CELLS + 1
    return [(len(a) * part // parts, len(b) * part // parts) for part in range(1, parts)]


def line_after_edits(edits: Sequence[LineEdit], line: int) -> int | None:
    """Return the number of a line after the edits of a line diff; None if the line was replaced."""
    at = bisect_right(edits, line - 1, key=itemgetter(0)) - 1
    # If an insertion and a replacement start at the same line, use the later one, which reaches further.
    if at < 0:
        return line
    edit = edits[at]
    if line - 1 < edit.end_a:
        return None
    return line + edit.end_b - edit.end_a
