"""Bytes by their digest: small ones in the database, large ones in the store.

What a change leaves is mostly what it found: then only the difference is kept, from bytes that are kept whole.
No difference is from another difference: two looks give the bytes back, however often a file changed.
"""

import sqlite3
import threading
from collections.abc import Collection, Iterable

import zstandard

from handtools.core.changes import Change, Node
from handtools.core.errors import HostError
from handtools.core.ports import Store
from handtools.runtime.journal.splices import SPLICE_BYTES, Splice
from handtools.text.comparing import common_ends

INLINE_BYTES = 1 << 20
COMPRESS_BYTES = 256
LEVEL = 1
_HEADER = f"substr(data, 1, {SPLICE_BYTES})"


class Blobs:
    """Content-addressed: the same bytes are kept once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, connection: sqlite3.Connection, node: Node | None, *, near: Node | None = None) -> None:
        """Keep the bytes of a node, which are much like those `near` if given; each keeping is one use."""
        if node is not None and kept_in_record(node) and not _use(connection, node.digest):
            packed = self._spliced(connection, node.data, near) or pack(node.data)
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
        splice = Splice.read(packed)
        if splice is None:
            return unpack(packed, size)
        base = self.get(connection, splice.base)
        middle = unpack(packed[SPLICE_BYTES:], size - splice.head - splice.tail)
        return None if base is None else splice.around(middle, base)

    def release(self, connection: sqlite3.Connection, digests: Iterable[str | None]) -> int:
        """Take back one use of each digest; bytes without a use are let go. Gives back how many were freed."""
        freed = 0
        waiting = list(digests)
        while waiting:
            digest = waiting.pop()
            connection.execute("UPDATE blobs SET uses = uses - 1 WHERE digest = ?", (digest,))
            row = connection.execute(
                f"DELETE FROM blobs WHERE digest = ? AND uses <= 0 RETURNING kept, data IS NULL, {_HEADER}",
                (digest,),
            ).fetchone()
            if row:
                freed += row[0]
                if row[1]:
                    self._store.drop(str(digest))
                elif splice := Splice.read(row[2]):
                    waiting.append(splice.base)
        return freed

    def make_whole(self, connection: sqlite3.Connection, bases: Collection[str | None]) -> None:
        """Keep whole what is a difference from one of these, so that they are needed by nobody for that."""
        rows = connection.execute(
            f"SELECT digest, {_HEADER} FROM blobs WHERE data >= x'64' AND data < x'65'"
        )
        for digest, header in rows.fetchall():
            splice = Splice.read(header)
            if splice is None or splice.base not in bases:
                continue
            data = self.get(connection, digest)
            if data is not None:
                packed = pack(data)
                row = (len(packed), packed, digest)
                connection.execute("UPDATE blobs SET kept = ?, data = ? WHERE digest = ?", row)
                self.release(connection, [splice.base])

    def _spliced(self, connection: sqlite3.Connection, data: bytes, near: Node | None) -> bytes | None:
        """The bytes as what they have between the ends of others; None where that is not much less."""
        if near is None or near.held or near.kind != "file" or len(data) < COMPRESS_BYTES:
            return None
        base, (head, tail) = near.digest, common_ends(near.data, data)
        row = connection.execute(f"SELECT bytes, {_HEADER} FROM blobs WHERE digest = ?", (base,)).fetchone()
        if row is None or row[1] is None:
            return None
        size, inner = row[0], Splice.read(row[1])
        if inner is not None:
            base, head, tail = inner.base, min(head, inner.head), min(tail, inner.tail)
            [size] = connection.execute("SELECT bytes FROM blobs WHERE digest = ?", (base,)).fetchone()
        splice = Splice(base, head, min(tail, size - head, len(data) - head))
        middle = splice.middle(data)
        if len(middle) * 4 > len(data) or not _use(connection, base):
            return None
        return splice.header + pack(middle)

    def _insert(self, connection: sqlite3.Connection, node: Node, packed: bytes) -> None:
        inline: bytes | None = packed
        if len(packed) > INLINE_BYTES:
            self._store.put(packed, name=node.digest)
            inline = None
        row = (node.digest, 1, len(node.data), len(packed), inline)
        connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", row)


def _use(connection: sqlite3.Connection, digest: str) -> bool:
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
