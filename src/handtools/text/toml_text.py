"""TOML parsing with Python's parser, limited so that the time is linear in the length of the text."""

import re
import tomllib
from typing import Any

MAX_TOML_CHARS = 1 << 20
MAX_KEY_PARTS = 64
_PART = r"""[\w"'-]++[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"""(?<![\w"'.-])(?:{_PART}){{{MAX_KEY_PARTS}}}""")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raises `ValueError` or `RecursionError` if it is not valid TOML or too large.

    The parser's time is quadratic in the length of a dotted key: 32 kB of `a.a.a.…` would take seconds.
    """
    if len(text) > MAX_TOML_CHARS:
        raise ValueError(f"it is longer than {MAX_TOML_CHARS:,} characters")
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key on line {line} has more than {MAX_KEY_PARTS} parts")
    return tomllib.loads(text)
