"""Tiers: where old lines stand in the file when as little as possible is forgotten."""

from dataclasses import dataclass
from itertools import pairwise

from handtools.text.matching.folding import Loss, is_blank, loss, losses, squashed
from handtools.text.matching.outcomes import Tier
from handtools.text.matching.pages import Page, offsets

MOST_CANDIDATES = 64
NAMES: dict[Loss, Tier] = {
    Loss.NOTHING: "exact",
    Loss.TRAILING: "trailing white space",
    Loss.INDENTATION: "indentation",
    Loss.INNER: "inner white space",
    Loss.LOOK: "look-alike characters",
    Loss.QUOTES: "quote style",
}
# Fewer letters and digits than this are too little to recognise a block by once anything is forgotten.
FEWEST_LETTERS = 8
FEWEST_LETTERS_ACROSS_BLANKS = 24


@dataclass(frozen=True, slots=True)
class Match:
    """Old lines laid on file lines: `places[i]` is the file line of old line `i`, None for a blank
    line that the file has not; `first` to `last` (exclusive) is the window."""

    places: tuple[int | None, ...]
    first: int
    last: int
    loss: Loss
    blanks_differ: bool = False
    edges_differ: bool = False
    losses: frozenset[Loss] = frozenset()

    @property
    def rank(self) -> tuple[bool, bool, Loss]:
        """Smaller is closer."""
        return self.blanks_differ, self.edges_differ, self.loss

    def is_closer(self, other: "Match") -> bool:
        """Whether this loses less than the other does, and nothing that the other keeps."""
        return (self.rank != other.rank or self.losses != other.losses) and (
            self.losses <= other.losses
            and self.blanks_differ <= other.blanks_differ
            and self.edges_differ <= other.edges_differ
        )

    @property
    def tier(self) -> Tier:
        """The name of what was forgotten."""
        at_its_ends = self.edges_differ and self.loss == Loss.NOTHING
        return "blank lines" if self.blanks_differ or at_its_ends else NAMES[self.loss]


def candidates(page: Page, old: list[str]) -> list[Match]:
    """Every place where the filled lines stand one after another, whatever is forgotten; up to a limit."""
    filled = [index for index, line in enumerate(old) if not is_blank(line)]
    if not filled:
        return []
    needle = "\n" + "\n".join(squashed(old[index]) for index in filled) + "\n"
    found = []
    count = at = 0
    for hit in offsets(page.squash, needle, most=MOST_CANDIDATES):
        count += page.squash.count("\n", at, hit)
        at = hit
        rows = page.filled[count : count + len(filled)]
        if (match := _laid(page, old, filled, rows)) is not None:
            found.append(match)
    return found


def closest(found: list[Match]) -> list[Match]:
    """Those than which none loses less: one lost quotes and one lost depth can't be told apart."""
    return [match for match in found if not any(other.is_closer(match) for other in found)]


def tells_enough(old: list[str], match: Match) -> bool:
    """Whether the block says enough to be recognised after what was forgotten."""
    letters = sum(sum(map(str.isalnum, line)) for line in old)
    if match.blanks_differ:
        return letters >= FEWEST_LETTERS_ACROSS_BLANKS
    return match.loss <= Loss.TRAILING or letters >= FEWEST_LETTERS


def _laid(page: Page, old: list[str], filled: list[int], rows: list[int]) -> Match | None:
    worst = Loss.NOTHING
    for index, row in zip(filled, rows, strict=True):
        least = loss(old[index], page.bare[row])
        if least is None:
            return None
        worst = max(worst, least)
    places: list[int | None] = [None] * len(old)
    for index, row in zip(filled, rows, strict=True):
        places[index] = row
    inside = _lay_inner(filled, places)
    edges = _lay_edges(page, old, filled, places)
    known = [place for place in places if place is not None]
    lost = frozenset[Loss]().union(
        *(losses(old[i], page.bare[p]) for i, p in enumerate(places) if p is not None)
    )
    worst = max(worst, max(lost, default=Loss.NOTHING))
    return Match(tuple(places), min(known), max(known) + 1, worst, inside, edges, lost)


def _lay_inner(filled: list[int], places: list[int | None]) -> bool:
    """Lay blank lines between filled ones on the file's; tell whether their numbers differ anywhere."""
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


def _lay_edges(page: Page, old: list[str], filled: list[int], places: list[int | None]) -> bool:
    """Lay blank lines before and after the block on the file's; tell whether some have no counterpart."""
    for start, direction, stop in ((filled[0], -1, -1), (filled[-1], 1, len(old))):
        row = places[start]
        for index in range(start + direction, stop, direction):
            assert row is not None
            row += direction
            if not 0 <= row < len(page.bare) or not is_blank(page.bare[row]):
                return True
            places[index] = row
    return False
