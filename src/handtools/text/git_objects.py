"""Git's loose objects: inflated piece by piece up to a limit, to compare their content with their names."""

import hashlib
import zlib
from collections.abc import Iterable
from itertools import chain

_PART_BYTES = 1 << 20


class BadGitObject(ValueError):
    """Raised if a file is not a valid loose object, or its content is too large."""


def loose_object_digest(pieces: Iterable[bytes], *, algorithm: str, max_bytes: int) -> tuple[str, int]:
    """Return the hash of a loose object's content, which is its name in git, and the size of the content.

    `pieces` has the bytes of the file. Raises `BadGitObject`, including if the content is longer than
    `max_bytes`.
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
                raise BadGitObject(f"Its content is longer than {max_bytes:,} bytes.")
            digest.update(part)
            if not waiting and len(part) < _PART_BYTES:
                break
        else:
            if waiting or inflater.unused_data:
                raise BadGitObject("It has extra bytes after its end.")
    if not inflater.eof:
        raise BadGitObject("It is truncated.")
    return digest.hexdigest(), size
