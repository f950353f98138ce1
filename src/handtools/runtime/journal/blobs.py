"""Blobs: bytes by digest, compressed, or as a delta to another blob; large ones are in the store.

ADR 105.
"""

import sqlite3
import struct
import threading
from collections.abc import Collection, Iterable
from typing import NamedTuple

import zstandard

from handtools.core.changes import Change, Node
from handtools.core.errors import HostError
from handtools.core.files import Store
from handtools.text.diffs.alignment import common_ends

_DELTA_MARK = b"d"
_DELTA_HEADER = struct.Struct(">c32sQQ")
DELTA_HEADER_BYTES = _DELTA_HEADER.size
"""Of a header; the bytes in between follow it, packed."""


class BlobDelta(NamedTuple):
    """How much of other bytes stands at both ends."""

    base: str
    """The digest of those others, which are kept whole."""
    head: int
    tail: int

    @classmethod
    def read(cls, packed: bytes) -> "BlobDelta | None":
        """What a header says; None when the bytes are packed whole."""
        if packed[:1] != _DELTA_MARK:
            return None
        _, base, head, tail = _DELTA_HEADER.unpack_from(packed)
        return cls(base.hex(), head, tail)

    @property
    def header(self) -> bytes:
        """The inverse of `read`."""
        return _DELTA_HEADER.pack(_DELTA_MARK, bytes.fromhex(self.base), self.head, self.tail)

    def middle(self, data: bytes) -> bytes:
        """What is left of some bytes without both ends."""
        return data[self.head : len(data) - self.tail]

    def around(self, middle: bytes, base: bytes) -> bytes:
        """The inverse of `middle`."""
        return b"".join((base[: self.head], middle, base[len(base) - self.tail :]))


INLINE_BLOB_BYTES = 1 << 20
COMPRESS_BYTES = 256
COMPRESSION_LEVEL = 1
_HEADER_COLUMN = f"substr(data, 1, {DELTA_HEADER_BYTES})"


class Blobs:
    """Content-addressed: the same bytes are kept once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, connection: sqlite3.Connection, node: Node | None, *, near: Node | None = None) -> None:
        """Keep the bytes of a node, which are much like those `near` if given; each keeping is one use."""
        if node is not None and kept_in_record(node) and not _count_use(connection, node.digest):
            packed = self._spliced(connection, node.data, near) or compressed(node.data)
            self._insert(connection, node, packed)

    def put_change(self, connection: sqlite3.Connection, change: Change) -> None:
        """Keep the bytes before and after."""
        self.put(connection, change.before)
        self.put(connection, change.after, near=change.before)

    def get(self, connection: sqlite3.Connection, digest: str) -> bytes | None:
        """The bytes of a digest; None when they were let go."""
        row = connection.execute("SELECT bytes, data FROM blobs WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        size, packed = row
        if packed is None:
            try:
                packed = self._store.get(digest)
            except KeyError:
                return None
        splice = BlobDelta.read(packed)
        if splice is None:
            return decompressed(packed, size)
        base = self.get(connection, splice.base)
        middle = decompressed(packed[DELTA_HEADER_BYTES:], size - splice.head - splice.tail)
        return None if base is None else splice.around(middle, base)

    def release(self, connection: sqlite3.Connection, digests: Iterable[str | None]) -> int:
        """Take back one use of each digest; bytes without a use are let go. Gives back how many were freed."""
        freed = 0
        waiting = list(digests)
        while waiting:
            digest = waiting.pop()
            connection.execute("UPDATE blobs SET uses = uses - 1 WHERE digest = ?", (digest,))
            row = connection.execute(
                f"DELETE FROM blobs WHERE digest = ? AND uses <= 0 RETURNING kept, data IS NULL, {_HEADER_COLUMN}",
                (digest,),
            ).fetchone()
            if row:
                freed += row[0]
                if row[1]:
                    self._store.drop(str(digest))
                elif splice := BlobDelta.read(row[2]):
                    waiting.append(splice.base)
        return freed

    def make_whole(self, connection: sqlite3.Connection, bases: Collection[str | None]) -> None:
        """Keep whole what is a difference from one of these, so that they are needed by nobody for that."""
        rows = connection.execute(
            f"SELECT digest, {_HEADER_COLUMN} FROM blobs WHERE data >= x'64' AND data < x'65'"
        )
        for digest, header in rows.fetchall():
            splice = BlobDelta.read(header)
            if splice is None or splice.base not in bases:
                continue
            data = self.get(connection, digest)
            if data is not None:
                packed = compressed(data)
                row = (len(packed), packed, digest)
                connection.execute("UPDATE blobs SET kept = ?, data = ? WHERE digest = ?", row)
                self.release(connection, [splice.base])

    def _spliced(self, connection: sqlite3.Connection, data: bytes, near: Node | None) -> bytes | None:
        """The bytes as what they have between the ends of others; None where that is not much less."""
        if near is None or near.held or near.kind != "file" or len(data) < COMPRESS_BYTES:
            return None
        base, (head, tail) = near.digest, common_ends(near.data, data)
        row = connection.execute(
            f"SELECT bytes, {_HEADER_COLUMN} FROM blobs WHERE digest = ?", (base,)
        ).fetchone()
        if row is None or row[1] is None:
            return None
        size, inner = row[0], BlobDelta.read(row[1])
        if inner is not None:
            base, head, tail = inner.base, min(head, inner.head), min(tail, inner.tail)
            [size] = connection.execute("SELECT bytes FROM blobs WHERE digest = ?", (base,)).fetchone()
        splice = BlobDelta(base, head, min(tail, size - head, len(data) - head))
        middle = splice.middle(data)
        if len(middle) * 4 > len(data) or not _count_use(connection, base):
            return None
        return splice.header + compressed(middle)

    def _insert(self, connection: sqlite3.Connection, node: Node, packed: bytes) -> None:
        inline: bytes | None = packed
        if len(packed) > INLINE_BLOB_BYTES:
            self._store.put(packed, name=node.digest)
            inline = None
        row = (node.digest, 1, len(node.data), len(packed), inline)
        connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", row)


def _count_use(connection: sqlite3.Connection, digest: str) -> bool:
    used = connection.execute("UPDATE blobs SET uses = uses + 1 WHERE digest = ?", (digest,))
    return used.rowcount > 0


def kept_in_record(node: Node) -> bool:
    """Whether a node's bytes are the record's to keep, and not only the vault's; a plain folder has none."""
    if node.held is None:
        return node.kind != "folder"
    return node.known and not node.held.mark.startswith("stat:")


_local = threading.local()


def _compressor() -> zstandard.ZstdCompressor:
    """One per thread: making one costs more than using it, and they can't be shared."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
    compressor: zstandard.ZstdCompressor = _local.compressor
    return compressor


def compressed(data: bytes) -> bytes:
    """Compressed when that pays; a first byte says which."""
    if len(data) >= COMPRESS_BYTES:
        packed = _compressor().compress(data)
        if len(packed) < len(data):
            return b"z" + packed
    return b"=" + data


def decompressed(packed: bytes, size: int) -> bytes:
    """The inverse of `compressed`."""
    if packed[:1] == b"=":
        return packed[1:]
    try:
        return zstandard.ZstdDecompressor().decompress(packed[1:], max_output_size=max(size, 1))
    except zstandard.ZstdError as damage:
        raise HostError(f"Kept bytes can't be unpacked: {damage}. They can't be restored.") from damage
