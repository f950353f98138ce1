"""Retention of the journal: prune entries by age and size; forget a path with all traces of its content."""

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.core.files import Store
from handtools.runtime.journal.backup_refs import BackupRefs
from handtools.runtime.journal.blobs import Blobs, decompress_blob
from handtools.runtime.journal.database import Database, path_from_column
from handtools.text.encoding import decode, is_binary

MIN_TRACE_LINE_CHARS = 8
"""Shortest line in characters that is searched as a trace; shorter ones occur in any file."""
MIN_TRACE_WORD_CHARS = 16
"""Shortest word in characters that is searched by itself, such as a key printed without its name."""
MAX_TRACE_PIECES = 500
"""Most lines and words searched as traces; longer files are sampled."""
TRACE_SEARCH_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileTraces:
    """Lines and words of a file to search for in recorded calls and outputs, also in JSON escaping."""

    texts: tuple[bytes, ...]
    quoted: tuple[bytes, ...]
    sampled: bool
    """Whether the file had more lines and words than are searched."""

    @classmethod
    def of(cls, versions: Iterable[bytes]) -> "FileTraces":
        """Collect the lines and long words of all versions of a file; binary versions give none."""
        pieces = dict.fromkeys(
            piece for data in versions if not is_binary(data) for piece in _pieces(decode(data).body)
        )
        every = sorted(pieces, key=len, reverse=True)
        step = -(-len(every) // MAX_TRACE_PIECES) or 1
        chosen = every[::step]
        quoted = (form for piece in chosen for form in _as_json(piece))
        texts = tuple(piece.encode("utf-8", "surrogateescape") for piece in chosen)
        return cls(texts, tuple(dict.fromkeys(quoted)), sampled=step > 1)

    def in_json(self, data: bytes) -> bool:
        """Whether JSON bytes contain one of the lines or words."""
        return any(piece in data for piece in self.quoted)

    def in_output(self, outputs: Store, name: str) -> bool:
        """Whether a stored output contains one of the lines or words."""
        longest = max(map(len, self.texts), default=0)
        before = b""
        for start in range(0, outputs.size(name), TRACE_SEARCH_CHUNK_BYTES):
            chunk = before + outputs.part(name, start, TRACE_SEARCH_CHUNK_BYTES)
            if any(piece in chunk for piece in self.texts):
                return True
            before = chunk[-longest:] if longest else b""
        return False


def _pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(line.strip()) >= MIN_TRACE_LINE_CHARS:
            yield line.strip()
        for word in line.replace("=", " ").replace(":", " ").split():
            bare = word.strip("\"',;()")
            if len(bare) >= MIN_TRACE_WORD_CHARS:
                yield bare


def _as_json(piece: str) -> Iterator[bytes]:
    yield json.dumps(piece)[1:-1].encode()
    yield json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


PRUNE_BATCH_ENTRIES = 500


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Limits of the journal: age and total bytes."""

    max_bytes: int = 2 << 30
    max_age: float = 90 * 86400.0


class Retention:
    """Prunes and forgets what the journal keeps; pruned changes can't be undone, but stay in the log."""

    def __init__(self, database: Database, blobs: Blobs, refs: BackupRefs) -> None:
        self._database = database
        self._blobs = blobs
        self._refs = refs

    def kept_bytes(self) -> int:
        """Return the bytes stored for undo, compressed blobs and backups together."""
        sums = (
            "SELECT coalesce(sum(kept), 0) + "
            "(SELECT coalesce(sum(bytes), 0) FROM refs WHERE present) FROM blobs"
        )
        with self._database.reading() as connection:
            return int(connection.execute(sums).fetchone()[0])

    def prunable(self, limits: RetentionLimits) -> "PrunableRecords":
        """Count what `prune` would delete by age, and how far the limit of bytes is exceeded."""
        horizon = time.time() - limits.max_age
        old = "SELECT id FROM entries WHERE state != 'intent' AND at < ?1"
        digests = " UNION ".join(
            f"SELECT {side}_digest FROM touches WHERE entry IN ({old})" for side in ("before", "after")
        )
        with self._database.reading() as connection:
            entries, calls, kept = connection.execute(
                f"SELECT (SELECT count(*) FROM ({old})), (SELECT count(*) FROM calls WHERE ended < ?1), "
                f"(SELECT coalesce(sum(kept), 0) FROM blobs WHERE digest IN ({digests}))",
                (horizon,),
            ).fetchone()
        return PrunableRecords(entries, calls, kept, max(0, self.kept_bytes() - limits.max_bytes))

    def prune(self, limits: RetentionLimits) -> int:
        """Delete the oldest change entries until both limits hold; return the bytes freed."""
        horizon = time.time() - limits.max_age
        excess = self.kept_bytes() - limits.max_bytes
        freed, more = 0, True
        while more:
            with self._database.writing() as connection:
                rows = connection.execute(
                    f"SELECT id, at FROM entries WHERE state != 'intent' ORDER BY id LIMIT {PRUNE_BATCH_ENTRIES}"
                ).fetchall()
                old = [entry for entry, at in rows if at < horizon]
                for entry in old if freed >= excess else (row[0] for row in rows):
                    freed += self._drop(connection, entry)
                    if freed >= excess and entry not in old:
                        break
                more = bool(rows) and (len(old) == PRUNE_BATCH_ENTRIES or freed < excess)
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

    def forget(self, path: str, *, now: bytes = b"", outputs: Store | None = None) -> "ForgottenPath":
        """Delete all versions of a path and the content of calls that named or printed it, overwriting the disk.

        `now` is the file's current content, which may not be recorded; its traces are searched too.
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
        return ForgottenPath(len(digests), calls, copies, sampled=traces.sampled)

    def _forget_calls(
        self, connection: sqlite3.Connection, path: str, traces: FileTraces, outputs: Store | None
    ) -> tuple[str, ...]:
        """Clear arguments and results of the calls concerned, their approval requests and stored outputs."""
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
class PrunableRecords:
    """What is older than the journal's limit of age, and how far its limit of bytes is exceeded."""

    entries: int
    calls: int
    bytes: int
    """Bytes that the old entries have; some may be shared with younger ones."""
    excess_bytes: int


@dataclass(frozen=True, slots=True)
class ForgottenPath:
    """Result of forgetting a path: what was deleted, and what remains."""

    versions: int
    calls: tuple[str, ...]
    """Ids of the calls that named, changed or printed the file."""
    copies: tuple[str, ...]
    """Other paths with a stored version of the same bytes."""
    sampled: bool
    """Whether only a sample of the file's lines was searched in outputs."""


def _parts_of_call(args: str, result: bytes, *others: str | None) -> Iterator[bytes]:
    yield args.encode()
    if result:
        yield decompress_blob(result[4:], int.from_bytes(result[:4]))
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
    """Return the blob digests of the selected touches, without those only in the backup store."""
    rows = connection.execute(f"SELECT before_digest, after_digest FROM touches WHERE {where}", values)
    return [digest for row in rows.fetchall() for digest in row]


def _refs(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    rows = connection.execute(f"SELECT before_ref, after_ref FROM touches WHERE {where}", values)
    return [ref and path_from_column(ref) for row in rows.fetchall() for ref in row]


def _refs_to(connection: sqlite3.Connection, path: str) -> list[str]:
    """Return the backup references of a path, by itself or inside a folder moved as one."""
    found = [ref for ref in _refs(connection, "path = ?", path) if ref]
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above, below = "/".join(parts[:depth]), "/".join(parts[depth:])
        found += [f"{ref}/{below}" for ref in _refs(connection, "path = ?", above) if ref]
    return found
