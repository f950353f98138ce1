"""Normalized lines, for comparing lines regardless of white space, look-alike characters or quotes.

`MatchLoss` names what is ignored for two lines to be equal; `LineIndex` has a text's lines and their
normalized forms, computed lazily.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import combinations, pairwise

from handtools.text import lines
from handtools.text.lines import BLANKS, indentation_of_line
from handtools.tools.editing.edit_outcome import CharSpan, Excerpt, MatchHint, MatchTier

_ASCII_BLANKS = BLANKS + "\r"
BLOCK_OPENERS = (":", "{", "(", "[", "do", "then", "=>")
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u00b4\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}

LOOK_ALIKES: dict[int, str | None] = {
    **_FULL_WIDTH,
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _INVISIBLE), None),
    **dict.fromkeys(map(ord, _SINGLE_QUOTES), "'"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
    **dict.fromkeys(map(ord, _DASHES), "-"),
    ord("\u2026"): "...",
}
_QUOTES = str.maketrans({"'": '"', "`": '"'})
_SQUASH = str.maketrans(
    {
        **LOOK_ALIKES,
        **dict.fromkeys(map(ord, " \t\f\v\r" + _SPACES)),
        **dict.fromkeys(map(ord, "'`\uff40" + _SINGLE_QUOTES), '"'),
    }
)
# Keep one space between words, and before punctuation attached to the next word: `rm -f`, `.menu .item`.
_BLANK_RUN = re.compile(r"[ \t\f\v]+")
_NEEDLESS_BLANK = re.compile(r"(?<!\w) | (?!\w|[-.:#@]{1,2}\w)")
# An unclosed string extends to the end of the line, so that no part of it is matched again.
_QUOTED = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\\?$)'
    r"|`(?:[^`\\]|\\.)*+(?:`|\\?$)"
    r"|(?<!\w)(?:[bfruBFRU]{1,2}|L)?'(?:[^'\\]|\\.)*+(?:'|\\?$)"
)


class MatchLoss(IntEnum):
    """What must be ignored for two lines to be equal, in ascending order from nothing to quote style."""

    NOTHING = 0
    TRAILING = 1
    INDENTATION = 2
    INNER = 3
    LOOK = 4
    QUOTES = 5


_WITHIN = (MatchLoss.INNER, MatchLoss.LOOK, MatchLoss.QUOTES)
_SUBSETS = [frozenset(kinds) for count in range(len(_WITHIN) + 1) for kinds in combinations(_WITHIN, count)]


def normalize_for_matching(text: str) -> str:
    """Normalize text as far as possible: remove white space, make look-alikes and quotes plain.

    Lines that are equal under any `MatchLoss` are equal here, but not the other way round.
    """
    return _nfc_text(text).translate(_SQUASH)


def normalize_lines(text: str) -> list[str]:
    """Normalize every line of a text; return them as a list.

    ASCII lines are processed together, which is faster.
    """
    if text.isascii():
        return normalize_for_matching(text).split("\n")
    rows = text.split("\n")
    plain = iter(normalize_for_matching("\n".join(filter(str.isascii, rows))).split("\n"))
    return [next(plain) if row.isascii() else normalize_for_matching(row) for row in rows]


def line_match_loss(one: str, other: str) -> MatchLoss | None:
    """Return the least that must be ignored for two lines to be equal; None if they differ in content."""
    if one == other:
        return MatchLoss.NOTHING
    if one.rstrip(BLANKS) == other.rstrip(BLANKS):
        return MatchLoss.TRAILING
    if one.strip(BLANKS) == other.strip(BLANKS):
        return MatchLoss.INDENTATION
    if without_needless_blanks(one) == without_needless_blanks(other):
        return MatchLoss.INNER
    one, other = with_plain_typography(one), with_plain_typography(other)
    if without_needless_blanks(one) == without_needless_blanks(other):
        return MatchLoss.LOOK
    if without_needless_blanks(one.translate(_QUOTES)) == without_needless_blanks(other.translate(_QUOTES)):
        return MatchLoss.QUOTES
    return None


def all_line_match_losses(one: str, other: str) -> frozenset[MatchLoss]:
    """Return all kinds of difference between two lines with the same content."""
    if one == other:
        return frozenset()
    mine, theirs = one.strip(BLANKS), other.strip(BLANKS)
    if not mine and not theirs:
        return frozenset({MatchLoss.TRAILING})
    found = {MatchLoss.TRAILING} if _trailing_blanks(one) != _trailing_blanks(other) else set()
    if indentation_of_line(one) != indentation_of_line(other):
        found.add(MatchLoss.INDENTATION)
    least = (
        kinds
        for kinds in _SUBSETS
        if _text_ignoring_losses(mine, kinds) == _text_ignoring_losses(theirs, kinds)
    )
    return next(least, _SUBSETS[-1]) | found


def _text_ignoring_losses(text: str, losses: frozenset[MatchLoss]) -> str:
    text = with_plain_typography(text) if MatchLoss.LOOK in losses else text
    text = text.translate(_QUOTES) if MatchLoss.QUOTES in losses else text
    return without_needless_blanks(text) if MatchLoss.INNER in losses else text


def _trailing_blanks(line: str) -> str:
    return line[len(line.rstrip(BLANKS)) :]


def with_plain_typography(text: str) -> str:
    """Replace typographic characters with their plain ASCII equivalents, and drop invisible ones."""
    return text if text.isascii() else _nfc_text(text).translate(LOOK_ALIKES)


def without_needless_blanks(line: str) -> str:
    """Remove insignificant white space from a line of code; white space inside quotes stays."""
    quoted = [piece for piece in _QUOTED.findall(line) if " " in piece or "\t" in piece]
    bare = _NEEDLESS_BLANK.sub("", _BLANK_RUN.sub(" ", line.strip(BLANKS)))
    return "\0".join([bare, *quoted]) if quoted else bare


def is_blank(line: str) -> bool:
    """Whether a line has no visible character."""
    return not line.strip(_ASCII_BLANKS) if line.isascii() else not normalize_for_matching(line)


def _nfc_text(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class LineIndex:
    """One text with its lines in several forms, computed on first use: with ends, without, normalized."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nearest: dict[str, Excerpt | None] = {}
        """Cache for `nearest_lines`: the excerpt nearest to each text."""

    @cached_property
    def text_with_line_feeds(self) -> str:
        r"""The indexed text with every line ending converted to `\n`."""
        return lines.convert_line_ends(self.text, "\n")

    @cached_property
    def rows(self) -> list[str]:
        """The lines of the indexed text, with their line endings."""
        return lines.split_lines(self.text)

    @cached_property
    def lines_without_ends(self) -> list[str]:
        """The lines of the indexed text, without their line endings."""
        rows = self.text_with_line_feeds.split("\n")
        return rows[:-1] if rows[-1] == "" else rows

    @cached_property
    def _squashed_rows(self) -> list[str]:
        return normalize_lines(self.text_with_line_feeds)

    @cached_property
    def filled(self) -> list[int]:
        """The indexes of the lines that are not blank."""
        return [index for index, row in enumerate(self._squashed_rows) if row]

    @cached_property
    def normalized_text(self) -> str:
        """All non-blank lines, normalized and joined by line feeds, with one at the start and the end."""
        return "\n" + "\n".join(filter(None, self._squashed_rows)) + "\n"

    @cached_property
    def dominant_line_end(self) -> str:
        """The line ending that most lines of the indexed text have."""
        return lines.dominant_ending(self.text)

    def span(self, first: int, last: int) -> CharSpan:
        """Return the character offsets of lines `first` up to, not including, `last`; indexes from 0."""
        start = sum(map(len, self.rows[:first]))
        return CharSpan(start, start + sum(map(len, self.rows[first:last])))

    def excerpt_of_lines(self, first: int, last: int) -> Excerpt:
        """Return lines `first` up to, not including, `last` as an excerpt to show; indexes from 0."""
        first, last = max(first, 0), min(last, len(self.lines_without_ends))
        return Excerpt(first + 1, tuple(self.lines_without_ends[first:last]))


def substring_offsets(text: str, needle: str, *, most: int) -> list[int]:
    """Return the offsets of a substring, including overlapping occurrences, up to `most` of them."""
    found: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(needle, at + 1)
    return found


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
# The second limit applies if blank lines differ.
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
        """Whether this match's differences from the file are some, but not all, of the other match's."""
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
    """Find the places in the file where the non-blank old lines follow each other, all in normalized form.

    Returns the first thousand; with a hint, all that are near its line.
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
        # A match may begin above its first non-blank row, if the old lines begin with blank ones.
        if hint is not None and not -hint.within <= rows[0] + 1 - hint.line <= hint.within + filled[0]:
            continue
        if (match := _line_match_at_rows(line_index, old, filled, rows)) is not None:
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


def _line_match_at_rows(
    line_index: LineIndex, old: list[str], filled: list[int], rows: list[int]
) -> LineMatch | None:
    places: list[int | None] = [None] * len(old)
    for index, row in zip(filled, rows, strict=True):
        if line_match_loss(old[index], line_index.lines_without_ends[row]) is None:
            return None
        places[index] = row
    inside = _place_inner_blank_lines(filled, places)
    edges = _place_outer_blank_lines(line_index, old, filled, places)
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


def _place_inner_blank_lines(filled: list[int], places: list[int | None]) -> bool:
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


def _place_outer_blank_lines(
    line_index: LineIndex, old: list[str], filled: list[int], places: list[int | None]
) -> bool:
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
