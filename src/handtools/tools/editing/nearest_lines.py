"""Search for the lines of a file that are most similar to an `old_string` that it does not contain."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from handtools.text.diffs.unified_diff import diff_line_edits
from handtools.tools.editing.edit_outcome import Excerpt
from handtools.tools.editing.normalized_lines import LineIndex, is_blank, normalize_for_matching

_ALIKE = 55
_MISSPELT = 85
_MAX_MISSPELT = 4
_MIN_WEIGHT = 4
_MAX_COMPARED_STARTS = 8
_MAX_VOTERS = 400
_MAX_CHARACTERS = 4000
_MAX_LINES = 20_000
# A line with at least this many characters that occurs once in the file is an anchor.
_SHORTEST_ANCHOR = 8
# How many more lines the file may have between two anchors than the old text.
_MAX_GROWN = 40
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class _Reach:
    """A range of rows, by index among the non-blank ones; both ends may lie outside the file."""

    start: int
    stop: int


def find_nearest_lines(line_index: LineIndex, old: str) -> Excerpt | None:
    """Find the lines of the file that are most similar to the old text; None if nothing is similar."""
    if old not in line_index.nearest:
        line_index.nearest[old] = _nearest_excerpt(line_index, old)
    return line_index.nearest[old]


def _nearest_excerpt(line_index: LineIndex, old: str) -> Excerpt | None:
    keys = [normalize_for_matching(line) for line in old.split("\n") if not is_blank(line)]
    if not keys or not line_index.filled:
        return None
    rows = line_index.normalized_text[1:-1].split("\n")
    known = set(rows)
    reach = _range_by_anchors(keys, rows, known)
    reach = (
        reach or _range_by_votes(keys, rows, known) or _range_by_similar_line(line_index, old, keys, rows)
    )
    if reach is None:
        return None
    first, last = _adjusted_range(keys, rows, reach)
    return line_index.excerpt_of_lines(line_index.filled[first], line_index.filled[last - 1] + 1)


def _range_by_anchors(keys: list[str], rows: list[str], known: set[str]) -> _Reach | None:
    """Find the range of the largest group of anchors: old lines that occur exactly once in the file."""
    wanted = {key for key in keys if len(key) >= _SHORTEST_ANCHOR and key in known}
    if not wanted:
        return None
    places = {row: index for index, row in enumerate(rows) if row in wanted}
    counts = Counter(row for row in rows if row in wanted)
    groups: list[list[tuple[int, int]]] = []
    for index, key in enumerate(keys):
        if counts[key] != 1:
            continue
        row = places[key]
        for group in groups:
            before, above = group[-1]
            if 0 < row - above <= index - before + _MAX_GROWN:
                group.append((index, row))
                break
        else:
            groups.append([(index, row)])
    if not groups:
        return None
    best = max(groups, key=lambda group: sum(len(keys[index]) for index, _ in group))
    (head, first), (tail, last) = best[0], best[-1]
    return _Reach(first - head, last + len(keys) - tail)


def _range_by_votes(keys: list[str], rows: list[str], known: set[str]) -> _Reach | None:
    """Find the range by votes: each old line found in the file votes for a start row.

    Rare and long lines count more.
    """
    twins = _similar_file_lines(keys, known)
    spelt = [twins.get(key, key) for key in keys]
    wanted = set(spelt)
    places: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row in wanted:
            places[row].append(index)
    votes: dict[int, float] = defaultdict(float)
    for offset, key in enumerate(spelt[:_MAX_VOTERS]):
        found = places.get(key, ())
        for index in found[:50]:
            votes[index - offset] += min(len(key), 80) / len(found)
    ranked = sorted(votes, key=lambda start: (-votes[start], start))[:_MAX_COMPARED_STARTS]
    best = [start for start in ranked if votes[start] >= _MIN_WEIGHT]
    start = max(best, key=lambda start: _similarity_at_row(keys, rows, start), default=None)
    return None if start is None else _Reach(start, start + len(keys))


def _similar_file_lines(keys: list[str], known: set[str]) -> dict[str, str]:
    """Map the longest old lines that the file lacks to the file's lines that they may be misspellings of."""
    unknown = sorted({key for key in keys if key not in known}, key=lambda key: (-len(key), key))
    if not unknown or len(known) > _MAX_LINES:
        return {}
    from rapidfuzz import fuzz, process

    twins: dict[str, str] = {}
    choices = sorted(known)
    for key in unknown[:_MAX_MISSPELT]:
        best = process.extractOne(key[:_MAX_CHARACTERS], choices, scorer=fuzz.ratio, score_cutoff=_MISSPELT)
        if best is not None:
            twins[key] = best[0]
    return twins


def _similarity_at_row(keys: list[str], rows: list[str], start: int) -> float:
    from rapidfuzz import fuzz

    there = rows[max(0, start) : max(0, start) + len(keys)]
    return fuzz.ratio("\n".join(keys)[:_MAX_CHARACTERS], "\n".join(there)[:_MAX_CHARACTERS])


def _range_by_similar_line(
    line_index: LineIndex, old: str, keys: list[str], rows: list[str]
) -> _Reach | None:
    """Find the range by the line most similar to the longest old line, if no line is equal.

    The line must look like a misspelling or share many words. Returns None if there is none.
    """
    from rapidfuzz import fuzz, process

    offset, key = max(enumerate(keys), key=lambda item: len(item[1]))
    heads = [row[:_MAX_CHARACTERS] for row in rows[:_MAX_LINES]]
    best = process.extractOne(key[:_MAX_CHARACTERS], heads, scorer=fuzz.ratio, score_cutoff=_ALIKE)
    if best is None:
        return None
    told = [line for line in old.split("\n") if not is_blank(line)][offset]
    if best[1] < _MISSPELT and not _shares_many_words(
        line_index, told, line_index.lines_without_ends[line_index.filled[best[2]]]
    ):
        return None
    return _Reach(best[2] - offset, best[2] - offset + len(keys))


def _shares_many_words(line_index: LineIndex, told: str, filed: str) -> bool:
    """Whether two lines share a third of their words, weighted by how rare each word is in the file."""
    weights = _word_weights(line_index, told)
    shared = sum(weight for word, weight in weights.items() if word in filed)
    return shared > 0 and 3 * shared >= sum(weights.values())


def _word_weights(line_index: LineIndex, told: str) -> dict[str, float]:
    return {
        word: len(word) / max(1, line_index.text_with_line_feeds.count(word)) ** 2
        for word in _WORD.findall(told)
    }


def _adjusted_range(keys: list[str], rows: list[str], reach: _Reach) -> tuple[int, int]:
    """Grow or shrink a range of rows so that it begins and ends where the old text does."""
    start, stop = reach.start, reach.stop
    there = rows[max(start, 0) : max(stop, 0)]
    low = max(0, start - 4)
    near = rows[low : max(start, 0) + stop - start + 4]
    if start >= 0 and len(there) == len(keys):
        # An old line that does not occur in or near the range gives no reason to move the range.
        known = set(near)
        if (there[0], there[-1]) == (keys[0], keys[-1]) or all(
            key == row or key not in known for key, row in zip(keys, there, strict=True)
        ):
            return start, stop
    at = shift = 0
    pairs: list[tuple[int, int]] = []
    for edit in [*diff_line_edits(keys, near), None]:
        end = edit.start_a if edit else len(keys)
        pairs += [(index, index + shift) for index in range(at, end)]
        if edit:
            at, shift = edit.end_a, edit.end_b - edit.end_a
    if not pairs:
        first = max(start, 0)
        return first, max(first + 1, min(stop, len(rows)))
    (head, first), (tail, last) = pairs[0], pairs[-1]
    return max(0, low + first - head), min(len(rows), low + last + len(keys) - tail)
