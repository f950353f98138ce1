"""Store what a workspace has gained in its log, and put it together again from that. ADR 240."""

from dataclasses import dataclass, field
from pathlib import Path

from handtools.core.errors import StorageFault
from handtools.fleet.workspace_log import (
    LogStore,
    PathState,
    Segment,
    SegmentTaken,
    apply_path_states,
    path_states,
)
from handtools.fleet.workspaces import WorkspaceRecord, WorkspaceStore
from handtools.runtime.journal import Journal
from handtools.runtime.journal.database import JournalPosition, write_copied_journal

BASE_SUFFIX = ".base"
"""Ends the name of the workspace that a recovered fork is made from, for a moment."""


@dataclass(frozen=True, slots=True)
class ShippedPosition:
    """How far the log of a workspace goes."""

    number: int = 0
    """How many segments it has."""
    journal: JournalPosition = field(default_factory=JournalPosition)
    entry: int = 0
    """The newest change that is in it."""


@dataclass(frozen=True, slots=True)
class RecoveredWorkspace:
    """A workspace that was put together from its log."""

    record: WorkspaceRecord
    shipped: ShippedPosition


def ship_workspace(
    log: LogStore, name: str, *, root: Path, journal: Journal, done: ShippedPosition, writer: str
) -> ShippedPosition:
    """Append to the log what it does not have yet; returns how far it goes then. Nobody may be changing files.

    Raises `SegmentTaken` when another host has gone on with the log, `StorageFault` when it can't be stored now.
    """
    try:
        return _shipped(log, name, root=root, journal=journal, done=done, writer=writer)
    except OSError as error:
        raise StorageFault(
            f"What workspace {name} has gained can't be read for its log: {error.strerror or error}.",
            hint="Send the same call again later: it is not run twice.",
        ) from error


def _shipped(
    log: LogStore, name: str, *, root: Path, journal: Journal, done: ShippedPosition, writer: str
) -> ShippedPosition:
    copy = journal.copied_since(done.journal)
    if copy.is_empty:
        return done
    entry, paths = journal.entries.paths_since(done.entry)
    segment = Segment.of(copy, path_states(str(root), paths), writer)
    packed = segment.pack()
    try:
        log.append(name, done.number, packed)
    except SegmentTaken:
        stored = log.segment(name, done.number)
        if stored is None or Segment.unpack(stored).writer != writer:
            raise
        # An earlier attempt of ours was stored although nobody said so. It is a beginning of what we have now: the
        # journal is stored whole once more behind it, with all paths since the last segment that we knew of.
        whole = journal.copied_since(JournalPosition())
        log.append(name, done.number + 1, Segment.of(whole, path_states(str(root), paths), writer).pack())
        return ShippedPosition(done.number + 2, whole.position, entry)
    return ShippedPosition(done.number + 1, copy.position, entry)


def recover_workspace(store: WorkspaceStore, log: LogStore, name: str) -> RecoveredWorkspace | None:
    """Put a workspace together from its template and its log; None without a log, or if it was removed."""
    head = log.head(name)
    if head is None or log.is_ended(name):
        return None
    for left in (name, name + BASE_SUFFIX):
        # Another host went on with it and it has come back, or somebody was stopped while they did this.
        store.remove(left)
    if not store.templates.has(head.template):
        log.fetch_template(head.template, store.templates)
    if head.parent:
        base = store.create(head.template, name=name + BASE_SUFFIX, tenant=head.tenant)
        try:
            apply_path_states(str(store.root(base.id)), _states_at(log, head.parent, head.segment))
            store.fork(base.id, names=[name])
        finally:
            store.remove(base.id)
        record = store.set_parent(name, head.parent)
    else:
        record = store.create(head.template, name=name, tenant=head.tenant)
    segments = list(log.segments(name))
    apply_path_states(str(store.root(name)), [state for each in segments for state in each.paths])
    if segments:
        write_copied_journal(
            str(store.state(name) / "journal.sqlite"), [(each.database, each.log) for each in segments]
        )
    # What is recorded from here on begins with a whole copy: this file's own log has other salts.
    return RecoveredWorkspace(record, ShippedPosition(len(segments), entry=_newest_entry(store, name)))


def _states_at(log: LogStore, name: str, segments: int) -> list[PathState]:
    """What the paths of a workspace were when its log had some segments, with what it began with itself."""
    head = log.head(name)
    before = _states_at(log, head.parent, head.segment) if head is not None and head.parent else []
    return [*before, *(state for each in log.segments(name, segments) for state in each.paths)]


def _newest_entry(store: WorkspaceStore, name: str) -> int:
    from handtools.local_journal import open_local_journal

    journal = open_local_journal(store.root(name), store.state(name)).journal
    try:
        return journal.entries.paths_since(0)[0]
    finally:
        journal.close()
