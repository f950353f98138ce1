"""Folding: what two lines still have in common when one named kind of information is lost."""

import re
import unicodedata
from enum import IntEnum
from itertools import combinations

BLANKS = " \t\f\v"
_ASCII_BLANKS = BLANKS + "\r"
OPENERS = (":", "{", "(", "[", "do", "then", "=>")
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
# One blank stays between words, and before a sign that holds to the next word alone: `rm -f`, `.menu .item`.
_BLANK_RUN = re.compile(r"[ \t\f\v]+")
_NEEDLESS_BLANK = re.compile(r"(?<!\w) | (?!\w|[-.:#@]{1,2}\w)")
# A string that nothing closes goes to the end of the line, so that no part of it is looked at twice.
_QUOTED = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\\?$)'
    r"|`(?:[^`\\]|\\.)*+(?:`|\\?$)"
    r"|(?<!\w)(?:[bfruBFRU]{1,2}|L)?'(?:[^'\\]|\\.)*+(?:'|\\?$)"
)


class Loss(IntEnum):
    """What must be forgotten for two lines to be equal, from nothing to most."""

    NOTHING = 0
    TRAILING = 1
    INDENTATION = 2
    INNER = 3
    LOOK = 4
    QUOTES = 5


_WITHIN = (Loss.INNER, Loss.LOOK, Loss.QUOTES)
_SUBSETS = [frozenset(kinds) for count in range(len(_WITHIN) + 1) for kinds in combinations(_WITHIN, count)]


def squashed(text: str) -> str:
    """Forget all of it at once; equal lines under any loss are equal here, the reverse needs `loss`."""
    return _composed(text).translate(_SQUASH)


def squashed_lines(text: str) -> list[str]:
    """Every line squashed. Lines in ASCII, which most are, go together: they take a tenth of the time."""
    if text.isascii():
        return squashed(text).split("\n")
    rows = text.split("\n")
    plain = iter(squashed("\n".join(filter(str.isascii, rows))).split("\n"))
    return [next(plain) if row.isascii() else squashed(row) for row in rows]


def loss(one: str, other: str) -> Loss | None:
    """The least that must be forgotten for the two lines to be equal; None when they say different things."""
    if one == other:
        return Loss.NOTHING
    if one.rstrip(BLANKS) == other.rstrip(BLANKS):
        return Loss.TRAILING
    if one.strip(BLANKS) == other.strip(BLANKS):
        return Loss.INDENTATION
    if tight(one) == tight(other):
        return Loss.INNER
    one, other = plain(one), plain(other)
    if tight(one) == tight(other):
        return Loss.LOOK
    if tight(one.translate(_QUOTES)) == tight(other.translate(_QUOTES)):
        return Loss.QUOTES
    return None


def losses(one: str, other: str) -> frozenset[Loss]:
    """All that must be forgotten for two lines to be equal that say the same."""
    if one == other:
        return frozenset()
    mine, theirs = one.strip(BLANKS), other.strip(BLANKS)
    if not mine and not theirs:
        return frozenset({Loss.TRAILING})
    found = {Loss.TRAILING} if _tail(one) != _tail(other) else set()
    if indent(one) != indent(other):
        found.add(Loss.INDENTATION)
    least = (kinds for kinds in _SUBSETS if _folded(mine, kinds) == _folded(theirs, kinds))
    return next(least, _SUBSETS[-1]) | found


def _folded(text: str, kinds: frozenset[Loss]) -> str:
    text = plain(text) if Loss.LOOK in kinds else text
    text = text.translate(_QUOTES) if Loss.QUOTES in kinds else text
    return tight(text) if Loss.INNER in kinds else text


def _tail(line: str) -> str:
    return line[len(line.rstrip(BLANKS)) :]


def plain(text: str) -> str:
    """Typographic characters as those on a keyboard, invisible ones gone."""
    return text if text.isascii() else _composed(text).translate(LOOK_ALIKES)


def tight(line: str) -> str:
    """Without needless blanks; those inside quotes are content and stay part of the key."""
    quoted = [piece for piece in _QUOTED.findall(line) if " " in piece or "\t" in piece]
    bare = _NEEDLESS_BLANK.sub("", _BLANK_RUN.sub(" ", line.strip(BLANKS)))
    return "\0".join([bare, *quoted]) if quoted else bare


def is_blank(line: str) -> bool:
    """Whether nothing is to be seen on the line."""
    return not line.strip(_ASCII_BLANKS) if line.isascii() else not squashed(line)


def indent(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(BLANKS))]


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
