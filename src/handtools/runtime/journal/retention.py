"""Letting go: by age, by size, or because a path must not be remembered."""

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
                digests = connection.execute(
                    f"SELECT before_digest FROM touches WHERE entry IN ({marks}) "
                    f"UNION SELECT after_digest FROM touches WHERE entry IN ({marks})"
                ).fetchall()
                connection.execute(f"DELETE FROM touches WHERE entry IN ({marks})")
                connection.execute(f"DELETE FROM entries WHERE id IN ({marks})")
                freed += self._blobs.drop(connection, self._unused(connection, digests))
        with self._database.writing() as connection:
            connection.execute("DELETE FROM calls WHERE ended < ?", (horizon,))
            connection.execute("DELETE FROM seen WHERE at < ?", (horizon,))
        return freed

    def forget(self, path: str) -> int:
        """Let go of every kept version of a path, and overwrite its bytes on disk."""
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            digests = connection.execute(
                "SELECT before_digest FROM touches WHERE path = ?1 UNION SELECT after_digest FROM touches "
                "WHERE path = ?1 UNION SELECT digest FROM seen WHERE path = ?1",
                (path,),
            ).fetchall()
            connection.execute("DELETE FROM touches WHERE path = ?", (path,))
            connection.execute("DELETE FROM seen WHERE path = ?", (path,))
            connection.execute(
                "UPDATE calls SET args = '{}', result = zeroblob(0) WHERE args LIKE ?",
                (f"%{path}%",),
            )
            dropped = self._unused(connection, digests)
            self._blobs.drop(connection, dropped)
        with self._database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA secure_delete = OFF")
        return len(dropped)

    @staticmethod
    def _unused(connection: object, digests: list[tuple[str | None]]) -> list[str]:
        query = (
            "SELECT 1 FROM touches WHERE before_digest = ?1 OR after_digest = ?1 "
            "UNION ALL SELECT 1 FROM seen WHERE digest = ?1 LIMIT 1"
        )
        return [d for (d,) in digests if d and not connection.execute(query, (d,)).fetchone()]  # type: ignore[attr-defined]
