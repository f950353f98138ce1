"""Fitting: as many rows as a budget of tokens allows."""

from collections.abc import Sequence
from itertools import accumulate

from handtools.text.tokens import estimate


def fitting(rows: Sequence[str], tokens: int) -> int:
    """Count the first rows that fit together, one at least where there is one."""
    whole = "\n".join(rows)
    # No sign of ASCII costs more than a token.
    if (len(whole) <= tokens and whole.isascii()) or estimate(whole) <= tokens:
        return len(rows)
    costs = accumulate(estimate(f"{row}\n") for row in rows)
    return max(sum(cost <= tokens for cost in costs), 1)
