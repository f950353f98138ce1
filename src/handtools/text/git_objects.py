"""Loose objects of git: inflated piece by piece within a limit, to compare their content with their names.

ADR 163.
"""

import hashlib
import zlib
from collections.abc import Iterable
from itertools import chain

_PART_BYTES = 1 << 20


class BadGitObject(ValueError):
    """A file can't be read as a loose object, or holds more than it may."""


def loose_object_digest(pieces: Iterable[bytes], *, algorithm: str, max_bytes: int) -> tuple[str, int]:
    """Return the hash of a loose object's content, which git names it by, and the size of that content.

    `pieces` are the bytes of the file. Raises `BadGitObject`, also if the content has more than `max_bytes`.
    """
    inflater, size = zlib.decompressobj(), 0
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for piece in chain(pieces, [b""]):
        waiting = piece
        while not inflater.eof:
            try:
                part = inflater.decompress(waiting, _PART_BYTES)
            except zlib.error as error:
                raise BadGitObject(f"It can't be inflated: {error}.") from error
            waiting = inflater.unconsumed_tail
            size += len(part)
            if size > max_bytes:
                raise BadGitObject(f"It holds more than {max_bytes:,} bytes.")
            digest.update(part)
            if not waiting and len(part) < _PART_BYTES:
                break
        else:
            if waiting or inflater.unused_data:
                raise BadGitObject("Other bytes follow its end.")
    if not inflater.eof:
        raise BadGitObject("It is cut off.")
    return digest.hexdigest(), size
