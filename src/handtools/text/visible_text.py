"""Text made safe to approve: shows hidden characters, and counts long runs of blanks and combining marks."""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n\t]+")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Unicode categories to make visible: controls, formats, unassigned, private, surrogates, odd spaces."""
_BLANK = frozenset(
    map(
        chr,
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, *range(0x180B, 0x1810)),
    )
) | frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Letters and marks that are displayed as nothing or blank space."""
MAX_COMBINING_MARKS = 4
"""Maximum number of marks on one letter, enough for pointed Hebrew; more would overlap neighbouring lines."""
_BLANK_LINES = re.compile(r"(?:^[ \t]*\n){4,}", re.MULTILINE)
_BLANKS = re.compile(r"(?<=\S)[ \t]{24,}(?=\S)|(?<=\S)[ \t]{80,}$|^[ \t]{80,}", re.MULTILINE)


_RUNS = re.compile(r"[ ⏎]{2,}")


def with_visible_characters(text: str) -> str:
    """Make hidden characters visible: controls as symbols, others by code point; count runs of marks."""
    return _NOT_PLAIN.sub(lambda found: _visible_run(found[0]), text)


def without_long_blanks(text: str) -> str:
    """Replace long runs of blanks and blank lines, which push text out of sight, with their count."""
    text = _BLANK_LINES.sub(lambda found: f"[… {found[0].count(chr(10))} blank lines …]\n", text)
    return _BLANKS.sub(lambda found: f" [… {len(found[0])} blanks …] ", text)


def visible_line(text: str, max_chars: int) -> str:
    """Make a name or command visible on one line for a title, cut with `…` at a number of characters."""
    flat = _RUNS.sub(
        lambda found: found[0][0],
        with_visible_characters(text).strip("\n").replace("\t", " ").replace("\n", "⏎"),
    )
    return flat if len(flat) <= max_chars else f"{flat[: max_chars - 1]}…"


def _visible_run(chars: str) -> str:
    shown: list[str] = []
    for is_mark, group in groupby(chars, _is_combining_mark):
        run = [*group]
        counted = is_mark and len(run) > MAX_COMBINING_MARKS
        shown += [f"⟨{len(run)} combining marks⟩"] if counted else map(_visible_form, run)
    return "".join(shown)


@lru_cache(maxsize=1024)
def _is_combining_mark(char: str) -> bool:
    return char not in _BLANK and unicodedata.category(char) in {"Mn", "Me"}


@lru_cache(maxsize=1024)
def _visible_form(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    hidden = char in _BLANK or unicodedata.category(char) in _UNSEEN
    return f"⟨U+{code:04X}⟩" if hidden else char
