"""Store what a workspace has gained in its log, and put it together again from that. ADR 240, 242, 243."""

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
    path_states,
)
from handtools.fleet.workspaces import BASE_SUFFIX, WorkspaceRecord, WorkspaceStore
from handtools.host.files.folder_handle import FolderHandle, walk_tree
from handtools.runtime.journal import Journal
from handtools.runtime.journal.database import JournalPosition, write_copied_journal

logger = logging.getLogger("handtools")
CHECKPOINT_SEGMENTS, MOST_SEGMENTS = 64, 256
"""After how many segments a checkpoint is made: if they are twice as large as the last one, and anyway."""
MOST_KEPT_FILE_BYTES = 32 << 20
MOST_KEPT_BYTES = 64 << 20
"""How much of a change's old bytes is stored, and how much of outputs and old bytes in a checkpoint, each."""
GROWING_OUTPUT_BYTES = 256 << 10
"""A larger output that is still being written is stored when it has doubled, and not after each call."""
_MOST_READ_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class ShippedPosition:
    """How far the log of a workspace goes."""

    number: int = 0
    """How many segments it has."""
    journal: JournalPosition = field(default_factory=JournalPosition)
    entry: int = 0
    """The newest change that is in it."""
    kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The kept files that are in it, with size and time."""
    checkpoint: int = 0
    """How many segments the newest checkpoint stands for."""
    checkpoint_bytes: int = 0
    bytes_since: int = 0
    """The bytes of all segments since the checkpoint."""
    fences: frozenset[int] = frozenset()
    """Segments since the checkpoint with which hosts took the workspace over."""


@dataclass(frozen=True, slots=True)
class RecoveredWorkspace:
    """A workspace that was put together from its log."""

    record: WorkspaceRecord
    shipped: ShippedPosition


def ship_workspace(
    log: LogStore,
    store: WorkspaceStore,
    name: str,
    *,
    journal: Journal,
    done: ShippedPosition,
    writer: str,
    is_writing: bool = False,
) -> ShippedPosition:
    """Append to the log what it does not have yet; returns how far it goes then. Nobody may be changing files.

    `is_writing` tells whether a job still writes its output. Raises `SegmentTaken` when another host has gone on
    with the log, `StorageFault` when it can't be stored now.
    """
    try:
        return _shipped(log, store, name, journal=journal, done=done, writer=writer, is_writing=is_writing)
    except OSError as error:
        raise StorageFault(
            f"What workspace {name} has gained can't be read for its log: {error.strerror or error}.",
            hint="Send the same call again later: it is not run twice.",
        ) from error


def _shipped(
    log: LogStore,
    store: WorkspaceStore,
    name: str,
    *,
    journal: Journal,
    done: ShippedPosition,
    writer: str,
    is_writing: bool,
) -> ShippedPosition:
    state, root = store.state(name), str(store.root(name))
    copy = journal.copied_since(done.journal)
    kept = _kept_files(state, done.kept if is_writing else {})
    if copy.is_empty and kept == done.kept:
        return done
    entry, paths = journal.entries.paths_since(done.entry)
    refs = journal.entries.refs_since(done.entry)
    changed = [path for path in {**done.kept, **kept} if done.kept.get(path) != kept.get(path)]
    beside = [*_kept_states(state, changed), *_backup_states(state, refs)]
    packed = Segment.of(copy, path_states(root, paths), beside, writer).pack()
    try:
        log.append(name, done.number, packed)
    except SegmentTaken:
        stored = log.segment(name, done.number)
        if stored is None or Segment.unpack(stored, with_data=False).writer != writer:
            raise
        # An earlier attempt of ours was stored although nobody said so. It is a beginning of what we have now: the
        # journal is stored whole once more behind it, with all paths since the last segment that we knew of.
        copy = journal.copied_since(JournalPosition())
        packed = Segment.of(copy, path_states(root, paths), beside, writer).pack()
        log.append(name, done.number + 1, packed)
        done = replace(done, number=done.number + 1, bytes_since=done.bytes_since + len(stored))
    return replace(
        done,
        number=done.number + 1,
        journal=copy.position,
        entry=entry,
        kept=kept,
        bytes_since=done.bytes_since + len(packed),
    )


def is_checkpoint_due(done: ShippedPosition) -> bool:
    """Whether so much was stored since the last checkpoint that a new one pays."""
    since = done.number - done.checkpoint
    grown = done.bytes_since >= 2 * done.checkpoint_bytes
    return since >= MOST_SEGMENTS or (since >= CHECKPOINT_SEGMENTS and grown)


def store_checkpoint(
    log: LogStore, store: WorkspaceStore, name: str, *, journal: Journal, done: ShippedPosition, writer: str
) -> ShippedPosition:
    """Store one object that stands for all segments so far, and delete those. Nobody may be changing files.

    It is for the log alone: if it can't be done now, the next call tries again.
    """
    state = store.state(name)
    beside = [*_newest_kept_states(state, done.kept), *_backup_states(state, _backups(state))]
    whole = journal.copied_since(JournalPosition())
    # The next segment has the whole journal, whether this is stored or only seems not to be: then none of its
    # frames is missing, and none is there twice.
    done = replace(done, journal=JournalPosition())
    try:
        packed = Segment.of(whole, tree_states(store, name), beside, writer).pack()
        log.put_checkpoint(name, done.number, packed)
        # A fence stays: it is what a host that was overtaken long ago finds in the place of its next segment.
        numbers = set(range(done.checkpoint, done.number)) - done.fences
        log.delete_segments(name, sorted(numbers), done.checkpoint)
    except HandtoolsError as problem:
        logger.warning("The log of workspace %s can't be shortened now: %s", name, problem)
        return done
    return replace(
        done,
        checkpoint=done.number,
        checkpoint_bytes=len(packed),
        bytes_since=0,
        fences=frozenset(),
    )


def tree_states(store: WorkspaceStore, name: str) -> list[PathState]:
    """All paths of a workspace that are not as in its template."""
    record = store.get(name)
    template = os.fspath(store.templates.get(record.template).tree)
    found = store.differences_from(name, template, ())
    return path_states(str(store.root(name)), {each.path: False for each in found})


def store_fork_base(
    log: LogStore, store: WorkspaceStore, name: str, *, done: ShippedPosition, writer: str
) -> None:
    """Store what forks of a workspace begin with that are made now: its log may be shortened later."""
    log.put_base(name, done.number, Segment(None, b"", tuple(tree_states(store, name)), writer).pack())


def recover_workspace(
    store: WorkspaceStore, log: LogStore, name: str, head: LogHead, *, writer: str
) -> RecoveredWorkspace | None:
    """Put a workspace together from its template and its log, whose head was read; None if it was removed.

    Whoever had it before can store nothing more from then on.
    """
    read = _take_over(log, name, writer)
    if read is None:
        return None
    for left in (name, name + BASE_SUFFIX):
        # Another host went on with it and it has come back, or somebody was stopped while they did this.
        store.remove(left)
    if not store.templates.has(head.template):
        log.fetch_template(head.template, store.templates)
    try:
        record = (
            _made_fork(store, log, name, head)
            if head.parent
            else store.create(head.template, name=name, tenant=head.tenant)
        )
        _restore(store, name, head, read)
        entry, kept = _newest_entry(store, name), _kept_files(store.state(name), {})
    except OSError as error:
        store.remove(name)
        raise StorageFault(
            f"Workspace {name} can't be put together from its log: {error.strerror or error}.",
            hint="Make room or have the disk looked at, then try again.",
        ) from error
    except HandtoolsError:
        store.remove(name)  # nobody is to find half of it
        raise
    # What is recorded from here on begins with a whole copy: this file's own log has other salts.
    return RecoveredWorkspace(record, replace(read.position, entry=entry, kept=kept))


def _restore(store: WorkspaceStore, name: str, head: LogHead, read: "_ReadLog") -> None:
    """Bring a workspace from what it began with to the end of its log."""
    state, root = str(store.state(name)), str(store.root(name))
    if read.has_checkpoint and head.parent:
        # A checkpoint says what is not as in the template; a path that the fork has put back is not in it.
        said = {each.path for each in read.listed[0].paths}
        template = os.fspath(store.templates.get(head.template).tree)
        undone = {each.path: True for each in tree_states(store, name) if each.path not in said}
        apply_path_states(root, path_states(template, undone))
    copies: list[tuple[bytes | None, bytes]] = []
    with (
        PathRestore(root, [step.paths for step in read.listed]) as files,
        PathRestore(state, [step.kept for step in read.listed]) as beside,
    ):
        for number, packed in enumerate(read.packed):
            step = Segment.unpack(packed)
            files.write(number, step.paths)
            beside.write(number, step.kept)
            if step.database is not None:
                copies.clear()
            copies.append((step.database, step.log))
    if copies and copies[0][0] is not None:
        write_copied_journal(os.path.join(state, "journal.sqlite"), copies)


@dataclass(frozen=True, slots=True)
class _ReadLog:
    """A log to its end, which is a fence of the reader's."""

    packed: list[bytes]
    """The newest checkpoint, if there is one, and the segments from there on."""
    listed: list[Segment]
    """The same without their data: no more than one at a time is unpacked."""
    has_checkpoint: bool
    position: ShippedPosition


def _take_over(log: LogStore, name: str, writer: str) -> _ReadLog | None:
    """Read a log, and end it with a fence; None if the workspace was removed.

    Who has the workspace may be storing a checkpoint and deleting segments meanwhile. If a number was free because
    its segment was deleted, there is a newer checkpoint, stored before the deletion: then it is read again.
    """
    for _ in range(_MOST_READ_ATTEMPTS):
        objects = log.objects(name)
        if objects.is_ended:
            return None
        first = objects.newest_checkpoint
        checkpoint = log.checkpoint(name, first) if first else None
        if first and checkpoint is None:
            continue
        end = first
        while end in objects.segments and end - first < MAX_LOG_SEGMENTS:
            end += 1
        packed = log.segments(name, range(first, end))
        taken = None if None in packed else _fenced(log, name, end, writer)
        if taken is None or log.objects(name).newest_checkpoint != first:
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


def _fenced(log: LogStore, name: str, number: int, writer: str) -> list[bytes] | None:
    """Put a fence behind the last segment; what came from `number` on, with it. None if something is gone."""
    fence, came = Segment.fence(writer).pack(), list[bytes]()
    while len(came) < MAX_LOG_SEGMENTS:
        try:
            log.append(name, number + len(came), fence)
        except SegmentTaken:
            stored = log.segment(name, number + len(came))
            if stored is None:
                return None
            came.append(stored)
        else:
            return [*came, fence]
    return None


def _made_fork(store: WorkspaceStore, log: LogStore, name: str, head: LogHead) -> WorkspaceRecord:
    """A fork as it began."""
    packed = log.base(head.parent, head.segment)
    if packed is None:
        raise NotFound(f"What workspace {name} began with is not stored any more.", hint="Fork anew.")
    base = store.create(head.template, name=name + BASE_SUFFIX, tenant=head.tenant)
    try:
        apply_path_states(str(store.root(base.id)), Segment.unpack(packed).paths)
        store.fork(base.id, names=[name])
    finally:
        store.remove(base.id)
    return store.set_parent(name, head.parent)


def _kept_files(state: Path, known: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The kept files with size and time; of those that grow, what is known, until there is much more."""
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


def _kept_states(state: Path, paths: Iterable[str]) -> list[PathState]:
    return path_states(
        str(state), {path: False for path in paths if _size(state / path) <= MOST_KEPT_FILE_BYTES}
    )


def _newest_kept_states(state: Path, kept: Mapping[str, tuple[int, int]]) -> list[PathState]:
    """The kept files that a checkpoint has room for, the newest first."""
    left, chosen = MOST_KEPT_BYTES, []
    for path, (size, _) in sorted(kept.items(), key=lambda each: -each[1][1]):
        if size <= left:
            chosen.append(path)
            left -= size
    return _kept_states(state, chosen)


def _backups(state: Path) -> list[str]:
    """All that lies in the vault, the newest first."""
    vault = state / VAULT_FOLDER
    return (
        sorted(os.listdir(vault), key=lambda each: -(vault / each).lstat().st_mtime)
        if vault.is_dir()
        else []
    )


def _backup_states(state: Path, refs: Iterable[str]) -> list[PathState]:
    """What was moved aside under some names, as far as it is not too much."""
    left, chosen = MOST_KEPT_BYTES, dict[str, bool]()
    for ref in refs:
        if not {"", ".", ".."}.isdisjoint(ref.split("/")):
            continue  # names come from the journal, and that from the store: this one is not in the vault
        size = _size(state / VAULT_FOLDER / ref)
        if size <= left:
            chosen[f"{VAULT_FOLDER}/{ref}"] = True
            left -= size
    return path_states(str(state), chosen)


def _size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; 0 if nothing is there."""
    if path.is_dir() and not path.is_symlink():
        with FolderHandle.at(os.fspath(path)) as top:
            return sum(each.facts.st_size for each in walk_tree(top))
    return path.lstat().st_size if os.path.lexists(path) else 0


def _newest_entry(store: WorkspaceStore, name: str) -> int:
    from handtools.local_journal import open_local_journal

    journal = open_local_journal(store.root(name), store.state(name)).journal
    try:
        return journal.entries.paths_since(0)[0]
    finally:
        journal.close()
