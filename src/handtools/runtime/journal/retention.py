"""Retention: entries pruned by age and size; a path forgotten, with its traces elsewhere in the journal."""

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.core.files import Store
from handtools.runtime.journal.backup_refs import BackupRefs
from handtools.runtime.journal.blobs import Blobs, decompressed
from handtools.runtime.journal.database import Database, path_from_column
from handtools.text.encoding import decode, is_binary

MIN_LINE_CHARS = 8
"""Shorter lines stand in every other file."""
MIN_WORD_CHARS = 16
"""A word of this length is looked for by itself: a key that was printed without its name."""
MAX_PIECES = 500
"""Lines and words that are looked for; of a file with more, some of every part."""
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileTraces:
    """Pieces of a file, as texts and as they stand in JSON."""

    texts: tuple[bytes, ...]
    quoted: tuple[bytes, ...]
    sampled: bool
    """Whether there were more than are looked for."""

    @classmethod
    def of(cls, versions: Iterable[bytes]) -> "FileTraces":
        """The lines and long words of all versions of a file; bytes that are no text leave none."""
        pieces = dict.fromkeys(
            piece for data in versions if not is_binary(data) for piece in _pieces(decode(data).body)
        )
        every = sorted(pieces, key=len, reverse=True)
        step = -(-len(every) // MAX_PIECES) or 1
        chosen = every[::step]
        quoted = (form for piece in chosen for form in _as_json(piece))
        texts = tuple(piece.encode("utf-8", "surrogateescape") for piece in chosen)
        return cls(texts, tuple(dict.fromkeys(quoted)), sampled=step > 1)

    def in_json(self, data: bytes) -> bool:
        """Whether JSON holds one of them."""
        return any(piece in data for piece in self.quoted)

    def in_output(self, outputs: Store, name: str) -> bool:
        """Whether a kept output holds one of them."""
        longest = max(map(len, self.texts), default=0)
        before = b""
        for start in range(0, outputs.size(name), CHUNK_BYTES):
            chunk = before + outputs.part(name, start, CHUNK_BYTES)
            if any(piece in chunk for piece in self.texts):
                return True
            before = chunk[-longest:] if longest else b""
        return False


def _pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(line.strip()) >= MIN_LINE_CHARS:
            yield line.strip()
        for word in line.replace("=", " ").replace(":", " ").split():
            bare = word.strip("\"',;()")
            if len(bare) >= MIN_WORD_CHARS:
                yield bare


def _as_json(piece: str) -> Iterator[bytes]:
    yield json.dumps(piece)[1:-1].encode()
    yield json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


PRUNE_BATCH = 500


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """How much is kept."""

    max_bytes: int = 2 << 30
    max_age: float = 90 * 86400.0


class Retention:
    """What is let go is gone for undo; the log says what happened all the same."""

    def __init__(self, database: Database, blobs: Blobs, refs: BackupRefs) -> None:
        self._database = database
        self._blobs = blobs
        self._refs = refs

    def kept_bytes(self) -> int:
        """Bytes kept for undo, after compression, with those in the vault."""
        sums = (
            "SELECT coalesce(sum(kept), 0) + "
            "(SELECT coalesce(sum(bytes), 0) FROM refs WHERE present) FROM blobs"
        )
        with self._database.reading() as connection:
            return int(connection.execute(sums).fetchone()[0])

    def prune(self, limits: RetentionLimits) -> int:
        """Drop the oldest entries until both limits hold; gives back the bytes that were freed."""
        horizon = time.time() - limits.max_age
        excess = self.kept_bytes() - limits.max_bytes
        freed, more = 0, True
        while more:
            with self._database.writing() as connection:
                rows = connection.execute(
                    f"SELECT id, at FROM entries WHERE state != 'intent' ORDER BY id LIMIT {PRUNE_BATCH}"
                ).fetchall()
                old = [entry for entry, at in rows if at < horizon]
                for entry in old if freed >= excess else (row[0] for row in rows):
                    freed += self._drop(connection, entry)
                    if freed >= excess and entry not in old:
                        break
                more = bool(rows) and (len(old) == PRUNE_BATCH or freed < excess)
        with self._database.writing() as connection:
            connection.execute("DELETE FROM calls WHERE ended < ?", (horizon,))
            connection.execute("DELETE FROM once WHERE at < ?", (horizon,))
            seen = connection.execute(
                "DELETE FROM seen WHERE at < ? RETURNING digest", (horizon,)
            ).fetchall()
            freed += self._blobs.release(connection, [row[0] for row in seen])
        return freed

    def _drop(self, connection: sqlite3.Connection, entry: int) -> int:
        freed = self._blobs.release(connection, _digests(connection, "entry = ?", entry))
        freed += self._refs.release(connection, _refs(connection, "entry = ?", entry))
        connection.execute("DELETE FROM touches WHERE entry = ?", (entry,))
        connection.execute("DELETE FROM reversals WHERE entry = ?", (entry,))
        connection.execute("DELETE FROM entries WHERE id = ?", (entry,))
        return freed

    def forget(self, path: str, *, now: bytes = b"", outputs: Store | None = None) -> "Forgotten":
        """Let go of every kept version of a path, and of the calls that named or printed it.

        `now` is what the file holds, which nobody may have recorded. What the database had is overwritten on disk.
        """
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            digests = _digests(connection, "path = ?", path)
            digests += [r[0] for r in connection.execute("SELECT digest FROM seen WHERE path = ?", (path,))]
            kept = {digest for digest in digests if digest}
            versions = [self._blobs.get(connection, digest) or b"" for digest in kept]
            traces = FileTraces.of([*versions, now])
            calls = self._forget_calls(connection, path, traces, outputs)
            copies = _copies(connection, path, kept)
            self._blobs.release(connection, digests)
            for ref in _refs_to(connection, path):
                self._refs.drop(ref, erase=True)
            self._refs.release(connection, _refs(connection, "path = ?", path))
            connection.execute("DELETE FROM touches WHERE path = ?", (path,))
            connection.execute("DELETE FROM seen WHERE path = ?", (path,))
            self._blobs.make_whole(connection, set(digests))
        with self._database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA secure_delete = OFF")
        return Forgotten(len(digests), calls, copies, sampled=traces.sampled)

    def _forget_calls(
        self, connection: sqlite3.Connection, path: str, traces: FileTraces, outputs: Store | None
    ) -> tuple[str, ...]:
        """Empty what the calls said and were told, with their questions, and drop what they printed."""
        named = re.compile(rf"(?<![\w./-])(?:\./)?{re.escape(json.dumps(path)[1:-1])}(?![\w-]|\.\w)")
        rows = connection.execute(
            "SELECT c.id, c.args, c.result, a.approval, h.ran FROM calls c "
            "LEFT JOIN approvals a ON a.call_id = c.id LEFT JOIN holds h ON h.call_id = c.id"
        )
        found = {
            str(call_id)
            for call_id, args, result, approval, ran in rows
            if named.search(args)
            or any(traces.in_json(part) for part in _parts_of_call(args, result, approval, ran))
        }
        found |= {
            str(row[0])
            for row in connection.execute(
                "SELECT e.call_id FROM entries e JOIN touches t ON t.entry = e.id WHERE t.path = ?", (path,)
            )
        }
        for name in outputs.names() if outputs is not None else ():
            call_id = name.rpartition(".")[0]
            if outputs is not None and (call_id in found or traces.in_output(outputs, name)):
                outputs.drop(name)
                found.add(call_id)
        for call_id in found:
            connection.execute("UPDATE calls SET args = '{}', result = x'' WHERE id = ?", (call_id,))
            connection.execute("DELETE FROM approvals WHERE call_id = ?", (call_id,))
            held = connection.execute("DELETE FROM holds WHERE call_id = ? RETURNING items", (call_id,))
            for (items,) in held.fetchall():
                self._refs.clear(json.loads(items))
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was let go of a path, and what could not be."""

    versions: int
    calls: tuple[str, ...]
    """That had named it, changed it or printed lines of it."""
    copies: tuple[str, ...]
    """Other paths of which a version with the same bytes is kept."""
    sampled: bool
    """Whether only some of its lines were looked for in what calls printed."""


def _parts_of_call(args: str, result: bytes, *others: str | None) -> Iterator[bytes]:
    yield args.encode()
    if result:
        yield decompressed(result[4:], int.from_bytes(result[:4]))
    yield from (other.encode() for other in others if other)


def _copies(connection: sqlite3.Connection, path: str, digests: set[str]) -> tuple[str, ...]:
    marks = ", ".join("?" * len(digests))
    rows = connection.execute(
        f"SELECT DISTINCT path FROM touches WHERE path != ? AND (before_digest IN ({marks}) "
        f"OR after_digest IN ({marks})) ORDER BY path",
        (path, *digests, *digests),
    )
    return tuple(path_from_column(row[0]) for row in rows.fetchall())


def _digests(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    """The bytes that touches keep; what only the vault has is not among them."""
    rows = connection.execute(f"SELECT before_digest, after_digest FROM touches WHERE {where}", values)
    return [digest for row in rows.fetchall() for digest in row]


def _refs(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    rows = connection.execute(f"SELECT before_ref, after_ref FROM touches WHERE {where}", values)
    return [ref and path_from_column(ref) for row in rows.fetchall() for ref in row]


def _refs_to(connection: sqlite3.Connection, path: str) -> list[str]:
    """Where the vault has a path: by itself, or in a folder that was moved as one."""
    found = [ref for ref in _refs(connection, "path = ?", path) if ref]
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above, below = "/".join(parts[:depth]), "/".join(parts[depth:])
        found += [f"{ref}/{below}" for ref in _refs(connection, "path = ?", above) if ref]
    return found
