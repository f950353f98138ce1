"""Candidate places of an edit: where the old lines match the file with the least normalization.

A line number as a hint narrows them down.
"""

from dataclasses import dataclass
from itertools import pairwise

from handtools.text.editing.edit_outcome import MatchHint, MatchTier
from handtools.text.editing.normalized_lines import (
    LineIndex,
    MatchLoss,
    all_line_match_losses,
    is_blank,
    line_match_loss,
    normalize_for_matching,
    substring_offsets,
)

MAX_CANDIDATES = 1000
TIER_NAMES: dict[MatchLoss, MatchTier] = {
    MatchLoss.NOTHING: "exact",
    MatchLoss.TRAILING: "trailing white space",
    MatchLoss.INDENTATION: "indentation",
    MatchLoss.INNER: "inner white space",
    MatchLoss.LOOK: "look-alike characters",
    MatchLoss.QUOTES: "quote style",
}
# With fewer letters and digits than this, a block that matches only loosely can't be recognised reliably.
MIN_LETTERS_OF_A_BLOCK = 8
MIN_LETTERS_ACROSS_BLANKS = 24


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A match of old lines with file lines.

    `places[i]` is the file line of old line `i`, None for a blank line that the file does not have; `first`
    to `last` (exclusive) are the matched lines of the file.
    """

    places: tuple[int | None, ...]
    first: int
    last: int
    loss: MatchLoss
    blanks_differ: bool = False
    edges_differ: bool = False
    losses: frozenset[MatchLoss] = frozenset()

    @property
    def rank(self) -> tuple[bool, bool, MatchLoss]:
        """Sort key of a match: smaller means that fewer differences from the file were ignored."""
        return self.blanks_differ, self.edges_differ, self.loss

    def is_closer_to_file(self, other_match: "LineMatch") -> bool:
        """Whether this match differs from the file in fewer ways than the other, and in no other way."""
        return (self.rank != other_match.rank or self.losses != other_match.losses) and (
            self.losses <= other_match.losses
            and self.blanks_differ <= other_match.blanks_differ
            and self.edges_differ <= other_match.edges_differ
        )

    @property
    def tier(self) -> MatchTier:
        """The name of the match tier, such as `indentation`: how the old lines differ from the file."""
        at_its_ends = self.edges_differ and self.loss == MatchLoss.NOTHING
        return "blank lines" if self.blanks_differ or at_its_ends else TIER_NAMES[self.loss]


def find_match_candidates(
    line_index: LineIndex, old: list[str], hint: MatchHint | None = None
) -> list[LineMatch]:
    """Find the places where the non-blank old lines follow each other in the file, however loosely.

    Returns the first thousand, or all that a hint allows.
    """
    filled = [index for index, line in enumerate(old) if not is_blank(line)]
    if not filled:
        return []
    needle = "\n" + "\n".join(normalize_for_matching(old[index]) for index in filled) + "\n"
    found = []
    count = at = 0
    most = MAX_CANDIDATES if hint is None else len(line_index.filled)
    for hit in substring_offsets(line_index.normalized_text, needle, most=most):
        count += line_index.normalized_text.count("\n", at, hit)
        at = hit
        rows = line_index.filled[count : count + len(filled)]
        # Blank old lines before the first non-blank one may match above it.
        if hint is not None and not -hint.within <= rows[0] + 1 - hint.line <= hint.within + filled[0]:
            continue
        if (match := _laid(line_index, old, filled, rows)) is not None:
            found.append(match)
    return found if hint is None else _nearest_to_hint(found, hint)


def _nearest_to_hint(matches: list[LineMatch], hint: MatchHint) -> list[LineMatch]:
    """Return only the match at the hint's line if there is one; otherwise the matches within its range."""
    at_line = [match for match in matches if match.first + 1 == hint.line]
    return at_line or [match for match in matches if abs(match.first + 1 - hint.line) <= hint.within]


def least_lossy_matches(matches: list[LineMatch]) -> list[LineMatch]:
    """Return the matches that no other match beats; different kinds of difference are not comparable."""
    of_each_kind = list({(match.rank, match.losses): match for match in matches}.values())
    return [match for match in matches if not any(other.is_closer_to_file(match) for other in of_each_kind)]


def is_recognizable(old: list[str], match: LineMatch) -> bool:
    """Whether old lines have enough letters to be recognized, given how loosely they match."""
    letters = sum(sum(map(str.isalnum, line)) for line in old)
    if match.blanks_differ:
        return letters >= MIN_LETTERS_ACROSS_BLANKS
    return match.loss <= MatchLoss.TRAILING or letters >= MIN_LETTERS_OF_A_BLOCK


def _laid(line_index: LineIndex, old: list[str], filled: list[int], rows: list[int]) -> LineMatch | None:
    places: list[int | None] = [None] * len(old)
    for index, row in zip(filled, rows, strict=True):
        if line_match_loss(old[index], line_index.lines_without_ends[row]) is None:
            return None
        places[index] = row
    inside = _lay_inner(filled, places)
    edges = _lay_edges(line_index, old, filled, places)
    known = [place for place in places if place is not None]
    lost = frozenset[MatchLoss]().union(
        *(
            all_line_match_losses(old[i], line_index.lines_without_ends[p])
            for i, p in enumerate(places)
            if p is not None
        )
    )
    worst = max(lost, default=MatchLoss.NOTHING)
    return LineMatch(tuple(places), min(known), max(known) + 1, worst, inside, edges, lost)


def _lay_inner(filled: list[int], places: list[int | None]) -> bool:
    """Match blank lines between non-blank ones with the file's.

    Returns whether their numbers differ anywhere.
    """
    differ = False
    for index, after in pairwise(filled):
        row, next_row = places[index], places[after]
        assert row is not None
        assert next_row is not None
        ours, theirs = after - index - 1, next_row - row - 1
        differ |= ours != theirs
        for step in range(1, min(ours, theirs) + 1):
            places[index + step] = row + step
    return differ


def _lay_edges(line_index: LineIndex, old: list[str], filled: list[int], places: list[int | None]) -> bool:
    """Match blank lines before and after the old lines with the file's.

    Returns whether some have no counterpart.
    """
    for start, direction, stop in ((filled[0], -1, -1), (filled[-1], 1, len(old))):
        row = places[start]
        for index in range(start + direction, stop, direction):
            assert row is not None
            row += direction
            if not 0 <= row < len(line_index.lines_without_ends) or not is_blank(
                line_index.lines_without_ends[row]
            ):
                return True
            places[index] = row
    return False
