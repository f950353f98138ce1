"""Splices: bytes as what they have between the beginning and the end of others."""

import struct
from typing import NamedTuple

_MARK = b"d"
_FACTS = struct.Struct(">c32sQQ")
SPLICE_BYTES = _FACTS.size
"""Of a header; the bytes in between follow it, packed."""
_FIRST_STEP, _LARGEST_STEP = 1 << 12, 1 << 16
"""Pieces of this size stay in the processor's cache."""


class Splice(NamedTuple):
    """How much of other bytes stands at both ends."""

    base: str
    """The digest of those others, which are kept whole."""
    head: int
    tail: int

    @classmethod
    def read(cls, packed: bytes) -> "Splice | None":
        """What a header says; None when the bytes are packed whole."""
        if packed[:1] != _MARK:
            return None
        _, base, head, tail = _FACTS.unpack_from(packed)
        return cls(base.hex(), head, tail)

    @property
    def header(self) -> bytes:
        """The inverse of `read`."""
        return _FACTS.pack(_MARK, bytes.fromhex(self.base), self.head, self.tail)

    def middle(self, data: bytes) -> bytes:
        """What is left of some bytes without both ends."""
        return data[self.head : len(data) - self.tail]

    def around(self, middle: bytes, base: bytes) -> bytes:
        """The inverse of `middle`."""
        return b"".join((base[: self.head], middle, base[len(base) - self.tail :]))


def shared_ends(a: bytes, b: bytes) -> tuple[int, int]:
    """How many bytes both begin with, and how many of the others both end with."""
    head = _run(a, b, min(len(a), len(b)))
    most = min(len(a), len(b)) - head
    return head, _run(a[len(a) - most :], b[len(b) - most :], most, backwards=True)


def _run(a: bytes, b: bytes, most: int, *, backwards: bool = False) -> int:
    same, step = 0, _FIRST_STEP

    def equal(start: int, end: int) -> bool:
        if backwards:
            return a[most - end : most - start] == b[most - end : most - start]
        return a[start:end] == b[start:end]

    while same < most and equal(same, min(same + step, most)):
        same, step = min(same + step, most), min(2 * step, _LARGEST_STEP)
    over = min(same + step, most)
    while over - same > 1:
        middle = (same + over) // 2
        if equal(same, middle):
            same = middle
        else:
            over = middle
    return same
