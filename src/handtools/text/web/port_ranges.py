"""Lists of TCP ports and port ranges in configuration: `3000`, or `8000-8999`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_PORT = 65535
_RANGE = re.compile(r"([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?", re.ASCII)


class BadPort(Exception):
    """Raised for an entry that is neither a port nor a range of ports."""


@dataclass(frozen=True, slots=True)
class PortRanges:
    """Ports as ranges, with both ends included."""

    ranges: tuple[tuple[int, int], ...]

    def contain(self, port: int) -> bool:
        """Whether a port is in one of the ranges."""
        return any(first <= port <= last for first, last in self.ranges)


def parse_port_ranges(written: Iterable[str]) -> PortRanges:
    """Parse a list of ports; raises `BadPort`, which names the entry."""
    return PortRanges(tuple(map(_range, written)))


def _range(entry: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(entry)
    first = int(match[1]) if match else 0
    last = int(match[2] or first) if match else 0
    if not 0 < first <= last <= MAX_PORT:
        raise BadPort(f"`{entry}` is not a port. Use for example `3000`, or `8000-8999` for a range.")
    return first, last
