"""Tangles: texts that take a parser for ever, or end its process, told by counting what they are made of.

Some parsers keep a list of what is open and go through it at every word: time grows with the square of its length.
Some of them have little room for it, and end the process when it is full. Each limit is on a spelling without
which the list can't grow: beyond what people write, and low enough that the worst text takes about two seconds.
"""

import re
from typing import NamedTuple


class _Limit(NamedTuple):
    spelling: re.Pattern[str]
    most: int


_OPENERS = {
    "bash": _Limit(re.compile("<<"), 4_000),
    "css": _Limit(re.compile(r":[-\w]+\("), 4_000),
    "html": _Limit(re.compile(r"<[^\W\d_]"), 12_000),
    "kotlin": _Limit(re.compile(r"\$\{"), 500),
    "lua": _Limit(re.compile(r"\[=*\["), 4_000),
    "scala": _Limit(re.compile(r"\bcase\b"), 4_000),
}
"""In the whole text."""
_LEVELS = {
    "markdown": re.compile(r"^(?:[ \t>]|[-+*](?=[ \t])|\d+[.)](?=[ \t]))+", re.MULTILINE),
    "yaml": re.compile(r"^(?:[ \t]|[-?:](?=[ \t]))+", re.MULTILINE),
}
"""What stands at the beginning of a line, and says how deep it is."""
_MOST_CHARS = 120
"""Of that: in each there are up to two levels, and about 250 levels fill the room."""


def is_tangled(text: str, language: str) -> bool:
    """Whether a parser of a language had better not be given a text."""
    if (limit := _OPENERS.get(language)) and sum(1 for _ in limit.spelling.finditer(text)) > limit.most:
        return True
    levels = _LEVELS.get(language)
    return levels is not None and any(len(found[0]) > _MOST_CHARS for found in levels.finditer(text))
