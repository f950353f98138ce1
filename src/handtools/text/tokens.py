"""Tokens: a cheap estimate of what a text costs a model, rather too high than too low."""

# Tokens per character of each kind.
_LETTERS = 0.25
_DIGITS = 0.5
_PUNCTUATION = 0.7
_LINE_ENDS = 0.5
_SPACES = 0.05
# Per UTF-8 byte beyond ASCII: 1.3 a CJK character, 0.9 a Cyrillic letter, 1.7 an emoji.
_WIDE_BYTES = 0.43

_KINDS = (
    (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", _LETTERS),
    (b"0123456789", _DIGITS),
    (b"\r\n", _LINE_ENDS),
    (b" \t", _SPACES),
    (bytes(range(128, 256)), _WIDE_BYTES),
)


def estimate(text: str) -> int:
    """Estimate the number of tokens of `text`."""
    rest = text.encode("utf-8", "surrogatepass")
    tokens = 0.0
    for kind, weight in _KINDS:
        left = rest.translate(None, kind)
        tokens += (len(rest) - len(left)) * weight
        rest = left
    return -int(-(tokens + len(rest) * _PUNCTUATION) // 1)
