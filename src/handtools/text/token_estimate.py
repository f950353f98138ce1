"""Token estimates, and how many rows of a listing fit a number of tokens.

Tokenizers differ and most are not public, so the weights err on the high side: about 4 characters per token
for English prose, 3 for source code, 2 for dense JSON, and more than one token per Chinese character.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

# Tokens per character, by its first byte in UTF-8. Most letters share a token with their neighbours and
# a space with the word after it; punctuation and digits rarely share one.
_KINDS = (
    (bytes({*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1)}), 0.28),
    (b" \t", 0.08),
    (bytes(range(0x80, 0xC0)), 0.0),  # the later bytes of a character
    (b"0123456789", 0.5),
    (b"\r\n", 0.6),
    (bytes(range(0xC0, 0xE0)), 0.55),  # Cyrillic, Greek, Hebrew, Arabic, accented Latin
    (bytes(range(0xE0, 0xF0)), 1.2),  # Chinese, Japanese, Korean, Indic
    (bytes(range(0xF0, 0x100)), 2.5),  # emoji and rare scripts
)
_SIGN = 0.8
_PLAIN_KINDS = tuple((kind, weight) for kind, weight in _KINDS if kind.isascii())


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text, by kinds of characters."""
    rest = text.encode("utf-8", "surrogatepass")
    tokens = 0.0
    for kind, weight in _PLAIN_KINDS if text.isascii() else _KINDS:
        left = rest.translate(None, kind)
        tokens += (len(rest) - len(left)) * weight
        rest = left
    return math.ceil(tokens + len(rest) * _SIGN)


def count_rows_that_fit(rows: Sequence[str], tokens: int) -> int:
    """Count how many of the first rows together fit a number of tokens; at least one if there is any."""
    whole = "\n".join(rows)
    # No ASCII character is estimated at more than one token.
    if (len(whole) <= tokens and whole.isascii()) or estimate_tokens(whole) <= tokens:
        return len(rows)
    costs = accumulate(estimate_tokens(f"{row}\n") for row in rows)
    return max(sum(cost <= tokens for cost in costs), 1)
