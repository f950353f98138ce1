"""Comparing: how far two texts, or two runs of bytes, are the same from either end."""

from handtools.text.splicing import Spliced

_FIRST_STEP = 64
# Pieces of this size stay in the processor's cache; comparing all at once does not.
_LARGEST_STEP = 1 << 16
Sliced = str | bytes | Spliced


def common_prefix(a: Sliced, b: Sliced, known: int = 0) -> int:
    """Give the length of the common prefix, of which `known` characters need no look."""
    at, most = min(known, len(a), len(b)), min(len(a), len(b))
    step = _FIRST_STEP
    while at < most:
        end = min(at + step, most)
        if a[at:end] != b[at:end]:
            return at + _equal(a[at:end], b[at:end])
        at, step = end, min(2 * step, _LARGEST_STEP)
    return most


def common_suffix(a: Sliced, b: Sliced, known: int = 0) -> int:
    """Give the length of the common suffix, of which `known` characters need no look."""
    at, most = min(known, len(a), len(b)), min(len(a), len(b))
    step = _FIRST_STEP
    while at < most:
        end = min(at + step, most)
        tail_a, tail_b = a[len(a) - end : len(a) - at], b[len(b) - end : len(b) - at]
        if tail_a != tail_b:
            return at + _equal(tail_a[::-1], tail_b[::-1])
        at, step = end, min(2 * step, _LARGEST_STEP)
    return most


def common_ends(a: Sliced, b: Sliced) -> tuple[int, int]:
    """Give how much both begin with, and how much of the rest both end with."""
    head = common_prefix(a, b)
    return head, min(common_suffix(a, b), min(len(a), len(b)) - head)


def _equal(a: str | bytes, b: str | bytes) -> int:
    """Give the length of the common prefix of two that differ, by bisection."""
    low, high = 0, len(a)
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
