"""Targets: a file and the part of it that is meant, in one string.

`a.py`, `a.py:10-40`, `a.py:10`, `a.py::Class.method`: as compilers, test runners and people write them.
The column of `a.py:10:5` is dropped.
"""

import re
from dataclasses import dataclass

_LINES = re.compile(r"(?P<path>.+?):L?(?P<first>-?\d{1,9})(?:[-–]L?(?P<last>\d{0,9})|:\d+)?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """A path, and perhaps a symbol or a range of lines in it."""

    path: str
    symbol: str = ""
    first: int | None = None
    last: int | None = None

    @property
    def whole(self) -> bool:
        """Whether no part is named."""
        return not self.symbol and self.first is None and self.last is None


def target(text: str) -> Target:
    """Read a target; what names no part is a path as it stands."""
    path, mark, symbol = text.partition("::")
    if mark and path and symbol:
        return Target(path, symbol)
    match = _LINES.match(text)
    if match is None:
        return Target(text)
    last = match["last"]
    return Target(match["path"], "", int(match["first"]), int(last) if last else None)
