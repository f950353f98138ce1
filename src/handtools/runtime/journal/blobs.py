"""Blobs in the journal: bytes by digest, compressed or as a delta to another blob, or in files if large."""

import sqlite3
import struct
import threading
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from handtools.core.backups_locks_and_store import Store
from handtools.core.changes import Change, Node
from handtools.core.errors import HostError
from handtools.text.diffs.alignment import common_ends

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

_DELTA_MARK = b"d"
_DELTA_HEADER = struct.Struct(">c32sQQ")
DELTA_HEADER_BYTES = _DELTA_HEADER.size
"""Size of a delta's header in bytes; the compressed middle follows it."""


class BlobDelta(NamedTuple):
    """Delta of a blob to a base blob: how many bytes the two share at the start and at the end."""

    base: str
    """Digest of the base blob, which is itself not a delta."""
    head: int
    tail: int

    @classmethod
    def read(cls, packed: bytes) -> "BlobDelta | None":
        """Parse a delta header; None if the blob is not a delta."""
        if packed[:1] != _DELTA_MARK:
            return None
        _, base, head, tail = _DELTA_HEADER.unpack_from(packed)
        return cls(base.hex(), head, tail)

    @property
    def header(self) -> bytes:
        """The encoded delta header."""
        return _DELTA_HEADER.pack(_DELTA_MARK, bytes.fromhex(self.base), self.head, self.tail)

    def middle(self, data: bytes) -> bytes:
        """Return the bytes between the shared head and tail."""
        return data[self.head : len(data) - self.tail]

    def rebuild_blob(self, middle: bytes, base: bytes) -> bytes:
        """Rebuild the full bytes from the middle and the base blob."""
        return b"".join((base[: self.head], middle, base[len(base) - self.tail :]))


INLINE_BLOB_BYTES = 1 << 20
MIN_COMPRESSED_BLOB_BYTES = 256
BLOB_COMPRESSION_LEVEL = 1
_HEADER_COLUMN = f"substr(data, 1, {DELTA_HEADER_BYTES})"


class Blobs:
    """Content-addressed blob table with use counts: equal bytes are stored once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(
        self, connection: sqlite3.Connection, node: Node | None, *, near_node: Node | None = None
    ) -> None:
        """Store a node's bytes, or count one more use if they are stored already.

        Bytes similar to those of `near_node`, which must be stored already, are stored as a delta.
        """
        if node is not None and is_stored_in_journal(node) and not _count_use(connection, node.digest):
            packed = self._encode_as_delta(connection, node.data, near_node) or compress_blob(node.data)
            self._insert(connection, node, packed)

    def put_change(self, connection: sqlite3.Connection, change: Change) -> None:
        """Store the bytes before and after a change."""
        self.put(connection, change.before)
        self.put(connection, change.after, near_node=change.before)

    def get(self, connection: sqlite3.Connection, digest: str) -> bytes | None:
        """Return the bytes with this digest; None if they were deleted."""
        row = connection.execute("SELECT data FROM blobs WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        [packed] = row
        if packed is None:
            try:
                packed = self._store.get(digest)
            except KeyError:
                return None
        splice = BlobDelta.read(packed)
        if splice is None:
            return decompress_blob(packed)
        base = self.get(connection, splice.base)
        middle = decompress_blob(packed[DELTA_HEADER_BYTES:])
        return None if base is None else splice.rebuild_blob(middle, base)

    def release(self, connection: sqlite3.Connection, digests: Iterable[str | None]) -> int:
        """Subtract one use from each digest, delete unused blobs, and return the bytes freed."""
        freed = 0
        waiting = list(digests)
        while waiting:
            digest = waiting.pop()
            row = connection.execute(
                "UPDATE blobs SET uses = uses - 1 WHERE digest = ? "
                f"RETURNING uses, kept, data IS NULL, {_HEADER_COLUMN}",
                (digest,),
            ).fetchone()
            if row is None or row[0] > 0:
                continue
            _, kept, is_in_store, header = row
            connection.execute("DELETE FROM blobs WHERE digest = ?", (digest,))
            freed += kept
            if is_in_store:
                self._store.drop(str(digest))
            elif splice := BlobDelta.read(header):
                waiting.append(splice.base)
        return freed

    def make_whole(self, connection: sqlite3.Connection, bases: Collection[str | None]) -> None:
        """Rewrite blobs stored as deltas to the given bases in full, so that the bases can be deleted."""
        rows = connection.execute(
            f"SELECT digest, {_HEADER_COLUMN} FROM blobs WHERE data >= x'64' AND data < x'65'"
        )
        for digest, header in rows.fetchall():
            splice = BlobDelta.read(header)
            if splice is None or splice.base not in bases:
                continue
            data = self.get(connection, digest)
            if data is not None:
                packed = compress_blob(data)
                row = (len(packed), packed, digest)
                connection.execute("UPDATE blobs SET kept = ?, data = ? WHERE digest = ?", row)
                self.release(connection, [splice.base])

    def _encode_as_delta(
        self, connection: sqlite3.Connection, data: bytes, near_node: Node | None
    ) -> bytes | None:
        """Encode bytes as a delta to a similar blob; None if that saves less than three quarters."""
        if (
            near_node is None
            or near_node.held
            or near_node.kind != "file"
            or len(data) < MIN_COMPRESSED_BLOB_BYTES
        ):
            return None
        base, (head, tail) = near_node.digest, common_ends(near_node.data, data)
        [header] = connection.execute(
            f"SELECT {_HEADER_COLUMN} FROM blobs WHERE digest = ?", (base,)
        ).fetchone()
        if header is None:
            return None  # the base is in the file store
        if inner := BlobDelta.read(header):
            base, head, tail = inner.base, min(head, inner.head), min(tail, inner.tail)
        delta = BlobDelta(base, head, tail)
        middle = delta.middle(data)
        if len(middle) * 4 > len(data) or not _count_use(connection, base):
            return None
        return delta.header + compress_blob(middle)

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


def is_stored_in_journal(node: Node) -> bool:
    """Whether a node's bytes are stored as a blob in the journal, not only in the backup store."""
    if node.held is None:
        return node.kind != "folder"
    return node.known and not node.held.mark.startswith("stat:")


_local = threading.local()


def _compressor() -> "ZstdCompressor":
    """Return this thread's zstd compressor, made on first use."""
    from zstandard import ZstdCompressor

    if not hasattr(_local, "compressor"):
        _local.compressor = ZstdCompressor(level=BLOB_COMPRESSION_LEVEL)
    compressor: ZstdCompressor = _local.compressor
    return compressor


def compress_blob(data: bytes) -> bytes:
    """Compress bytes if that makes them smaller; the first byte says whether they are compressed."""
    if len(data) >= MIN_COMPRESSED_BLOB_BYTES:
        packed = _compressor().compress(data)
        if len(packed) < len(data):
            return b"z" + packed
    return b"=" + data


def decompress_blob(packed: bytes) -> bytes:
    """Decompress bytes made by `compress_blob`; raises `HostError` if they are damaged."""
    if packed[:1] == b"=":
        return packed[1:]
    from zstandard import ZstdDecompressor, ZstdError

    try:
        return ZstdDecompressor().decompress(packed[1:])
    except ZstdError as damage:
        raise HostError(f"Stored content is damaged and can't be restored: {damage}.") from damage
