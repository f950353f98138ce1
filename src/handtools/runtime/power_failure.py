"""Restore files from the journal after a power failure.

A change whose bytes are all in the journal is recorded durably before it is made, and its files are not synced.
So a power failure may leave the file before the change, no file, or a part of the new one. The first call in
another boot compares the files of all entries since the last sync with the journal. A file in such a state gets
the recorded content. A file with any other content is the user's and stays.
"""

from collections.abc import Sequence

from anyio import to_thread

from handtools.core.changes import Change, Node, is_partial_copy, same_nodes
from handtools.core.errors import Busy, ToolError
from handtools.core.files import FileFacts, PlannedWrite
from handtools.runtime.journal import ChangeEntry, RecordedTouch
from handtools.runtime.workspace import Workspace

CHECK_LOCK = "\0files after a power failure"
CHECK_TIMEOUT_SECONDS, PATH_TIMEOUT_SECONDS = 30.0, 1.0
MAX_WRITE_SECONDS = 30.0
"""A partial file that was modified later than this after its change was recorded is the user's."""
RecordedWrite = tuple[PlannedWrite, float]
"""A write as the journal has it, and when it was recorded."""


async def restore_after_power_failure(workspace: Workspace) -> list[str]:
    """Check the files that were written in an earlier boot and not synced.

    Returns a sentence for each that was not as recorded, and for each call that was interrupted. If another call
    uses one of them, the next process checks again, and until then each written file is synced.
    """
    syncs = workspace.journal.file_syncs
    if syncs.recorded()[0] == workspace.boot:
        return []
    told: list[str] = []
    try:
        async with workspace.locks.hold([CHECK_LOCK], timeout=CHECK_TIMEOUT_SECONDS):
            boot, synced = syncs.recorded()
            if boot == workspace.boot:
                return []  # another process has checked the files in the meantime
            # Without a recorded boot, every file was synced before its call returned.
            if boot:
                await _restore_files(workspace, synced, told)
            syncs.record(workspace.boot, workspace.journal.entries.newest_finished())
    except Busy:
        pass
    return [sentence for sentence in told if sentence]


async def _restore_files(workspace: Workspace, synced: int, told: list[str]) -> None:
    entries = workspace.journal.entries
    newest_touches = {touch.path: touch.id for touch, _, _ in entries.touches_since(synced)}
    paths = sorted(newest_touches, key=lambda path: newest_touches[path])
    for path in paths:
        async with workspace.locks.hold([path], timeout=PATH_TIMEOUT_SECONDS):
            told.append(await to_thread.run_sync(_restore_path, workspace, path, synced))
    for entry in entries.open():
        touches = entries.touches(entry.id)
        # A moved file was synced, so its entry is recovered like that of any interrupted call.
        if touches and not any(map(_is_moved, touches)):
            async with workspace.locks.hold([min(touch.path for touch in touches)], timeout=0):
                told.append(await to_thread.run_sync(_close_entry, workspace, entry, touches))
    await to_thread.run_sync(workspace.files.sync, paths)


def _restore_path(workspace: Workspace, path: str, synced: int) -> str:
    try:
        writes = _writes_of_path(workspace, path, synced)
        return _restore(workspace, path, writes) if writes else ""
    except KeyError:
        return f"`{path}` can't be checked after a power failure, because the log has no content of it any more."
    except ToolError as problem:
        return f"`{path}` could not be checked after a power failure: {problem}"


def _writes_of_path(workspace: Workspace, path: str, synced: int) -> list[RecordedWrite]:
    """Return the unsynced writes of a path; none if a command has written the file since."""
    entries = workspace.journal.entries
    writes: list[RecordedWrite] = []
    for touch, at, coverage in entries.touches_since(synced, path):
        if _is_moved(touch) or coverage == "scan":
            writes.clear()
        else:
            writes.append((entries.planned_write(touch), at))
    return writes


def _is_moved(touch: RecordedTouch) -> bool:
    """Whether a touch moves a file to or from the backups, so that the journal may not have its bytes."""
    return any(node is not None and node.ref is not None for node in (touch.before, touch.after))


def _restore(workspace: Workspace, path: str, writes: Sequence[RecordedWrite]) -> str:
    files = workspace.files
    notes = [note for write, _ in writes if (note := files.sweep(write))]
    newest, found = writes[-1][0], files.node(path)
    after = newest.change.after
    if same_nodes(after, found):
        return " ".join(notes)
    if found is not None and not _is_left_by_power_failure(found, files.facts(path), writes):
        left = f"`{path}` is not as the last call left it before a power failure; it was not changed."
        return " ".join([left, *notes])
    files.perform([PlannedWrite(Change(path, found, after), newest.temporary)])
    return " ".join([f"`{path}` was restored from the log after a power failure.", *notes])


def _is_left_by_power_failure(
    node_found: Node, facts: FileFacts | None, writes: Sequence[RecordedWrite]
) -> bool:
    """Whether a file is as before one of the writes and untouched since, or a part of a recorded version."""
    if facts is None:
        return False
    earlier = [at for write, at in writes if same_nodes(write.change.before, node_found)]
    if earlier and (node_found.data or node_found.kind != "file"):
        # If someone has put the old content back, the file was changed after the write was recorded.
        return facts.changed <= max(earlier)
    return node_found.kind == "file" and any(
        node is not None
        and node.kind == "file"
        and node_found.data != node.data
        and is_partial_copy(node_found.data, node.data)
        and facts.modified <= at + MAX_WRITE_SECONDS
        for write, at in writes
        for node in (write.change.before, write.change.after)
    )


def _close_entry(workspace: Workspace, entry: ChangeEntry, touches: Sequence[RecordedTouch]) -> str:
    """Close an entry whose call may have returned: as done, unless none of its changes is in effect."""
    entries, files = workspace.journal.entries, workspace.files
    try:
        changes = [entries.planned_write(touch).change for touch in touches]
        is_done = any(same_nodes(change.after, files.node(change.path)) for change in changes)
    except (KeyError, ToolError):
        is_done = False
    if is_done:
        entries.finish(entry.id)
        return f"Call {entry.call_id} was interrupted by a power failure and is recorded as done."
    entries.void(entry.id)
    return f"Call {entry.call_id} was interrupted by a power failure and changed nothing."
