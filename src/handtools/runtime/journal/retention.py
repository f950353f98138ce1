"""Letting go: by age, by size, or because a path must not be remembered."""

import sqlite3
import time
from dataclasses import dataclass

from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.database import Database

BATCH = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept."""

    max_bytes: int = 2 << 30
    max_age: float = 90 * 86400.0


class Retention:
    """What is let go is gone for undo; the log says what happened all the same."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database = database
        self._blobs = blobs

    def kept_bytes(self) -> int:
        """Bytes kept for undo, after compression."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT coalesce(sum(kept), 0) FROM blobs").fetchone()[0])

    def prune(self, limits: Limits) -> int:
        """Drop the oldest entries until both limits hold; gives back the bytes that were freed."""
        freed, kept, horizon = 0, self.kept_bytes(), time.time() - limits.max_age
        while True:
            with self._database.writing() as connection:
                over = kept - freed > limits.max_bytes
                where = "state != 'intent'" if over else f"state != 'intent' AND at < {horizon!r}"
                rows = connection.execute(
                    f"SELECT id FROM entries WHERE {where} ORDER BY id LIMIT {BATCH if not over else 50}"
                ).fetchall()
                if not rows:
                    break
                marks = ", ".join(str(row[0]) for row in rows)
                freed += self._blobs.release(connection, _digests(connection, f"entry IN ({marks})"))
                connection.execute(f"DELETE FROM touches WHERE entry IN ({marks})")
                connection.execute(f"DELETE FROM entries WHERE id IN ({marks})")
        with self._database.writing() as connection:
            connection.execute("DELETE FROM calls WHERE ended < ?", (horizon,))
            old = connection.execute(
                "DELETE FROM seen WHERE at < ? RETURNING digest", (horizon,)
            ).fetchall()
            freed += self._blobs.release(connection, [row[0] for row in old])
        return freed

    def forget(self, path: str) -> int:
        """Let go of every kept version of a path, and overwrite its bytes on disk."""
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            digests = _digests(connection, "path = ?", path)
            digests += [r[0] for r in connection.execute("SELECT digest FROM seen WHERE path = ?", (path,))]
            self._blobs.release(connection, digests)
            connection.execute("DELETE FROM touches WHERE path = ?", (path,))
            connection.execute("DELETE FROM seen WHERE path = ?", (path,))
            connection.execute(
                "UPDATE calls SET args = '{}', result = x'' WHERE json_extract(args, '$.path') = ?", (path,)
            )
        with self._database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA secure_delete = OFF")
        return len(digests)


def _digests(connection: sqlite3.Connection, where: str, *values: str) -> list[str | None]:
    rows = connection.execute(f"SELECT before_digest, after_digest FROM touches WHERE {where}", values)
    return [digest for row in rows.fetchall() for digest in row]
