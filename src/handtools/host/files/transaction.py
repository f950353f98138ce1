"""File transactions: carry out all planned writes or none, and clean up after a crash.

New files are created next to their targets and synced before any target changes. Then the targets are
compared, put under lease and swapped with the new files, and the folders are synced. A displaced file is
deleted only after a last check: the lease has been in effect the whole time, so it also detects a writer
that opened the old file by name just before the swap. On any failure the earlier steps are rolled back in
reverse order.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from handtools.core.changes import Node
from handtools.core.errors import Busy, NotFound, StorageFault, ToolError
from handtools.core.files import PlannedWrite
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_handle import FolderHandle, kind_of_mode
from handtools.host.files.kernel_leases import LeasedFile, file_has_bytes
from handtools.host.files.os_errors import os_error_as_tool_error
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
MOST_LEASES = 64
"""The most files under lease at once; the rest of a large transaction are compared twice instead."""


def commit_steps(
    steps: Sequence[PlannedWrite],
    open_folder: Callable[[str], FolderHandle],
    vault: FolderBackups | None = None,
) -> None:
    """Carry out all planned writes or none: on failure, roll back the finished steps in reverse order."""
    handles = OpenFolders(open_folder)
    moves = _transaction_steps(steps, handles, vault)
    begun: list[TransactionStep] = []
    try:
        for move in moves:
            _open_parent(move.place)
            begun.append(move)
            _run_phase(move, move.begin)
            if len(begun) > MOST_LEASES:
                move.release()
        _commit_phases(moves, handles)
    except ToolError as error:
        left, error.unsettled = _roll_back(begun)
        if left:
            # A step that could not be rolled back did change a file, or another program changed it.
            error.message = _NOTHING_CHANGED.sub("", error.message)
        error.hint = " ".join([error.hint, *left]).strip()
        raise
    except BaseException:
        _roll_back(begun)
        raise
    finally:
        handles.close()


def _commit_phases(moves: Sequence[TransactionStep], handles: OpenFolders) -> None:
    for move in moves[:MOST_LEASES]:
        _run_phase(move, move.watch)
    for number, move in enumerate(moves):
        _run_phase(move, move.land)
        if number >= MOST_LEASES:
            move.release()
    _sync(moves, handles)
    for move in moves:
        _run_phase(move, move.recheck_old)
    for move in moves:
        _run_phase(move, move.settle)
    for move in reversed(moves):
        _run_phase(move, move.set_final_mode)
    if any(isinstance(move, RemoveFolder | ReplaceFolderByFile) for move in moves):
        _sync(moves, handles)


def _transaction_steps(
    steps: Sequence[PlannedWrite], handles: OpenFolders, vault: FolderBackups | None
) -> list[TransactionStep]:
    leaving: defaultdict[str, set[str]] = defaultdict(set)
    for step in steps if len(steps) > 1 else ():
        parent, _, name = step.change.path.rpartition("/")
        leaving[parent] |= {name, step.temporary}
    places = [StepTarget(handles, step.change.path, step.temporary, vault) for step in steps]
    return [_transaction_step(step, place, leaving) for step, place in zip(steps, places, strict=True)]


def _transaction_step(
    step: PlannedWrite, place: StepTarget, leaving: dict[str, set[str]]
) -> TransactionStep:
    before, after = step.change.before, step.change.after
    if before is None or before.kind != "folder" or before.held:
        if before is None and after is not None and after.kind == "folder" and not after.held:
            return CreateFolder(place, after)
        return PlaceFile(place, before, after)
    if after is not None and after.kind == "folder" and not after.held:
        return ChangeFolderMode(place, before, after)
    removing = RemoveFolder(place, before, leaving[place.path])
    return ReplaceFolderByFile(removing, PlaceFile(place, None, after)) if after else removing


def _open_parent(place: StepTarget) -> None:
    try:
        place.folder  # noqa: B018 — opened here so that the error can name a missing folder
    except FileNotFoundError:
        raise NotFound(
            f"There is no folder `{place.parent}`; nothing was written.", hint="Create it first."
        ) from None
    except OSError as error:
        raise os_error_as_tool_error(error, place.parent) from error


def _run_phase(move: TransactionStep, act: Callable[[], None]) -> None:
    try:
        act()
    except FileNotFoundError as error:
        raise stale_target_error(move.place) from error
    except OSError as error:
        raise os_error_as_tool_error(error, move.place.path) from error


def _sync(moves: Sequence[TransactionStep], handles: OpenFolders) -> None:
    try:
        handles.sync()
    except OSError as error:
        raise os_error_as_tool_error(error, moves[0].place.path) from error


def _roll_back(begun: Sequence[TransactionStep]) -> tuple[list[str], bool]:
    """Roll back steps; returns notes on those that remain, and whether any failed with an error."""
    kept, refused = [], False
    for move in reversed(begun):
        try:
            note = move.roll_back()
        except (OSError, StorageFault) as error:
            reason = error.strerror if isinstance(error, OSError) else error.message
            note = f"`{move.place.path}` could not be restored: {reason}. The next call tries again."
            refused = True
        if note:
            kept.append(note)
    return kept, refused


def clean_up_after_crash(place: StepTarget, before: Node | None, after: Node | None) -> str | None:
    """Delete a crashed step's temporary file if the journal has its bytes.

    Otherwise rename it to a visible name and return a sentence with that name.
    """
    folder, _, temporary = place.folder_and_names
    note = finish_swap(place)
    discard_unfinished(place)
    if folder.find(temporary) is None:
        return note
    known = next((node for node in (before, after) if _is_recorded(place, node)), None)
    if known is not None and known.held:
        return_unplaced(place, known)
    elif known or any(_is_unfinished(place, node) for node in (before, after)):
        if not discard_temporary(place):
            note = keep_beside_target(place)
    elif place.is_temporary_copy(after) or place.is_temporary_copy(before):
        place.remove_temporary()
    elif before is None:
        note = keep_beside_target(place)
    else:
        # Another program's file, displaced just before the crash: swap it back if the target is still our
        # file.
        note = undo_placement(place, before, after)
    folder.sync()
    return note


def _is_recorded(place: StepTarget, node: Node | None) -> bool:
    return node is not None and _is_at(place, place.temporary, node)


def _is_at(place: StepTarget, name: str, node: Node) -> bool:
    try:
        # Keep the mode of a file in the backups: it may be the only difference between old and new.
        alike = node if node.held else Node(node.kind, node.data)
        same = LeasedFile.take(place.folder, name, alike)
    except Busy:
        return False
    if same is not None:
        same.close()
    return same is not None


def _is_unfinished(place: StepTarget, node: Node | None) -> bool:
    """Whether the temporary file has only the beginning of the node's bytes, from an interrupted write."""
    found = place.folder.stat(place.temporary)
    if node is None or node.held or node.kind != "file" or kind_of_mode(found.st_mode) != "file":
        return False
    fd = place.folder.open_file(place.temporary)
    try:
        return file_has_bytes(fd, node.data[: found.st_size])
    finally:
        os.close(fd)
