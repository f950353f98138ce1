"""Letting go: by age, by size, or because a path must not be remembered."""

import sqlite3
import time
from dataclasses import dataclass

from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.database import Database, stored
from handtools.runtime.journal.refs import Refs

BATCH = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept."""

    max_bytes: int = 2 << 30
    max_age: float = 90 * 86400.0


class Retention:
    """What is let go is gone for undo; the log says what happened all the same."""

    def __init__(self, database: Database, blobs: Blobs, refs: Refs) -> None:
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

    def prune(self, limits: Limits) -> int:
        """Drop the oldest entries until both limits hold; gives back the bytes that were freed."""
        horizon = time.time() - limits.max_age
        excess = self.kept_bytes() - limits.max_bytes
        freed, more = 0, True
        while more:
            with self._database.writing() as connection:
                rows = connection.execute(
                    f"SELECT id, at FROM entries WHERE state != 'intent' ORDER BY id LIMIT {BATCH}"
                ).fetchall()
                old = [entry for entry, at in rows if at < horizon]
                for entry in old if freed >= excess else (row[0] for row in rows):
                    freed += self._drop(connection, entry)
                    if freed >= excess and entry not in old:
                        break
                more = bool(rows) and (len(old) == BATCH or freed < excess)
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

    def forget(self, path: str) -> int:
        """Let go of every kept version of a path, and overwrite its bytes on disk."""
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            digests = _digests(connection, "path = ?", path)
            digests += [r[0] for r in connection.execute("SELECT digest FROM seen WHERE path = ?", (path,))]
            self._blobs.release(connection, digests)
            for ref in _refs_to(connection, path):
                self._refs.drop(ref, erase=True)
            self._refs.release(connection, _refs(connection, "path = ?", path))
            connection.execute("DELETE FROM touches WHERE path = ?", (path,))
            connection.execute("DELETE FROM seen WHERE path = ?", (path,))
            self._blobs.make_whole(connection, set(digests))
            connection.execute(
                "UPDATE calls SET args = '{}', result = x'' WHERE json_extract(args, '$.path') = ?", (path,)
            )
        with self._database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA secure_delete = OFF")
        return len(digests)


def _digests(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    """The bytes that touches keep; what only the vault has is not among them."""
    rows = connection.execute(f"SELECT before_digest, after_digest FROM touches WHERE {where}", values)
    return [digest for row in rows.fetchall() for digest in row]


def _refs(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    rows = connection.execute(f"SELECT before_ref, after_ref FROM touches WHERE {where}", values)
    return [ref and stored(ref) for row in rows.fetchall() for ref in row]


def _refs_to(connection: sqlite3.Connection, path: str) -> list[str]:
    """Where the vault has a path: by itself, or in a folder that was moved as one."""
    found = [ref for ref in _refs(connection, "path = ?", path) if ref]
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above, below = "/".join(parts[:depth]), "/".join(parts[depth:])
        found += [f"{ref}/{below}" for ref in _refs(connection, "path = ?", above) if ref]
    return found
