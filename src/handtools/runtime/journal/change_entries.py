"""Change entries of the journal: which paths each call changed, their content before and after, and undos."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from handtools.core.call import Call
from handtools.core.changes import (
    BackupRef,
    Change,
    ChangeCoverage,
    ChangeSet,
    Node,
    NodeKind,
    TouchedPath,
)
from handtools.core.effects import effect_fingerprint
from handtools.core.errors import UsageError
from handtools.core.files import PlannedWrite
from handtools.core.undo import FileVersion, UndoScope
from handtools.runtime.journal.backup_refs import BackupRefs, DeferredDigests
from handtools.runtime.journal.blobs import Blobs, is_stored_in_journal
from handtools.runtime.journal.database import Database, path_from_column, path_to_column, rows_of_owner

ChangeEntryKind = Literal["change", "undo", "redo"]
TOUCH_COLUMNS = (
    "t.id, t.entry, t.path, t.temporary, "
    "t.before_kind, t.before_digest, t.before_mode, t.before_ref, t.before_bytes, "
    "t.after_kind, t.after_digest, t.after_mode, t.after_ref, t.after_bytes, t.reverted_by, e.kind"
)

_BACKUP_ONLY_MARK = "~"
"""Prefix of a digest whose bytes are only in the backup store, not in the blob table."""
MAX_SEEN_BYTES = 1 << 20
"""Largest file, in bytes, whose content is stored when an agent reads it, to merge edits of an old version."""
READ_FILE_CONDITION = "session = ? AND agent = ? AND path = ?"


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that are applied or undone together, with their origin."""

    changes: ChangeSet
    kind: ChangeEntryKind = "change"
    reverts: tuple[int, ...] = ()
    """Ids of the recorded touches that these changes revert."""
    coverage: ChangeCoverage = "declared"
    omitted: tuple[str, ...] = ()
    """Paths whose changes could not be recorded for undo."""
    happened: bool = False
    """Whether a command has already made the changes, so that they only need to be recorded."""
    exact: bool = False
    """Whether to skip formatters, for example because an earlier version is restored."""


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """Recorded state of a path: kind, mode and digest or backup reference."""

    kind: str
    digest: str
    mode: int | None
    ref: str | None = None
    """Backup reference, if the node was moved to the backups."""
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedTouch:
    """One path of a change entry: its recorded state before and after, and what reverted it."""

    id: int
    entry: int
    path: str
    temporary: str
    before: RecordedNode | None
    after: RecordedNode | None
    reverted_by: int | None
    kind: str
    """Kind of the entry: `change`, `undo` or `redo`."""


@dataclass(frozen=True, slots=True)
class ChangeEntry:
    """A recorded transaction and its state."""

    id: int
    call_id: str
    kind: str
    state: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class CallChanges:
    """Number of changes of a call, and the first paths it changed; folders count only if nothing else changed."""

    count: int
    undone: Literal["no", "partly", "yes"]
    first: tuple[TouchedPath, ...]


class ChangeEntries:
    """Journal tables of intended and applied changes, reversals, accepted hunks, and files that agents read."""

    def __init__(
        self, database: Database, blobs: Blobs, refs: BackupRefs, digests: DeferredDigests, owner: str = ""
    ) -> None:
        self.unsettled: set[int] = set()
        """Entries that this process could not close because of a disk error; the next call closes them."""
        self._database = database
        self._blobs = blobs
        self._refs = refs
        self._digests = digests
        self._owned = rows_of_owner("entries", owner)

    def owned_by(self, owner: str) -> "ChangeEntries":
        """Return the same tables restricted to one owner's changes; all unfinished entries stay visible."""
        entries = ChangeEntries(self._database, self._blobs, self._refs, self._digests, owner)
        entries.unsettled = self.unsettled
        return entries

    def intend(
        self,
        call: Call,
        transaction: Transaction,
        writes: Sequence[PlannedWrite],
        *,
        ordinal: int = 0,
        before_mtimes: Mapping[str, float] = MappingProxyType({}),
        durable: bool = False,
    ) -> int | None:
        """Record changes before they are made, with the content needed to finish or revert them after a crash.

        Returns the id of the entry, or None if the call has already recorded an entry with this `ordinal`, so that
        a rerun does not repeat it. `before_mtimes` has the modification times of the replaced files, by path.
        A `durable` entry survives a power failure.
        """
        mark = effect_fingerprint(ChangeSet(tuple(step.change for step in writes)))
        with self._database.writing(durable=durable) as connection:
            facts = (call.id, ordinal, call.session, call.turn, transaction.kind)
            row = connection.execute(
                "INSERT INTO entries "
                "(call_id, ordinal, session, turn, kind, state, coverage, fingerprint, note, at, owner) "
                "VALUES (?, ?, ?, ?, ?, 'intent', ?, ?, ?, ?, ?) "
                "ON CONFLICT (call_id, ordinal) DO NOTHING RETURNING id",
                (*facts, transaction.coverage, mark, transaction.changes.note, time.time(), call.owner),
            ).fetchone()
            if row is None:
                return None
            entry: int = row[0]
            nodes = [node for step in writes for node in (step.change.before, step.change.after) if node]
            for step in writes:
                self._blobs.put_change(connection, step.change)
            if held := [node.held for node in nodes if node.held]:
                self._refs.put(connection, held)
            connection.executemany(
                "INSERT INTO touches (entry, path, temporary, before_mtime, "
                "before_kind, before_digest, before_mode, before_ref, before_bytes, "
                "after_kind, after_digest, after_mode, after_ref, after_bytes) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_touch_row(entry, step, before_mtimes.get(step.change.path)) for step in writes],
            )
            if taken := [(entry, touch) for touch in transaction.reverts]:
                connection.executemany("INSERT INTO reversals VALUES (?, ?)", taken)
        return entry

    def finish(self, entry: int) -> None:
        """Mark an entry as applied, and the touches that it reverts as reverted.

        If a reverted touch was itself an undo, the touches that it had reverted are in effect again. So is an
        undone touch that a redo makes again.
        """
        with self._database.writing() as connection:
            moved, reverts = connection.execute(
                "UPDATE entries SET state = 'done' WHERE id = ?1 RETURNING EXISTS "
                "(SELECT 1 FROM touches WHERE entry = ?1 AND coalesce(before_ref, after_ref) IS NOT NULL), "
                "EXISTS (SELECT 1 FROM reversals WHERE entry = ?1)",
                (entry,),
            ).fetchone()
            if moved:
                self._refs.landed(connection, entry)
            if not reverts:
                return
            taken = "SELECT touch FROM reversals WHERE entry = ?1"
            redone = "reverted_by IS NOT NULL AND 'redo' = (SELECT kind FROM entries WHERE id = ?1)"
            connection.execute(
                f"UPDATE touches SET reverted_by = CASE WHEN {redone} THEN NULL ELSE ?1 END WHERE id IN ({taken})",
                (entry,),
            )
            connection.execute(
                "UPDATE touches SET reverted_by = NULL WHERE id IN (SELECT r.touch FROM reversals r "
                "JOIN touches t ON t.entry = r.entry JOIN touches q ON q.id = r.touch AND q.path = t.path "
                f"WHERE t.id IN ({taken}))",
                (entry,),
            )

    def void(self, entry: int) -> None:
        """Mark an entry as void: its changes were not made. Durable, or a power failure would complete them."""
        with self._database.writing(durable=True) as connection:
            connection.execute("UPDATE entries SET state = 'void' WHERE id = ?", (entry,))

    def of_call(self, call_id: str) -> list[ChangeEntry]:
        """List the change entries of a call, in order."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, call_id, kind, state, fingerprint FROM entries WHERE call_id = ? ORDER BY id",
                (call_id,),
            ).fetchall()
        return [ChangeEntry(*row) for row in rows]

    def counted(self, call_id: str, *, most: int) -> CallChanges:
        """Count the changes of a call and list the first `most` paths, without reading the others."""
        of_call = f"FROM touches t JOIN {self._owned} e ON e.id = t.entry WHERE e.call_id = ? AND e.state = 'done'"
        with self._database.reading() as connection:
            count, folders, undone = connection.execute(
                "SELECT count(*), coalesce(sum('folder' IN (t.before_kind, t.after_kind)), 0), "
                f"coalesce(sum(t.reverted_by IS NOT NULL), 0) {of_call}",
                (call_id,),
            ).fetchone()
            rows = (
                connection.execute(
                    f"SELECT t.path, t.before_kind, t.after_kind {of_call} "
                    "ORDER BY coalesce('folder' IN (t.before_kind, t.after_kind), 0), t.id LIMIT ?",
                    (call_id, most),
                ).fetchall()
                if count
                else []
            )
        first = tuple(
            TouchedPath(path_from_column(path), action_of(before, after))
            for path, before, after in rows
            if folders == count or "folder" not in {before, after}
        )
        back: Literal["partly", "yes"] = "yes" if undone == count else "partly"
        return CallChanges(count - folders or count, back if undone else "no", first)

    def first_touches(self, call_id: str, most: int) -> list[RecordedTouch]:
        """List the first applied touches of a call, in order."""
        return self._touches("e.call_id = ? AND e.state = 'done' ORDER BY t.id LIMIT ?", call_id, most)

    def newest_finished(self) -> int:
        """Return the id of the last entry before any unfinished one; 0 if there is none."""
        return self._database.peek_number(
            "SELECT coalesce((SELECT min(id) - 1 FROM entries WHERE state = 'intent'), max(id), 0) FROM entries"
        )

    def calls_undone_or_redone(self, after: int) -> set[str]:
        """Return the ids of calls whose changes were undone or redone by entries after the given one."""
        taken = "FROM reversals r JOIN touches t ON t.id = r.touch"
        again = f"{taken} JOIN reversals q ON q.entry = t.entry JOIN touches u ON u.id = q.touch"
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT e.call_id {taken} JOIN {self._owned} e ON e.id = t.entry WHERE r.entry > ?1 UNION "
                f"SELECT e.call_id {again} JOIN {self._owned} e ON e.id = u.entry WHERE r.entry > ?1",
                (after,),
            ).fetchall()
        return {str(row[0]) for row in rows}

    def changes_of_call(self, call_id: str) -> list[Change]:
        """List the applied changes of a call, in order; raises `KeyError` if their content was pruned."""
        done = [entry.id for entry in self.of_call(call_id) if entry.state == "done"]
        touches = [touch for entry in done for touch in self.touches(entry)]
        return [Change(touch.path, self.node(touch.before), self.node(touch.after)) for touch in touches]

    def open(self) -> list[ChangeEntry]:
        """List the unfinished entries, which belong to running calls or were left open by a crash."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, call_id, kind, state, fingerprint FROM entries WHERE state = 'intent' ORDER BY id"
            ).fetchall()
        return [ChangeEntry(*row) for row in rows]

    def paths_since(self, entry: int) -> tuple[int, dict[str, bool]]:
        """Return the newest entry, and the paths changed by entries after the given one.

        The value of each path is True for a folder that was moved there with its contents.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT t.entry, t.path, t.after_kind = 'folder' AND t.after_ref IS NOT NULL FROM touches t "
                "JOIN entries e ON e.id = t.entry WHERE t.entry > ? AND e.state = 'done' ORDER BY t.id",
                (entry,),
            ).fetchall()
        paths: dict[str, bool] = {}
        for _, path, whole in rows:
            name = path_from_column(path)
            paths[name] = bool(whole) or paths.get(name, False)
        return max((row[0] for row in rows), default=entry), paths

    def refs_since(self, entry: int) -> list[str]:
        """Return the references of backups that entries after the given one added or restored."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT t.before_ref, t.after_ref FROM touches t JOIN entries e ON e.id = t.entry "
                "WHERE t.entry > ? AND e.state = 'done' ORDER BY t.id",
                (entry,),
            ).fetchall()
        return list(dict.fromkeys(path_from_column(ref) for row in rows for ref in row if ref is not None))

    def touches_since(self, entry: int, path: str | None = None) -> list[tuple[RecordedTouch, float, str]]:
        """List the touches of applied and unfinished entries after the given one, of a path or all, in order.

        With each come the time and the coverage of its entry.
        """
        query = (
            f"SELECT {TOUCH_COLUMNS}, e.at, e.coverage FROM touches t JOIN entries e ON e.id = t.entry "
            "WHERE t.entry > ?1 AND e.state IN ('done', 'intent') AND (?2 IS NULL OR t.path = ?2) ORDER BY t.id"
        )
        with self._database.reading() as connection:
            rows = connection.execute(
                query, (entry, None if path is None else path_to_column(path))
            ).fetchall()
        return [(_recorded_touch(row), float(row[16]), str(row[17])) for row in rows]

    @property
    def has_only_finished_entries(self) -> bool:
        """Whether no entry is unfinished."""
        return self._database.peek("SELECT 1 FROM entries WHERE state = 'intent' LIMIT 1", ()) is None

    def kind(self, entry: int) -> str | None:
        """Return the kind of an entry, `change`, `undo` or `redo`; None if it was pruned."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT kind FROM entries WHERE id = ?", (entry,)).fetchone()
        return None if row is None else row[0]

    def touches(self, entry: int) -> list[RecordedTouch]:
        """List the touched paths of an entry of any owner, in the order written."""
        return self._touches("t.entry = ? ORDER BY t.id", entry, chosen="entries")

    def selected(self, scope: UndoScope, name: str) -> list[RecordedTouch]:
        """List the applied touches in an undo scope, newest first, including reverted ones."""
        match scope:
            case "call":
                return self._touches("e.call_id = ? AND e.state = 'done' ORDER BY t.id DESC", name)
            case "last":
                raise UsageError("`last` is resolved to a call before anything is selected.")
            case "since":
                first = f"SELECT min(id) FROM {self._owned} WHERE call_id = ?"
                where = (
                    f"e.id >= ({first}) AND e.session = (SELECT session FROM entries WHERE id = ({first}))"
                )
                return self._touches(f"{where} AND e.state = 'done' ORDER BY t.id DESC", name, name)
            case "turn":
                session, _, turn = name.rpartition("/")
                where = "e.session = ? AND e.turn = ? AND e.state = 'done' ORDER BY t.id DESC"
                return self._touches(where, session, turn)
            case "session":
                return self._touches("e.session = ? AND e.state = 'done' ORDER BY t.id DESC", name)
            case "path":
                return self._touches("t.path = ? AND e.state = 'done' ORDER BY t.id DESC LIMIT 100", name)

    def made_since(self, at: float) -> list[RecordedTouch]:
        """List the applied touches of all sessions since a time in seconds since 1970, newest first."""
        return self._touches("e.at >= ? AND e.state = 'done' ORDER BY t.id DESC", at)

    def node(self, recorded: RecordedNode | None) -> Node | None:
        """Load a recorded node with its content; raises `KeyError` if that was pruned."""
        if recorded is None:
            return None
        kind: NodeKind = (
            "folder" if recorded.kind == "folder" else "link" if recorded.kind == "link" else "file"
        )
        if kind == "folder" and recorded.ref is None:
            return Node("folder", b"", recorded.mode)
        with self._database.reading() as connection:
            data = self._blobs.get(connection, recorded.digest)
        if recorded.ref is None:
            if data is None:
                raise KeyError(recorded.digest)
            return Node(kind, data, recorded.mode)
        if data is None and kind == "folder":
            raise KeyError(recorded.digest)
        content = self._digests.of(recorded.ref) if data is None else ""
        backup = BackupRef(recorded.ref, recorded.digest, recorded.bytes or 0, content=content)
        return Node(kind, data or b"", recorded.mode, backup)

    def planned_write(self, touch: RecordedTouch) -> PlannedWrite:
        """Rebuild the planned write of a touch, for crash recovery."""
        change = Change(touch.path, self.node(touch.before), self.node(touch.after))
        return PlannedWrite(change, touch.temporary)

    def versions(self, path: str, limit: int = 50) -> list[FileVersion]:
        """List the recorded versions of a path, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT t.id, e.call_id, coalesce(c.tool, ''), e.at, t.before_kind, t.after_kind, "
                "coalesce(t.after_bytes, b.bytes) "
                f"FROM touches t JOIN {self._owned} e ON e.id = t.entry LEFT JOIN calls c ON c.id = e.call_id "
                "LEFT JOIN blobs b ON b.digest = t.after_digest "
                "WHERE t.path = ? AND e.state = 'done' ORDER BY t.id DESC LIMIT ?",
                (path, limit),
            ).fetchall()
        return [FileVersion(r[0], r[1], r[2], r[3], action_of(r[4], r[5]), r[6]) for r in rows]

    def made_at(self, entry: int) -> float:
        """Return when an entry was recorded, in seconds since 1970; 0 if it was pruned."""
        row = self._database.peek("SELECT at FROM entries WHERE id = ?", (entry,))
        return float(row[0]) if row else 0.0

    def call_of(self, entry: int) -> str:
        """Return the id of the call that made an entry."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT call_id FROM entries WHERE id = ?", (entry,)).fetchone()
        return str(row[0]) if row else ""

    def own_call_of_entry(self, entry: int) -> str:
        """Return the id of the owner's call that made an entry; empty if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT call_id FROM {self._owned} WHERE id = ?", (entry,)).fetchone()
        return str(row[0]) if row else ""

    def find_touch(self, number: int) -> RecordedTouch | None:
        """Return a touch by its number, or None."""
        return next(iter(self._touches("t.id = ? AND e.state = 'done'", number)), None)

    def first(self, path: str) -> RecordedTouch | None:
        """Return the oldest applied touch of a path, or None."""
        return next(
            iter(self._touches("t.path = ? AND e.state = 'done' ORDER BY t.id LIMIT 1", path)), None
        )

    def left_at(self, path: str) -> RecordedNode | None:
        """Return the recorded state of a path after its newest change, or None if the user may have written it.

        The user may have written content that an undo restored or that a scan found.
        """
        query = (
            "SELECT t.after_kind, t.after_digest, t.after_mode, t.after_ref, t.after_bytes, e.kind, e.coverage "
            f"FROM touches t JOIN {self._owned} e ON e.id = t.entry "
            "WHERE t.path = ? AND e.state = 'done' ORDER BY t.id DESC LIMIT 1"
        )
        with self._database.reading() as connection:
            row = connection.execute(query, (path_to_column(path),)).fetchone()
        if row is None or row[5] != "change" or row[6] not in {"declared", "overlay"}:
            return None
        return _recorded_node(*row[:5])

    def ref_left(self, path: str, mark: str) -> str | None:
        """Return the newest backup reference recorded for a path with content of this `mark`, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT t.after_ref FROM touches t JOIN entries e ON e.id = t.entry WHERE t.path = ? "
                "AND t.after_digest = ? AND t.after_ref IS NOT NULL AND e.state = 'done' "
                "ORDER BY t.id DESC LIMIT 1",
                (path_to_column(path), _BACKUP_ONLY_MARK + mark),
            ).fetchone()
        return None if row is None else path_from_column(row[0])

    def record_reads(self, call: Call, nodes: Mapping[str, Node]) -> None:
        """Record the files that an agent read in a call."""
        for path, node in nodes.items():
            if len(node.data) <= MAX_SEEN_BYTES:
                self.record_read(call, path, node)
            else:
                self.forget_read(call, path)

    def record_read(self, call: Call, path: str, node: Node) -> None:
        """Record the content of a file as the agent last read it."""
        key = (call.session_key, call.agent, path)
        with self._database.writing() as connection:
            row = connection.execute(
                f"SELECT digest FROM read_files WHERE {READ_FILE_CONDITION}", key
            ).fetchone()
            if row and row[0] == node.digest:
                return
            self._blobs.put(connection, node)
            if row:
                self._blobs.release(connection, row)
            connection.execute(
                "INSERT OR REPLACE INTO read_files VALUES (?, ?, ?, ?, ?)",
                (*key, node.digest, time.time()),
            )

    def forget_read(self, call: Call, path: str) -> None:
        """Delete the content that an agent last read at a path, because the file is now too large to store."""
        key = (call.session_key, call.agent, path)
        if self._database.peek(f"SELECT 1 FROM read_files WHERE {READ_FILE_CONDITION}", key) is not None:
            with self._database.writing() as connection:
                gone = connection.execute(
                    f"DELETE FROM read_files WHERE {READ_FILE_CONDITION} RETURNING digest", key
                )
                self._blobs.release(connection, [digest for (digest,) in gone.fetchall()])

    def seen_bytes(self, call: Call, path: str) -> bytes | None:
        """Return the content of a path as the agent last read it, or None if that is not stored."""
        waiting = self._database.behind.queued_read(call, path)
        if waiting is not None:
            return waiting.data if len(waiting.data) <= MAX_SEEN_BYTES else None
        digest = self.seen_digest(call, path)
        if digest is None:
            return None
        with self._database.peeking() as connection:
            return self._blobs.get(connection, digest)

    def seen_digest(self, call: Call, path: str) -> str | None:
        """Return the digest of a path's content as the agent last read it, or None if that is not stored."""
        waiting = self._database.behind.queued_read(call, path)
        if waiting is not None:
            return waiting.digest if len(waiting.data) <= MAX_SEEN_BYTES else None
        key = (call.session_key, call.agent, path)
        row = self._database.peek(f"SELECT digest FROM read_files WHERE {READ_FILE_CONDITION}", key)
        return None if row is None else str(row[0])

    def accept_hunk(self, path: str, hunk: str) -> None:
        """Record that the user accepted a hunk in a review."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO accepted_hunks VALUES (?, ?, ?)",
                (path_to_column(path), hunk, time.time()),
            )

    def is_hunk_accepted(self, path: str, hunk: str) -> bool:
        """Whether the user accepted a hunk in a review."""
        row = self._database.peek(
            "SELECT 1 FROM accepted_hunks WHERE path = ? AND hunk = ?", (path_to_column(path), hunk)
        )
        return row is not None

    def _touches(self, where: str, *values: Any, chosen: str = "") -> list[RecordedTouch]:
        entries = chosen or self._owned
        query = f"SELECT {TOUCH_COLUMNS} FROM touches t JOIN {entries} e ON e.id = t.entry WHERE {where}"
        with self._database.reading() as connection:
            rows = connection.execute(query, values).fetchall()
        return [_recorded_touch(row) for row in rows]


def action_of(before: object, after: object) -> Literal["created", "changed", "deleted"]:
    """Return what happened to a path with these states; None as a state means that it did not exist."""
    if before is None:
        return "created"
    return "deleted" if after is None else "changed"


def _recorded_touch(row: Sequence[Any]) -> RecordedTouch:
    number, entry, path, temporary = row[:4]
    before, after = _recorded_node(*row[4:9]), _recorded_node(*row[9:14])
    return RecordedTouch(number, entry, path_from_column(path), temporary, before, after, row[14], row[15])


def _recorded_node(
    kind: str | None, digest: str, mode: int | None, ref: str | None, size: int | None
) -> RecordedNode | None:
    if kind is None:
        return None
    return RecordedNode(
        kind,
        digest.removeprefix(_BACKUP_ONLY_MARK),
        mode,
        None if ref is None else path_from_column(ref),
        size,
    )


def _touch_row(entry: int, write: PlannedWrite, before_mtime: float | None) -> tuple[Any, ...]:
    facts: list[Any] = []
    for node in (write.change.before, write.change.after):
        if node is None:
            facts += [None] * 5
        else:
            held = (path_to_column(node.held.ref), node.held.bytes) if node.held else (None, None)
            name = (
                node.digest
                if is_stored_in_journal(node) or not node.held
                else _BACKUP_ONLY_MARK + node.digest
            )
            facts += [node.kind, name, node.mode, *held]
    return (entry, path_to_column(write.change.path), write.temporary, before_mtime, *facts)
