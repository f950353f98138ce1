"""Use counts of the backups that the journal refers to, and digests of large files, computed in the background."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from handtools.core.backups_locks_and_store import Backups
from handtools.core.changes import BackupRef, sha256_hex
from handtools.core.errors import HostError
from handtools.core.files import PlannedWrite
from handtools.runtime.journal.blobs import is_stored_in_journal
from handtools.runtime.journal.database import Database, path_from_column, path_to_column


class BackupRefs:
    """Journal table of backed-up files and folders, with how many recorded touches use each."""

    def __init__(self, database: Database, backups: Backups | None) -> None:
        self._database = database
        self._backups = backups

    def put(self, connection: sqlite3.Connection, backups: Iterable[BackupRef]) -> None:
        """Add one use to each backup reference."""
        connection.executemany(
            "INSERT INTO backups (ref, uses, bytes, present) VALUES (?, 1, ?, 0) "
            "ON CONFLICT (ref) DO UPDATE SET uses = uses + 1",
            [(path_to_column(held.ref), held.bytes) for held in backups],
        )

    def landed(self, connection: sqlite3.Connection, entry: int) -> None:
        """Update which backups are in the backup store, after an entry's changes were applied."""
        for column, present in (("after_ref", 0), ("before_ref", 1)):
            connection.execute(
                f"UPDATE backups SET present = {present} WHERE ref IN "
                f"(SELECT {column} FROM touches WHERE entry = ? AND {column} IS NOT NULL)",
                (entry,),
            )

    def release(self, connection: sqlite3.Connection, refs: Iterable[str | None]) -> int:
        """Subtract one use from each reference, delete unused backups, and return the bytes freed."""
        freed = 0
        for ref in (path_to_column(ref) for ref in refs if ref):
            connection.execute("UPDATE backups SET uses = uses - 1 WHERE ref = ?", (ref,))
            row = connection.execute(
                "DELETE FROM backups WHERE ref = ?1 AND uses <= 0 AND NOT EXISTS "
                "(SELECT 1 FROM backups AS inner WHERE inner.ref > ?1 || '/' AND inner.ref < ?1 || '0') "
                "RETURNING bytes * present",
                (ref,),
            ).fetchone()
            if row:
                freed += row[0]
                self.drop(path_from_column(ref))
        return freed

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Delete a backup regardless of its uses."""
        if self._backups is not None:
            self._backups.drop(ref, erase=erase)

    def clear(self, items: Iterable[str]) -> None:
        """Delete what remains of backup items whose changes will not be applied."""
        for item in items:
            if self._backups is not None:
                self._backups.delete_item_leftovers(item)

    def items(self) -> set[str]:
        """Return the names of backup items that are still referenced."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT before_ref, after_ref FROM touches WHERE coalesce(before_ref, after_ref) IS NOT NULL"
            )
            return {path_from_column(ref).partition("/")[0] for row in rows for ref in row if ref}


HASHING_DELAY_SECONDS = 0.2
"""Seconds to wait before hashing; a crash in that time loses only the digest."""
MAX_UNDIGESTED_BYTES = 64 << 20
"""Most bytes waiting to be hashed; above this limit hashing starts at once."""


@dataclass(slots=True)
class _UndigestedBytes:
    """Bytes waiting to be hashed, and the thread that hashes them."""

    data: Mapping[str, bytes]
    wanted: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def done(self) -> None:
        """Start hashing now and wait until it is finished."""
        self.wanted.set()
        if self.thread is not None:
            self.thread.join()


class DeferredDigests:
    """SHA-256 digests of backed-up files, computed later in a thread and recorded by backup reference."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, _UndigestedBytes] = {}
        self._lock = threading.Lock()

    def queue_digests(self, writes: Iterable[PlannedWrite]) -> None:
        """Queue backed-up files of planned writes for hashing if their bytes are in memory and not in a blob."""
        nodes = [node for step in writes for node in (step.change.before, step.change.after)]
        data = {
            node.held.ref: node.data
            for node in nodes
            if node and node.held and node.kind == "file" and node.data and not is_stored_in_journal(node)
        }
        with self._lock:
            undigested = _UndigestedBytes(
                {ref: each for ref, each in data.items() if ref not in self._waiting}
            )
            if not undigested.data:
                return
            self._waiting |= dict.fromkeys(undigested.data, undigested)
            if sum(len(each.data[ref]) for ref, each in self._waiting.items()) > MAX_UNDIGESTED_BYTES:
                undigested.wanted.set()
            undigested.thread = threading.Thread(
                target=self._record_digests, args=(undigested,), name="handtools-contents"
            )
            undigested.thread.start()

    def of(self, ref: str) -> str:
        """Return the digest of a backup, waiting if it is queued; empty if unknown.

        Must not be called within a transaction, which the hashing thread would wait for.
        """
        with self._lock:
            waiting = self._waiting.get(ref)
        if waiting is not None:
            waiting.done()
        return self._recorded_digest(ref)

    def settle(self) -> None:
        """Wait until all queued digests are recorded."""
        with self._lock:
            every = list(self._waiting.values())
        for waiting in every:
            waiting.done()

    def _recorded_digest(self, ref: str) -> str:
        row = self._database.peek("SELECT content FROM backups WHERE ref = ?", (path_to_column(ref),))
        return "" if row is None else str(row[0])

    def _record_digests(self, undigested: _UndigestedBytes) -> None:
        undigested.wanted.wait(HASHING_DELAY_SECONDS)
        # Without its digest, a file saved again with the same content counts as changed, which does no harm.
        with suppress(HostError):
            unknown = {ref: data for ref, data in undigested.data.items() if not self._recorded_digest(ref)}
            rows = [(sha256_hex(data), path_to_column(ref)) for ref, data in unknown.items()]
            with self._database.writing() as connection:
                connection.executemany("UPDATE backups SET content = ? WHERE ref = ?", rows)
        with self._lock:
            for ref in undigested.data:
                del self._waiting[ref]
