"""Bytes by their digest: small ones in the database, large ones in the store."""

import sqlite3
import threading
from collections.abc import Iterable

import zstandard

from handtools.core.changes import Node
from handtools.core.errors import HostError
from handtools.core.ports import Store

INLINE_BYTES = 1 << 20
COMPRESS_BYTES = 256
LEVEL = 1


class Blobs:
    """Content-addressed: the same bytes are kept once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, connection: sqlite3.Connection, nodes: Iterable[Node | None]) -> None:
        """Keep the bytes of every node; each keeping is one use."""
        for node in nodes:
            if node is None or not kept_in_record(node):
                continue
            used = connection.execute("UPDATE blobs SET uses = uses + 1 WHERE digest = ?", (node.digest,))
            if not used.rowcount:
                self._insert(connection, node.digest, node.data)

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
        return unpack(packed, size)

    def release(self, connection: sqlite3.Connection, digests: Iterable[str | None]) -> int:
        """Take back one use of each digest; bytes without a use are let go. Gives back how many were freed."""
        freed = 0
        for digest in digests:
            connection.execute("UPDATE blobs SET uses = uses - 1 WHERE digest = ?", (digest,))
            row = connection.execute(
                "DELETE FROM blobs WHERE digest = ? AND uses <= 0 RETURNING kept, data IS NULL", (digest,)
            ).fetchone()
            if row:
                freed += row[0]
                if row[1]:
                    self._store.drop(str(digest))
        return freed

    def _insert(self, connection: sqlite3.Connection, digest: str, data: bytes) -> None:
        packed = pack(data)
        inline: bytes | None = packed
        if len(packed) > INLINE_BYTES:
            self._store.put(packed, name=digest)
            inline = None
        row = (digest, 1, len(data), len(packed), inline)
        connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", row)


def kept_in_record(node: Node) -> bool:
    """Whether a node's bytes are the record's to keep, and not only the vault's; a plain folder has none."""
    if node.held is None:
        return node.kind != "folder"
    return node.known and not node.held.mark.startswith("stat:")


_local = threading.local()


def _compressor() -> zstandard.ZstdCompressor:
    """One per thread: making one costs more than using it, and they can't be shared."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    compressor: zstandard.ZstdCompressor = _local.compressor
    return compressor


def pack(data: bytes) -> bytes:
    """Compressed when that pays; a first byte says which."""
    if len(data) >= COMPRESS_BYTES:
        packed = _compressor().compress(data)
        if len(packed) < len(data):
            return b"z" + packed
    return b"=" + data


def unpack(packed: bytes, size: int) -> bytes:
    """The inverse of `pack`."""
    if packed[:1] == b"=":
        return packed[1:]
    try:
        return zstandard.ZstdDecompressor().decompress(packed[1:], max_output_size=max(size, 1))
    except zstandard.ZstdError as damage:
        raise HostError(f"Kept bytes can't be unpacked: {damage}. They can't be restored.") from damage
