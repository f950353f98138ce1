"""Scoping: of what a formatter would do to a file, the part that an edit is answerable for."""

import re
from collections import Counter

from handtools.text.aligning import align
from handtools.text.lines import split

_WORD = re.compile(r"\w+")
_NEAR = 1
"""Lines between an edit and what is still near it: which of two equal lines goes is the diff's whim."""
_SPARE_WORDS = 4
_SPARE_SHARE = 0.02


def scoped(before: str, after: str, formatted: str) -> str:
    """The text after an edit, formatted where the edit touched it; everything else as it was."""
    was, now, tidy = split(before), split(after), split(formatted)
    touched = [(edit.start_b, edit.end_b) for edit in align(was, now)]
    lines: list[str] = []
    at = 0
    for edit in align(now, tidy):
        lines += now[at : edit.start_a]
        near = any(edit.start_a <= end + _NEAR and start <= edit.end_a + _NEAR for start, end in touched)
        lines += tidy[edit.start_b : edit.end_b] if near else now[edit.start_a : edit.end_a]
        at = edit.end_a
    return "".join([*lines, *now[at:]])


def same_words(before: str, after: str) -> bool:
    """Whether two texts are made of nearly the same words: a formatter moves them and respells a few."""
    one, two = (Counter(word.lower() for word in _WORD.findall(text)) for text in (before, after))
    different = (one - two).total() + (two - one).total()
    # Of a file of a few words, most must stay: nothing is no formatting of something.
    return different <= min(_SPARE_WORDS, one.total() // 2) + _SPARE_SHARE * one.total()
