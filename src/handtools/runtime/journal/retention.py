"""Retention of the journal: delete records by age and size, and all traces of a path."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

from handtools.core.backups_locks_and_store import Store
from handtools.core.call import output_file_name
from handtools.runtime.journal.backup_refs import BackupRefs
from handtools.runtime.journal.blobs import Blobs, decompress_blob
from handtools.runtime.journal.change_entries import READ_FILE_CONDITION
from handtools.runtime.journal.database import Database, path_from_column
from handtools.runtime.journal.forgotten_paths import FileTraces, ForgottenPath

PRUNE_BATCH_ENTRIES = 500
_PRUNED_BY_AGE = ("answered_approvals", "callback_runs", "delegations", "shown_guidance", "accepted_hunks")
"""Tables whose old rows can simply be deleted, because no other table depends on them."""


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Limits of the journal: age of its records, and total bytes."""

    max_bytes: int = 2 << 30
    max_age: float = 90 * 86400.0


class Retention:
    """Deletes records from the journal; changes whose records were deleted can't be undone any more."""

    def __init__(self, database: Database, blobs: Blobs, refs: BackupRefs) -> None:
        self._database = database
        self._blobs = blobs
        self._refs = refs

    def kept_bytes(self) -> int:
        """Return how many bytes are stored for undo: compressed blobs plus backups."""
        sums = (
            "SELECT coalesce(sum(kept), 0) + "
            "(SELECT coalesce(sum(bytes), 0) FROM backups WHERE present) FROM blobs"
        )
        with self._database.reading() as connection:
            return int(connection.execute(sums).fetchone()[0])

    def prunable(self, limits: RetentionLimits) -> "PrunableRecords":
        """Count the records that `prune` would delete by age, and the bytes above the limit."""
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
        """Delete the oldest records until both limits are met; return the bytes freed.

        To meet the byte limit, content that agents only read is deleted before content that undo needs.
        """
        horizon = time.time() - limits.max_age
        excess = self.kept_bytes() - limits.max_bytes
        freed, more = self._drop_reads(excess), True
        while more:
            with self._database.writing() as connection:
                rows = connection.execute(
                    f"SELECT id, at FROM entries WHERE state != 'intent' ORDER BY id LIMIT {PRUNE_BATCH_ENTRIES}"
                ).fetchall()
                old = [entry for entry, at in rows if at < horizon]
                for entry in old if freed >= excess else (row[0] for row in rows):
                    freed += self._delete_entry(connection, entry)
                    if freed >= excess and entry not in old:
                        break
                more = bool(rows) and (len(old) == PRUNE_BATCH_ENTRIES or freed < excess)
        with self._database.writing() as connection:
            connection.execute("DELETE FROM calls WHERE ended < ?", (horizon,))
            for table in _PRUNED_BY_AGE:
                connection.execute(f"DELETE FROM {table} WHERE at < ?", (horizon,))
            reads = connection.execute(
                "DELETE FROM read_files WHERE at < ? RETURNING digest", (horizon,)
            ).fetchall()
            freed += self._blobs.release(connection, [row[0] for row in reads])
        return freed

    def _drop_reads(self, excess: int) -> int:
        """Delete the oldest content that agents only read, at least `excess` bytes; return the bytes freed."""
        changed = " UNION ".join(
            f"SELECT {side}_digest FROM touches WHERE {side}_digest IS NOT NULL"
            for side in ("before", "after")
        )
        freed = 0
        with self._database.writing() as connection:
            rows = connection.execute(
                "SELECT session, agent, path, digest FROM read_files "
                f"WHERE digest NOT IN ({changed}) ORDER BY at"
            )
            for *key, digest in rows.fetchall():
                if freed >= excess:
                    break
                connection.execute(f"DELETE FROM read_files WHERE {READ_FILE_CONDITION}", key)
                freed += self._blobs.release(connection, [digest])
        return freed

    def _delete_entry(self, connection: sqlite3.Connection, entry: int) -> int:
        freed = self._blobs.release(connection, _digests_of_touches(connection, "entry = ?", entry))
        freed += self._refs.release(connection, _refs_of_touches(connection, "entry = ?", entry))
        connection.execute("DELETE FROM touches WHERE entry = ?", (entry,))
        connection.execute("DELETE FROM reversals WHERE entry = ?", (entry,))
        connection.execute("DELETE FROM entries WHERE id = ?", (entry,))
        return freed

    def forget(self, path: str, *, now: bytes = b"", output_store: Store | None = None) -> "ForgottenPath":
        """Delete and overwrite all versions of a path, and the content of calls that named or printed it.

        `now` is the file's current content, which may not be recorded; calls are searched for it, too.
        """
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            digests = _digests_of_touches(connection, "path = ?", path)
            reads = connection.execute("SELECT digest FROM read_files WHERE path = ?", (path,))
            digests += [row[0] for row in reads]
            kept = {digest for digest in digests if digest}
            versions = [self._blobs.get(connection, digest) or b"" for digest in kept]
            traces = FileTraces.of([*versions, now])
            calls = self._forget_calls(connection, path, traces, output_store)
            copies = _paths_of_copies(connection, path, kept)
            self._blobs.release(connection, digests)
            for ref in _refs_to(connection, path):
                self._refs.drop(ref, erase=True)
            self._refs.release(connection, _refs_of_touches(connection, "path = ?", path))
            connection.execute("DELETE FROM touches WHERE path = ?", (path,))
            connection.execute("DELETE FROM read_files WHERE path = ?", (path,))
            self._blobs.make_whole(connection, set(digests))
        with self._database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return ForgottenPath(len(digests), calls, copies, sampled=traces.sampled)

    def _forget_calls(
        self, connection: sqlite3.Connection, path: str, traces: FileTraces, output_store: Store | None
    ) -> tuple[str, ...]:
        """Delete arguments, results, requests and outputs of calls with traces of a path; return their ids."""
        named = re.compile(rf"(?<![\w./-])(?:\./)?{re.escape(json.dumps(path)[1:-1])}(?![\w-]|\.\w)")
        rows = connection.execute(
            "SELECT c.id, c.args, c.result, c.meta, a.approval, p.ran FROM calls c "
            "LEFT JOIN pending_approvals a ON a.call_id = c.id "
            "LEFT JOIN pending_commands p ON p.call_id = c.id"
        )
        by_output, found = dict[str, str](), set[str]()
        for call_id, args, result, meta, approval, ran in rows:
            by_output[output_file_name(call_id, "")] = call_id
            parts = _parts_of_call(args, result, meta, approval, ran)
            if named.search(args) or any(traces.in_json(part) for part in parts):
                found.add(call_id)
        found |= {
            str(row[0])
            for row in connection.execute(
                "SELECT e.call_id FROM entries e JOIN touches t ON t.entry = e.id WHERE t.path = ?", (path,)
            )
        }
        for name in output_store.names() if output_store is not None else ():
            stem = name.rpartition(".")[0]
            call_id = by_output.get(stem, stem)
            if output_store is not None and (call_id in found or traces.in_output(output_store, name)):
                output_store.drop(name)
                found.add(call_id)
        # This is safe: the processes that run calls write their rows again within a second.
        connection.execute("DELETE FROM running_calls")
        for call_id in found:
            connection.execute(
                "UPDATE calls SET args = '{}', result = x'', meta = '{}' WHERE id = ?", (call_id,)
            )
            for table in ("pending_approvals", "answered_approvals"):
                connection.execute(f"DELETE FROM {table} WHERE call_id = ?", (call_id,))
            commands = connection.execute(
                "DELETE FROM pending_commands WHERE call_id = ? RETURNING items", (call_id,)
            )
            for (items,) in commands.fetchall():
                self._refs.clear(json.loads(items))
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class PrunableRecords:
    """Records older than the journal's age limit, and bytes above its size limit."""

    entries: int
    calls: int
    bytes: int
    """Bytes of the old entries; newer entries may share some of them."""
    excess_bytes: int


def _parts_of_call(args: str, result: bytes, *others: str | None) -> Iterator[bytes]:
    yield args.encode()
    if result:
        yield decompress_blob(result)
    yield from (other.encode() for other in others if other)


def _paths_of_copies(connection: sqlite3.Connection, path: str, digests: set[str]) -> tuple[str, ...]:
    marks = ", ".join("?" * len(digests))
    rows = connection.execute(
        f"SELECT DISTINCT path FROM touches WHERE path != ? AND (before_digest IN ({marks}) "
        f"OR after_digest IN ({marks})) ORDER BY path",
        (path, *digests, *digests),
    )
    return tuple(path_from_column(row[0]) for row in rows.fetchall())


def _digests_of_touches(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    """Return the digests of the selected touches, except those whose bytes are only in the backup store."""
    rows = connection.execute(f"SELECT before_digest, after_digest FROM touches WHERE {where}", values)
    return [digest for row in rows.fetchall() for digest in row]


def _refs_of_touches(connection: sqlite3.Connection, where: str, *values: str | int) -> list[str | None]:
    rows = connection.execute(f"SELECT before_ref, after_ref FROM touches WHERE {where}", values)
    return [ref and path_from_column(ref) for row in rows.fetchall() for ref in row]


def _refs_to(connection: sqlite3.Connection, path: str) -> list[str]:
    """Return the references of a path's backups, whether it was moved by itself or within a folder."""
    found = [ref for ref in _refs_of_touches(connection, "path = ?", path) if ref]
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above, below = "/".join(parts[:depth]), "/".join(parts[depth:])
        found += [f"{ref}/{below}" for ref in _refs_of_touches(connection, "path = ?", above) if ref]
    return found
