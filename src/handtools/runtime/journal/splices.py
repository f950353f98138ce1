"""Splices: bytes as what they have between the beginning and the end of others."""

import struct
from typing import NamedTuple

_MARK = b"d"
_FACTS = struct.Struct(">c32sQQ")
SPLICE_BYTES = _FACTS.size
"""Of a header; the bytes in between follow it, packed."""


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
