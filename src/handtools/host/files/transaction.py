"""File transactions: carry out all planned writes or none, and clean up after a crash.

New files are created next to their targets and synced before any target changes. Then the targets are
compared with what was planned, put under lease and swapped with the new files, and the folders are synced.
If the journal has all bytes, nothing is synced: after a power failure the files are restored from there.
A displaced file is deleted only after a last check: the lease has been in effect the whole time, so it also
detects a writer that opened the old file by name just before the swap. On any failure the earlier steps are
rolled back in reverse order.
"""

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from handtools.core.changes import Node, is_partial_copy
from handtools.core.errors import Busy, NotFound, StorageFault, ToolError
from handtools.core.files import PlannedWrite
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_handle import FolderHandle, kind_of_mode
from handtools.host.files.folder_trees import remove_tree
from handtools.host.files.kernel_leases import LeasedFile
from handtools.host.files.os_errors import os_error_as_tool_error
from handtools.host.files.syscalls import read_bytes_at
from handtools.host.files.transaction_steps import (
    ChangeFolderMode,
    CreateFolder,
    OpenFolders,
    PlaceFile,
    RemoveFolder,
    ReplaceFolderByFile,
    StepTarget,
    TransactionStep,
    discard_temporary,
    discard_unfinished,
    finish_swap,
    keep_beside_target,
    return_unplaced,
    stale_target_error,
    undo_placement,
)

_NOTHING_CHANGED = re.compile(r"; nothing was written(?=\.)| Nothing was changed\.")
"""The part of an error message that says that nothing was changed; removed if a rollback failed."""
MAX_LEASES = 64
"""The most files under lease at once; further files of a transaction are compared twice instead."""


def commit_steps(
    writes: Sequence[PlannedWrite],
    open_folder: Callable[[str], FolderHandle],
    backups: FolderBackups | None = None,
    *,
    synced: bool = True,
) -> None:
    """Carry out all planned writes or none: on failure, roll back the finished steps in reverse order."""
    open_folders = OpenFolders(open_folder, synced=synced)
    moves = _transaction_steps(writes, open_folders, backups)
    transaction_steps: list[TransactionStep] = []
    try:
        for move in moves:
            _open_parent(move.target)
            transaction_steps.append(move)
            _run_phase(move, move.begin)
            if len(transaction_steps) > MAX_LEASES:
                move.release()
        _commit_phases(moves, open_folders)
    except ToolError as error:
        left, error.unsettled = _roll_back(transaction_steps, open_folders)
        if left:
            # A file did change: a step could not be rolled back, or another program changed the file.
            error.message = _NOTHING_CHANGED.sub("", error.message)
        error.hint = " ".join([error.hint, *left]).strip()
        raise
    except BaseException:
        _roll_back(transaction_steps, open_folders)
        raise
    finally:
        open_folders.close()


def _commit_phases(steps: Sequence[TransactionStep], open_folders: OpenFolders) -> None:
    for move in steps[:MAX_LEASES]:
        _run_phase(move, move.watch)
    for number, move in enumerate(steps):
        _run_phase(move, move.land)
        if number >= MAX_LEASES:
            move.release()
    _sync_folders(steps, open_folders)
    for move in steps:
        _run_phase(move, move.recheck_old)
    for move in steps:
        _run_phase(move, move.settle)
    for move in reversed(steps):
        _run_phase(move, move.set_final_mode)
    if any(isinstance(move, RemoveFolder | ReplaceFolderByFile) for move in steps):
        _sync_folders(steps, open_folders)


def _transaction_steps(
    writes: Sequence[PlannedWrite], open_folders: OpenFolders, backups: FolderBackups | None
) -> list[TransactionStep]:
    leaving: defaultdict[str, set[str]] = defaultdict(set)
    for step in writes if len(writes) > 1 else ():
        parent, _, name = step.change.path.rpartition("/")
        leaving[parent] |= {name, step.temporary}
    places = [StepTarget(open_folders, step.change.path, step.temporary, backups) for step in writes]
    return [_transaction_step(step, place, leaving) for step, place in zip(writes, places, strict=True)]


def _transaction_step(
    write: PlannedWrite, target: StepTarget, leaving: dict[str, set[str]]
) -> TransactionStep:
    before, after = write.change.before, write.change.after
    if before is None or before.kind != "folder" or before.held:
        if before is None and after is not None and after.kind == "folder" and not after.held:
            return CreateFolder(target, after)
        return PlaceFile(target, before, after)
    if after is not None and after.kind == "folder" and not after.held:
        return ChangeFolderMode(target, before, after)
    removal = RemoveFolder(target, before, leaving[target.path])
    return ReplaceFolderByFile(removal, PlaceFile(target, None, after)) if after else removal


def _open_parent(target: StepTarget) -> None:
    try:
        target.folder  # noqa: B018 — opened here so that the error can name a missing folder
    except FileNotFoundError:
        raise NotFound(
            f"There is no folder `{target.parent}`; nothing was written.", hint="Create it first."
        ) from None
    except OSError as error:
        raise os_error_as_tool_error(error, target.parent) from error


def _run_phase(step: TransactionStep, act: Callable[[], None]) -> None:
    try:
        act()
    except FileNotFoundError as error:
        raise stale_target_error(step.target) from error
    except OSError as error:
        raise os_error_as_tool_error(error, step.target.path) from error


def _sync_folders(steps: Sequence[TransactionStep], open_folders: OpenFolders) -> None:
    try:
        if open_folders.synced:
            open_folders.sync()
    except OSError as error:
        raise os_error_as_tool_error(error, steps[0].target.path) from error


def _roll_back(steps: Sequence[TransactionStep], open_folders: OpenFolders) -> tuple[list[str], bool]:
    """Roll back the steps; returns notes on those that could not be undone, and whether any raised an error."""
    kept, refused = [], False
    for move in reversed(steps):
        try:
            note = move.roll_back()
        except (OSError, StorageFault) as error:
            reason = error.strerror if isinstance(error, OSError) else error.message
            note = f"`{move.target.path}` could not be restored: {reason}. The next call tries again."
            refused = True
        if note:
            kept.append(note)
    if not open_folders.synced:
        # A power failure must not leave a new file in place after its change was reported as not made.
        with contextlib.suppress(OSError):
            open_folders.sync()
    return kept, refused


def clean_up_after_crash(
    write: PlannedWrite,
    open_folder: Callable[[str], FolderHandle],
    backups: FolderBackups | None = None,
) -> str | None:
    """Delete a crashed step's temporary file if the journal has its bytes.

    Otherwise rename it to a visible name and return a sentence with that name.
    """
    change, open_folders = write.change, OpenFolders(open_folder)
    try:
        target = StepTarget(open_folders, change.path, write.temporary, backups)
        return _clean_up(target, change.before, change.after)
    finally:
        open_folders.close()


def _clean_up(target: StepTarget, before: Node | None, after: Node | None) -> str | None:
    folder, _, temporary = target.folder_and_names
    note = finish_swap(target)
    discard_unfinished(target)
    if folder.find(temporary) is None:
        return note
    known = next((node for node in (before, after) if _temporary_matches_node(target, node)), None)
    if known is not None and known.held:
        return_unplaced(target, known)
    elif known or any(_is_unfinished(target, node) for node in (before, after)):
        if not discard_temporary(target):
            note = keep_beside_target(target)
    elif target.is_temporary_copy(after) or target.is_temporary_copy(before):
        remove_tree(folder, temporary)
    elif before is None:
        note = keep_beside_target(target)
    else:
        # Another program's file, displaced just before the crash: swap it back if the target is still our
        # file.
        note = undo_placement(target, before, after)
    folder.sync()
    return note


def _temporary_matches_node(target: StepTarget, node: Node | None) -> bool:
    return node is not None and _is_at(target, target.temporary, node)


def _is_at(target: StepTarget, name: str, node: Node) -> bool:
    try:
        # For a file in the backups, compare the mode too: it may be all that differs between old and new.
        alike = node if node.held else Node(node.kind, node.data)
        same = LeasedFile.take(target.folder, name, alike)
    except Busy:
        return False
    if same is not None:
        same.close()
    return same is not None


def _is_unfinished(target: StepTarget, node: Node | None) -> bool:
    """Whether the temporary file has only a part of the node's bytes, from an interrupted write."""
    found = target.folder.stat(target.temporary)
    if node is None or node.held or node.kind != "file" or kind_of_mode(found.st_mode) != "file":
        return False
    fd = target.folder.open_file(target.temporary)
    try:
        return is_partial_copy(read_bytes_at(fd, len(node.data) + 1, 0), node.data)
    finally:
        os.close(fd)
