"""File changes as journaled transactions: record the intent, write, mark it done; recover after a crash."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.changes import BackupRef, Change, Node, RecordedChanges, TouchedPath, same_nodes
from handtools.core.errors import (
    Busy,
    HandtoolsError,
    HostError,
    Stale,
    StorageFault,
    SymlinkInPath,
    ToolError,
)
from handtools.core.files import HostFiles, PlannedWrite
from handtools.runtime.journal import ChangeEntry
from handtools.runtime.journal.change_entries import ChangeEntries, Transaction, action_of
from handtools.runtime.power_failure import restore_after_power_failure
from handtools.runtime.workspace import Workspace

MAX_LOCKED_PATHS = 256
PIECE_BYTES = 1 << 20
"""Size in bytes of the pieces in which a file is read."""
MAX_NAMED_PATHS = 5
"""Most paths named in a message."""


def commit_transaction(
    workspace: Workspace, call: Call, transaction: Transaction, *, ordinal: int
) -> RecordedChanges:
    """Apply a transaction and record it in the journal. Blocking. The caller must have locked every path.

    `ordinal` counts the entries of this run of the call, so that a rerun does not repeat a recorded one.
    """
    entries, changes = workspace.journal.entries, transaction.changes
    steps = [_with_known_ref(entries, step) for step in workspace.files.plan(changes)]
    # The journal has all bytes, so one sync of the journal keeps the files and their undo.
    durable = workspace.journal.file_syncs.is_in_boot(workspace.boot) and not any(
        node.held for step in steps for node in (step.change.before, step.change.after) if node
    )
    if transaction.happened:
        # Record intent and completion together: recovery would roll back an entry that has only an intent.
        with _failure_says("The changes were already made."), workspace.journal.together():
            entry = _open_entry(workspace, call, transaction, steps, ordinal)
            entries.finish(entry)
    else:
        with _failure_says("Nothing was changed."):
            entry = _open_entry(workspace, call, transaction, steps, ordinal, durable=durable)
        _perform(workspace, entry, steps, synced=not durable)
        with _failure_says(
            f"{_shortened_path_list(changes.paths)} did change; the next call completes the log."
        ):
            _close_entry(entries.finish, entries, entry)
        if durable:
            workspace.journal.file_syncs.sync_later(entry, workspace.files.sync)
    workspace.journal.contents.queue_digests(steps)
    touched = tuple(TouchedPath(c.path, action_of(c.before, c.after)) for c in changes)
    return RecordedChanges(entry, touched, transaction.coverage, transaction.omitted)


def _open_entry(
    workspace: Workspace,
    call: Call,
    transaction: Transaction,
    writes: Sequence[PlannedWrite],
    ordinal: int,
    *,
    durable: bool = False,
) -> int:
    mtimes = {} if transaction.happened else _modification_times(workspace, transaction.changes)
    entry = workspace.journal.entries.intend(
        call, transaction, writes, ordinal=ordinal, before_mtimes=mtimes, durable=durable
    )
    if entry is None:
        raise Stale(
            "This call id has already changed files, in another process or before a restart.",
            hint="Check the files, then send a new call with a new id.",
        )
    return entry


def _modification_times(workspace: Workspace, changes: Iterable[Change]) -> dict[str, float]:
    """Return the modification times of the files to be replaced, by path."""
    times = {}
    for change in changes:
        if change.before is not None:
            with contextlib.suppress(ToolError):  # applying the change reports why the path can't be read
                if facts := workspace.files.facts(change.path):
                    times[change.path] = facts.modified
    return times


def _perform(workspace: Workspace, entry: int, writes: Sequence[PlannedWrite], *, synced: bool) -> None:
    entries = workspace.journal.entries
    try:
        workspace.files.perform(writes, synced=synced)
    except BaseException as failure:
        if isinstance(failure, ToolError) and failure.unsettled:
            entries.unsettled.add(entry)
        else:
            # If the journal fails, too, the next call closes the entry; report the original error.
            with contextlib.suppress(HostError):
                _close_entry(entries.void, entries, entry)
        raise


def _close_entry(how: Callable[[int], None], entries: ChangeEntries, entry: int) -> None:
    """Close an entry with `finish` or `void`; if the journal fails, mark it for the next call to close."""
    try:
        how(entry)
    except BaseException:
        entries.unsettled.add(entry)
        raise
    entries.unsettled.discard(entry)


@contextmanager
def _failure_says(what_is_so: str) -> Iterator[None]:
    """Context manager that adds a sentence about the state of the files to errors of the journal."""
    try:
        yield
    except HostError as failure:
        raise type(failure)(f"{failure} {what_is_so}") from failure


def _shortened_path_list(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_PATHS:,} more" if len(paths) > MAX_NAMED_PATHS else ""
    return ", ".join(f"`{path}`" for path in paths[:MAX_NAMED_PATHS]) + more


def _with_known_ref(entries: ChangeEntries, write: PlannedWrite) -> PlannedWrite:
    """Return the write with the backup reference recorded by an earlier change of the same large file, if any."""
    before = write.change.before
    if before is None or before.held is None or not before.data:
        return write
    ref = entries.ref_left(write.change.path, before.held.mark)
    if ref is None:
        return write
    backup = BackupRef(ref, before.held.mark, before.held.bytes)
    known_node = Node(before.kind, before.data, before.mode, backup)
    return PlannedWrite(Change(write.change.path, known_node, write.change.after), write.temporary)


def lock_keys(paths: Iterable[str]) -> list[str]:
    """Return the lock keys for changed paths, up to a limit.

    The remaining paths are safe without a lock, because each file is compared before it is replaced.
    """
    return sorted(paths)[:MAX_LOCKED_PATHS]


async def settle_unfinished(workspace: Workspace) -> list[str]:
    """Finish or roll back transactions that a disk error left open in this process; return a sentence for each."""
    entries = workspace.journal.entries
    left = [entry for entry in entries.open() if entry.id in entries.unsettled]
    entries.unsettled &= {entry.id for entry in left}
    return [
        sentence for entry in left if (sentence := await _recover_unless_locked(workspace, entry, held=()))
    ]


async def recover_transactions(
    workspace: Workspace, *, held: Collection[str] = (), only_held: bool = False
) -> list[str]:
    """Finish or roll back transactions that a crash left open; return a sentence for each.

    An open entry whose paths can be locked was left by a crash, because a running call keeps its locks.
    """
    told, held_paths = [], frozenset(held)
    if not only_held and workspace.files.backups is not None:
        # Delete backups that no journal entry references: their call crashed before recording them.
        wanted = workspace.journal.refs.items() | workspace.journal.pending_commands.backup_items()
        told += await to_thread.run_sync(workspace.files.backups.delete_unwanted_items, wanted)
    if not only_held:
        told += await restore_after_power_failure(workspace)
    for entry in workspace.journal.entries.open():
        if only_held and held_paths.isdisjoint(
            touch.path for touch in workspace.journal.entries.touches(entry.id)
        ):
            continue
        told.append(await _recover_unless_locked(workspace, entry, held))
    return [sentence for sentence in told if sentence]


async def _recover_unless_locked(workspace: Workspace, entry: ChangeEntry, held: Collection[str]) -> str:
    """Recover an entry unless a running call has locked its paths; return a sentence or an empty string."""
    paths = {touch.path for touch in workspace.journal.entries.touches(entry.id)}
    keys = [key for key in lock_keys(paths) if key not in held]
    try:
        async with workspace.locks.hold(keys, timeout=0):
            # In a thread: files may come from an editor that answers on this event loop.
            return await to_thread.run_sync(_recover_entry, workspace, entry)
    except Busy:
        return ""


def _recover_entry(workspace: Workspace, entry: ChangeEntry) -> str:
    entries = workspace.journal.entries
    if not any(still.id == entry.id for still in entries.open()):
        return ""
    try:
        steps = [entries.planned_write(touch) for touch in entries.touches(entry.id)]
    except KeyError:
        _close_entry(entries.void, entries, entry.id)
        return f"Call {entry.call_id} was interrupted and its content is lost; its files were left alone."
    try:
        return _finish_or_take_back(workspace, entry, steps)
    except (StorageFault, HostError, OSError) as problem:
        # The disk error may be gone by the next call.
        entries.unsettled.add(entry.id)
        return _recovery_sentence(
            entry, f"and is not recovered yet; the next call tries again. {problem}", []
        )
    except (HandtoolsError, ValueError, LookupError, RecursionError) as problem:
        # Void the entry, so that this is reported once: retrying would fail again and break every call.
        _close_entry(entries.void, entries, entry.id)
        paths = _shortened_path_list([step.change.path for step in steps])
        left = f"and could be neither finished nor rolled back: {problem} Check {paths}."
        return _recovery_sentence(entry, left, [])


def _finish_or_take_back(workspace: Workspace, entry: ChangeEntry, writes: list[PlannedWrite]) -> str:
    entries, files = workspace.journal.entries, workspace.files
    notes = [note for step in writes if (note := files.sweep(step))]
    landed = [step for step in writes if _is_done(workspace, step)]
    if len(landed) == len(writes):
        _close_entry(entries.finish, entries, entry.id)
        return _recovery_sentence(entry, "after its last write; it is recorded as done.", notes)
    if landed:
        back = [PlannedWrite(step.change.inverse, step.temporary) for step in reversed(landed)]
        files.perform(back)
    _close_entry(entries.void, entries, entry.id)
    return _recovery_sentence(entry, "and rolled back: its files are as they were before it.", notes)


def _recovery_sentence(entry: ChangeEntry, outcome: str, notes: list[str]) -> str:
    return " ".join([f"Call {entry.call_id} was interrupted {outcome}", *notes])


def _is_done(workspace: Workspace, write: PlannedWrite) -> bool:
    after = write.change.after
    return same_nodes(after, node_at(workspace.files, write.change.path, like_node=after))


def node_at(files: HostFiles, path: str, *, like_node: Node | None) -> Node | None:
    """Return the node at a recorded path; None if there is none or a parent folder is now a symlink."""
    try:
        return files.node(path, like_node=like_node)
    except SymlinkInPath:
        return None


def node_bytes(files: HostFiles, path: str, node: Node, most: int) -> bytes | None:
    """Return a file's bytes from its node, the backups or the file; None if over `most` bytes or changed since."""
    if node.held is None or node.known:
        return node.data
    data = None if files.backups is None else files.backups.read(node.held.ref, most)
    if data is None and node.kind == "file" and node.bytes <= most:
        return files.read(path) if node.same(node_at(files, path, like_node=node)) else None
    return data


def node_pieces(files: HostFiles, path: str, node: Node | None) -> Iterator[bytes]:
    """Yield a file's bytes in pieces, from its node, the backups or the file; without a node, from the file.

    Stops if the bytes can't be read or the file differs from the node.
    """
    if node is not None and (node.held is None or node.known):
        yield node.data
        return
    backups, start = files.backups, 0
    ref = node.held.ref if node is not None and node.held is not None else ""
    is_kept = bool(ref) and backups is not None and backups.has(ref)
    try:
        if not is_kept and node is not None and not node.same(node_at(files, path, like_node=node)):
            return
        while True:
            if is_kept and backups is not None:
                piece = backups.part(ref, start, PIECE_BYTES)
            else:
                piece = files.read(path, start=start, size=PIECE_BYTES)
            if not piece:
                return
            yield piece
            start += len(piece)
    except ToolError:
        return
