"""Store new changes of a workspace in its log, and recover the workspace from the log."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from handtools.core.errors import Busy, HandtoolsError, NotFound, StorageFault
from handtools.fleet.workspace_log import (
    KEPT_FOLDERS,
    MAX_LOG_SEGMENTS,
    VAULT_FOLDER,
    LogHead,
    LogStore,
    PathRestore,
    PathState,
    Segment,
    SegmentTaken,
    apply_path_states,
    read_path_states,
)
from handtools.fleet.workspaces import BASE_SUFFIX, WorkspaceRecord, WorkspaceStore
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import walk_tree
from handtools.runtime.journal import Journal
from handtools.runtime.journal.database import JournalPosition, write_copied_journal

logger = logging.getLogger("handtools")
CHECKPOINT_SEGMENTS, MAX_SEGMENTS = 64, 256
"""The numbers of segments after which a checkpoint is due.

It is due after `CHECKPOINT_SEGMENTS` if these are at least twice as large as the last checkpoint, and after
`MAX_SEGMENTS` in any case.
"""
MAX_KEPT_FILE_BYTES = 32 << 20
MAX_KEPT_BYTES = 64 << 20
"""Separate limit for the backups in a segment, the kept files in a checkpoint, and the backups in one."""
GROWING_OUTPUT_BYTES = 256 << 10
"""An output above this size that is still growing is stored when it has doubled, not after each call."""
_MAX_READ_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class ShippedPosition:
    """How much of a workspace is stored in its log."""

    number: int = 0
    """The number of segments in the log."""
    journal: JournalPosition = field(default_factory=JournalPosition)
    entry: int = 0
    """The number of the newest journal entry in the log."""
    kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The files in `KEPT_FOLDERS` that are in the log, with size and mtime."""
    checkpoint: int = 0
    """The number of segments that the newest checkpoint replaces."""
    checkpoint_bytes: int = 0
    bytes_since: int = 0
    """Total size of the segments after the checkpoint."""
    fences: frozenset[int] = frozenset()
    """Numbers of the segments after the checkpoint that are fences."""


@dataclass(frozen=True, slots=True)
class RecoveredWorkspace:
    """A workspace that was recovered from its log."""

    record: WorkspaceRecord
    shipped: ShippedPosition


def store_new_changes(
    log: LogStore,
    store: WorkspaceStore,
    name: str,
    *,
    journal: Journal,
    shipped: ShippedPosition,
    writer: str,
    is_writing: bool = False,
) -> ShippedPosition:
    """Append new changes to the log and return the new position. No files may change during the call.

    `is_writing` means that a job is still writing its output. Raises `SegmentTaken` if another host has
    continued the log, `StorageFault` if the changes can't be stored now.
    """
    try:
        return _append_new_changes(
            log, store, name, journal=journal, shipped=shipped, writer=writer, is_writing=is_writing
        )
    except OSError as error:
        raise StorageFault(
            f"Can't read the new changes of workspace {name} for its log: {error.strerror or error}.",
            hint="Send the same call again later. It will not run twice.",
        ) from error


def _append_new_changes(
    log: LogStore,
    store: WorkspaceStore,
    name: str,
    *,
    journal: Journal,
    shipped: ShippedPosition,
    writer: str,
    is_writing: bool,
) -> ShippedPosition:
    state, root = store.state_folder(name), str(store.files_folder(name))
    copy = journal.copied_since(shipped.journal)
    kept = _kept_file_stamps(state, shipped.kept if is_writing else {})
    if copy.is_empty and kept == shipped.kept:
        return shipped
    entry, paths = journal.entries.paths_since(shipped.entry)
    refs = journal.entries.refs_since(shipped.entry)
    changed = [path for path in {**shipped.kept, **kept} if shipped.kept.get(path) != kept.get(path)]
    beside = [*_states_of_kept_files(state, changed), *_backup_states(state, refs)]
    packed = Segment.from_changes(copy, read_path_states(root, paths), beside, writer).pack()
    try:
        log.append_segment(name, shipped.number, packed)
    except SegmentTaken:
        stored = log.read_segment(name, shipped.number)
        if stored is None or Segment.unpack(stored, with_data=False).writer != writer:
            raise
        # Our earlier attempt was stored, but its response was lost. The workspace may have changed since:
        # append another segment, with the full journal and all paths since the last known segment.
        copy = journal.copied_since(JournalPosition())
        packed = Segment.from_changes(copy, read_path_states(root, paths), beside, writer).pack()
        log.append_segment(name, shipped.number + 1, packed)
        shipped = replace(shipped, number=shipped.number + 1, bytes_since=shipped.bytes_since + len(stored))
    return replace(
        shipped,
        number=shipped.number + 1,
        journal=copy.position,
        entry=entry,
        kept=kept,
        bytes_since=shipped.bytes_since + len(packed),
    )


def is_checkpoint_due(shipped: ShippedPosition) -> bool:
    """Whether enough was stored since the last checkpoint to make a new one worthwhile."""
    since = shipped.number - shipped.checkpoint
    grown = shipped.bytes_since >= 2 * shipped.checkpoint_bytes
    return since >= MAX_SEGMENTS or (since >= CHECKPOINT_SEGMENTS and grown)


def store_checkpoint(
    log: LogStore,
    store: WorkspaceStore,
    name: str,
    *,
    journal: Journal,
    shipped: ShippedPosition,
    writer: str,
) -> ShippedPosition:
    """Store a checkpoint that replaces all segments so far, and delete them. No files may change until then.

    This only shortens the log, so a failure is not raised: it is tried again after the next change.
    """
    state = store.state_folder(name)
    beside = [
        *_states_of_newest_kept_files(state, shipped.kept),
        *_backup_states(state, _backup_names(state)),
    ]
    whole = journal.copied_since(JournalPosition())
    # The next segment must contain the full journal, even if storing the checkpoint seems to fail: then no
    # WAL frame is missing or duplicated.
    shipped = replace(shipped, journal=JournalPosition())
    try:
        packed = Segment.from_changes(
            whole, states_differing_from_template(store, name), beside, writer
        ).pack()
        log.put_checkpoint(name, shipped.number, packed)
        # Don't delete fences: a host that lost the workspace must find its next segment number taken.
        numbers = set(range(shipped.checkpoint, shipped.number)) - shipped.fences
        log.delete_segments(name, sorted(numbers), shipped.checkpoint)
    except HandtoolsError as problem:
        logger.warning("Can't shorten the log of workspace %s now: %s", name, problem)
        return shipped
    return replace(
        shipped,
        checkpoint=shipped.number,
        checkpoint_bytes=len(packed),
        bytes_since=0,
        fences=frozenset(),
    )


def states_differing_from_template(store: WorkspaceStore, name: str) -> list[PathState]:
    """The states of all paths of a workspace that differ from its template."""
    record = store.get_record(name)
    template = os.fspath(store.templates.get_template(record.template).tree)
    found = store.differences_from_base(name, template, ())
    return read_path_states(str(store.files_folder(name)), {each.path: False for each in found})


def store_fork_base(
    log: LogStore, store: WorkspaceStore, name: str, *, shipped: ShippedPosition, writer: str
) -> None:
    """Store the initial state of forks that are made now, because the parent's log may be shortened later."""
    log.put_fork_base(
        name,
        shipped.number,
        Segment(None, b"", tuple(states_differing_from_template(store, name)), writer).pack(),
    )


def recover_workspace(
    store: WorkspaceStore, log: LogStore, name: str, head: LogHead, *, writer: str
) -> RecoveredWorkspace | None:
    """Take over a workspace and recover it from its template and its log; None if it was removed.

    From then on, the previous host can't append to the log.
    """
    read = _read_log_and_append_fence(log, name, writer)
    if read is None:
        return None
    for left in (name, name + BASE_SUFFIX):
        # Delete an outdated copy, from before another host had the workspace or from a failed recovery.
        store.remove(left)
    if not store.templates.has_template(head.template):
        log.fetch_template(head.template, store.templates)
    try:
        record = (
            _create_initial_fork(store, log, name, head)
            if head.parent
            else store.create(head.template, name=name, tenant=head.tenant)
        )
        _apply_log(store, name, head, read)
        entry, kept = _newest_change_number(store, name), _kept_file_stamps(store.state_folder(name), {})
    except OSError as error:
        store.remove(name)
        raise StorageFault(
            f"Can't recover workspace {name} from its log: {error.strerror or error}.",
            hint="Free some space or check the disk, then try again.",
        ) from error
    except HandtoolsError:
        store.remove(name)  # it is only partly recovered
        raise
    # The position has no journal part, so that the next segment contains the full journal: the new file's
    # WAL does not continue the stored one.
    return RecoveredWorkspace(record, replace(read.position, entry=entry, kept=kept))


def _apply_log(store: WorkspaceStore, name: str, head: LogHead, read: "_ReadLog") -> None:
    """Apply the log to a newly created workspace."""
    state, root = str(store.state_folder(name)), str(store.files_folder(name))
    if read.has_checkpoint and head.parent:
        # A checkpoint lists differences from the template. So it lacks paths that differ from it in the
        # fork's initial state and were changed back later.
        said = {each.path for each in read.segments[0].paths}
        template = os.fspath(store.templates.get_template(head.template).tree)
        undone = {
            each.path: True for each in states_differing_from_template(store, name) if each.path not in said
        }
        apply_path_states(root, read_path_states(template, undone))
    copies: list[tuple[bytes | None, bytes]] = []
    with (
        PathRestore(root, [step.paths for step in read.segments]) as files,
        PathRestore(state, [step.states for step in read.segments]) as beside,
    ):
        for number, packed in enumerate(read.packed):
            step = Segment.unpack(packed)
            files.write_files_of_step(number, step.paths)
            beside.write_files_of_step(number, step.states)
            if step.database is not None:
                copies.clear()
            copies.append((step.database, step.log))
    if copies and copies[0][0] is not None:
        write_copied_journal(os.path.join(state, "journal.sqlite"), copies)


@dataclass(frozen=True, slots=True)
class _ReadLog:
    """A log that was read up to the fence that the reader appended."""

    packed: list[bytes]
    """The newest checkpoint, if any, and the segments after it."""
    segments: list[Segment]
    """The same segments, unpacked without their data; the data is unpacked one segment at a time."""
    has_checkpoint: bool
    position: ShippedPosition


def _read_log_and_append_fence(log: LogStore, name: str, writer: str) -> _ReadLog | None:
    """Read a log and append a fence; None if the workspace was removed.

    The previous host may store a checkpoint and delete segments at the same time. So the fence may get the
    number of a deleted segment. Then there is a newer checkpoint, and the log is read again.
    """
    for _ in range(_MAX_READ_ATTEMPTS):
        objects = log.list_log_objects(name)
        if objects.is_ended:
            return None
        first = objects.newest_checkpoint_number
        checkpoint = log.read_checkpoint(name, first) if first else None
        if first and checkpoint is None:
            continue
        end = first
        while end in objects.segments and end - first < MAX_LOG_SEGMENTS:
            end += 1
        packed = log.read_segments(name, range(first, end))
        taken = None if None in packed else _append_fence(log, name, end, writer)
        if taken is None or log.list_log_objects(name).newest_checkpoint_number != first:
            continue
        stored = [each for each in (*packed, *taken) if each is not None]
        whole = [*([checkpoint] if checkpoint else []), *stored]
        listed = [Segment.unpack(each, with_data=False) for each in whole]
        position = ShippedPosition(
            number=first + len(stored),
            checkpoint=first,
            checkpoint_bytes=len(checkpoint or b""),
            bytes_since=sum(map(len, stored)),
            fences=frozenset(
                first + at for at, each in enumerate(listed[len(whole) - len(stored) :]) if each.is_fence
            ),
        )
        return _ReadLog(whole, listed, bool(checkpoint), position)
    raise Busy(f"Workspace {name} is being used by another host.", hint="Try again.")


def _append_fence(log: LogStore, name: str, number: int, writer: str) -> list[bytes] | None:
    """Append a fence at `number` or at the first free number after it.

    Returns the segments from `number` to the fence; None if one of them was deleted.
    """
    fence, came = Segment.takeover_fence(writer).pack(), list[bytes]()
    while len(came) < MAX_LOG_SEGMENTS:
        try:
            log.append_segment(name, number + len(came), fence)
        except SegmentTaken:
            stored = log.read_segment(name, number + len(came))
            if stored is None:
                return None
            came.append(stored)
        else:
            return [*came, fence]
    return None


def _create_initial_fork(store: WorkspaceStore, log: LogStore, name: str, head: LogHead) -> WorkspaceRecord:
    """Create a fork in its initial state."""
    packed = log.read_fork_base(head.parent, head.segment)
    if packed is None:
        raise NotFound(f"The initial state of workspace {name} is no longer stored.", hint="Fork again.")
    base = store.create(head.template, name=name + BASE_SUFFIX, tenant=head.tenant)
    try:
        apply_path_states(str(store.files_folder(base.id)), Segment.unpack(packed).paths)
        store.fork(base.id, names=[name])
    finally:
        store.remove(base.id)
    return store.set_parent(name, head.parent)


def _kept_file_stamps(state: Path, known: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The files in `KEPT_FOLDERS` with size and mtime.

    A large file keeps its `known` values until its size has doubled.
    """
    found: dict[str, tuple[int, int]] = {}
    for folder in KEPT_FOLDERS:
        if not (state / folder).is_dir():
            continue
        for each in os.scandir(state / folder):
            if each.is_file(follow_symlinks=False) and not each.name.startswith("."):
                facts, path = each.stat(follow_symlinks=False), f"{folder}/{each.name}"
                size, _ = before = known.get(path, (0, 0))
                grows_slowly = size > GROWING_OUTPUT_BYTES and facts.st_size < 2 * size
                found[path] = before if grows_slowly else (facts.st_size, facts.st_mtime_ns)
    return found


def _states_of_kept_files(state: Path, paths: Iterable[str]) -> list[PathState]:
    return read_path_states(
        str(state), {path: False for path in paths if _total_size(state / path) <= MAX_KEPT_FILE_BYTES}
    )


def _states_of_newest_kept_files(state: Path, kept: Mapping[str, tuple[int, int]]) -> list[PathState]:
    """The states of the newest files of `kept` that fit into a checkpoint."""
    left, chosen = MAX_KEPT_BYTES, []
    for path, (size, _) in sorted(kept.items(), key=lambda each: -each[1][1]):
        if size <= left:
            chosen.append(path)
            left -= size
    return _states_of_kept_files(state, chosen)


def _backup_names(state: Path) -> list[str]:
    """The names in the vault, newest first."""
    backups = state / VAULT_FOLDER
    return (
        sorted(os.listdir(backups), key=lambda each: -(backups / each).lstat().st_mtime)
        if backups.is_dir()
        else []
    )


def _backup_states(state: Path, refs: Iterable[str]) -> list[PathState]:
    """The states of the given files and folders in the vault, up to the size limit."""
    left, chosen = MAX_KEPT_BYTES, dict[str, bool]()
    for ref in refs:
        if not {"", ".", ".."}.isdisjoint(ref.split("/")):
            continue  # the journal may come from the store, and be forged to name paths outside the vault
        size = _total_size(state / VAULT_FOLDER / ref)
        if size <= left:
            chosen[f"{VAULT_FOLDER}/{ref}"] = True
            left -= size
    return read_path_states(str(state), chosen)


def _total_size(path: Path) -> int:
    """The size of a file, or of all files in a folder; 0 if the path does not exist."""
    if path.is_dir() and not path.is_symlink():
        with FolderHandle.at(os.fspath(path)) as top:
            return sum(entry.found.st_size for entry in walk_tree(top))
    return path.lstat().st_size if os.path.lexists(path) else 0


def _newest_change_number(store: WorkspaceStore, name: str) -> int:
    from handtools.local_journal import open_local_journal

    journal = open_local_journal(store.files_folder(name), store.state_folder(name)).journal
    try:
        return journal.entries.paths_since(0)[0]
    finally:
        journal.close()
