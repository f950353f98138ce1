"""Formatting limited to an edit: keep only a formatter's changes to the lines that the edit touched."""

import re
from collections import Counter

from handtools.text.diffs.alignment import LineEdit, align_lines
from handtools.text.lines import split_lines

_WORD = re.compile(r"\w+")
_SPARE_WORDS = 4
_SPARE_SHARE = 0.02


def limit_formatting_to_edit(before: str, after: str, formatted: str) -> str:
    """Return the edited text with the formatter's changes only on lines that the edit touched."""
    was, now, tidy = split_lines(before), split_lines(after), split_lines(formatted)
    touched = [(edit.start_b, edit.end_b) for edit in align_lines(was, now)]
    lines: list[str] = []
    at = 0
    for edit in align_lines(now, tidy):
        lines += now[at : edit.start_a]
        near = any(_near(now, edit, start, end) for start, end in touched)
        lines += tidy[edit.start_b : edit.end_b] if near else now[edit.start_a : edit.end_a]
        at = edit.end_a
    return "".join([*lines, *now[at:]])


def _near(lines: list[str], edit: LineEdit, start: int, end: int) -> bool:
    """Whether a formatter's change touches the edited lines, or the blank lines next to them."""
    if edit.start_a <= end and start <= edit.end_a:
        return True
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    return start <= edit.start_a and edit.end_a <= end


def has_same_words(before: str, after: str) -> bool:
    """Whether two texts have nearly the same words; true for a formatter's output, not for a rewrite."""
    one, two = (Counter(word.lower() for word in _WORD.findall(text)) for text in (before, after))
    different = (one - two).total() + (two - one).total()
    # In a very short file most words must stay: emptying a file is not formatting.
    return different <= min(_SPARE_WORDS, one.total() // 2) + _SPARE_SHARE * one.total()
