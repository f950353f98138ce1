"""Guarding: edits that are refused before anything is looked for."""

import re

from handtools.text.diffing import opcodes
from handtools.text.matching.outcomes import Refused

LARGEST_CHARS = 64 * 1024 * 1024
_DOTS = r"(?:\.{3,}|…)"
_OPENING = r"(?://+|#+|/\*+|<!--|--|;+|%+|\"|\*|\(\*|\{\*|\{/\*)"
_CLOSING = r"(?:\*/|-->|\*\)|\*/\})"
_ANY = ".{0,80}"
_SAYS = (
    r"\b(?:unchanged|remain\w*|existing|rest of|previous code|same as before|omitted"
    r"|other \w+ here|more \w+ here|goes here)\b"
)
_SAME = r"\b(?:unchanged|remains? (?:the same|unchanged|as is))\b"
# Dots alone; or dots and any words, but then in a comment: `...opts,` is code. A sentence that goes on right after
# the dots (`# ...minus the border`) is a comment of the file's.
_ELISION = re.compile(
    rf"{_OPENING}?\s*[(\[]?{_DOTS}[)\]]?\s*{_CLOSING}?"
    rf"|{_OPENING}\s*[(\[]?{_DOTS}(?: [\w ,'’()-]{{0,80}}|[\w ,'’()-]{{0,80}}{_DOTS})[)\]]?\s*{_CLOSING}?"
)
_DOTTED = re.compile(
    rf"{_OPENING}\s*[(\[]?\s*{_DOTS}{_ANY}{_SAYS}{_ANY}"
    rf"|{_OPENING}\s*{_ANY}{_SAYS}{_ANY}{_DOTS}.{{0,10}}"
    rf"|{_DOTS}{_ANY}{_SAYS}{_ANY}",
    re.IGNORECASE,
)
_NOTE = re.compile(rf"{_OPENING}\s*[(\[]?\s*[\w ]{{0,60}}{_SAME}[)\]]?\.?\s*{_CLOSING}?", re.IGNORECASE)
_OMISSION = re.compile(rf"{_DOTTED.pattern}|{_NOTE.pattern}", re.IGNORECASE)
_LONGEST_NOTE = 200
_WORDS_OF_A_LABEL = 4


def check(old: str, new: str) -> Refused | None:
    """Refuse what can't be meant."""
    if not old:
        return Refused(code="empty", message="old_string is empty.", hint="To create a file, write it.")
    if old == new:
        return Refused(code="no_change", message="old_string and new_string are the same text.")
    if (note := omission(old, new)) is not None:
        return Refused(
            code="omission",
            message=f"new_string leaves code out ({note!r}); that note would be written into the file.",
            hint="Send the whole new text, or a smaller old_string.",
        )
    return None


def omission(old: str, new: str) -> str | None:
    """A line of `new` that stands for code left out and that `old` does not have."""
    known = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        text = line.strip()
        if not text or text in known or len(text) > _LONGEST_NOTE or not _OMISSION.fullmatch(text):
            continue
        if not _is_sentence(text) or _drops_lines(old, new):
            return text
    return None


def _is_sentence(text: str) -> bool:
    """Whether it may be a comment on the code as well: no dots, and words enough to say of what it speaks."""
    return _NOTE.fullmatch(text) is not None and len(text.split()) > _WORDS_OF_A_LABEL


def _drops_lines(old: str, new: str) -> bool:
    """Whether any line of `old` is gone: the note may stand for it, wherever a diff puts the two."""
    return any(edit.start_a < edit.end_a for edit in opcodes(old.split("\n"), new.split("\n")))


def is_elision(line: str) -> bool:
    """Whether a line only says that lines were left out: with dots, else it may be a line of the file."""
    text = line.strip()
    return 0 < len(text) <= _LONGEST_NOTE and any(form.fullmatch(text) for form in (_ELISION, _DOTTED))
