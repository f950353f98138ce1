"""Steps of a file transaction: create, replace or delete a file, symlink or folder atomically, or undo it.

The new file swaps names with the old one, so the displaced file can still be checked. If it is not the file
that was compared, or another program wrote to it in the meantime, the two are swapped back. No bytes are
deleted that were not compared. Hard links are broken on purpose: writing in place could change a file
outside the workspace.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection
from typing import Literal

from handtools.core.changes import Node
from handtools.core.errors import Busy, Stale, StorageFault, UsageError
from handtools.host.files import temporary_file
from handtools.host.files.backups import FolderBackups
from handtools.host.files.change_detection import is_stat_mark
from handtools.host.files.folder_handle import FolderHandle, kind_of_mode
from handtools.host.files.folder_trees import MAX_FOLDERS_KEPT_OPEN
from handtools.host.files.kernel_leases import LeasedFile, WriteLease
from handtools.host.files.syscalls import SyscallUnsupported, is_root

_NOT_EMPTY_ERRNOS = {errno.ENOTEMPTY, errno.EEXIST}


class OpenFolders:
    """Cache of open folders by path; a closed folder is reopened only if its inode is still the same."""

    def __init__(self, open_folder: Callable[[str], FolderHandle], *, synced: bool = True) -> None:
        self._open_folder = open_folder
        self.synced = synced
        """Whether new files are synced before they replace others."""
        self._open: dict[str, FolderHandle] = {}
        self._closed: dict[str, os.stat_result] = {}

    def folder(self, path: str) -> FolderHandle:
        folder = self._open.get(path)
        if folder is not None:
            return folder
        folder = self._open_folder(path)
        known = self._closed.pop(path, None)
        if known is not None and not os.path.samestat(known, folder.own_stat()):
            folder.close()
            raise OSError(errno.ENOENT, "another folder has that path now")
        self._open[path] = folder
        if len(self._open) > MAX_FOLDERS_KEPT_OPEN:
            self._close_oldest()
        return folder

    def _close_oldest(self) -> None:
        path = next(iter(self._open))
        with self._open.pop(path) as folder:
            self._closed[path] = folder.own_stat()

    def forget(self, path: str, *, tree: bool) -> None:
        """Drop the cached fd of a folder that is gone; with `tree`, also the fds of all folders below it.

        An empty folder that was removed does not need `tree`, which scans the whole cache.
        """
        gone = {path}
        if tree:
            gone |= {known for known in (*self._open, *self._closed) if known.startswith(f"{path}/")}
        for each in gone:
            self._closed.pop(each, None)
            if folder := self._open.pop(each, None):
                folder.close()

    def sync(self) -> None:
        """Fsync every folder that was opened, so that the renames survive a crash."""
        for path in [*self._open, *self._closed]:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # a folder that a step removed
                self.folder(path).sync()

    def close(self) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()


class StepTarget:
    """The target path of a step, the temporary name next to it, and the backups for files moved out."""

    __slots__ = ("_backups", "_open_folders", "name", "parent", "temporary")

    def __init__(
        self, open_folders: OpenFolders, path: str, temporary: str, backups: FolderBackups | None = None
    ) -> None:
        self._open_folders = open_folders
        self._backups = backups
        self.parent, _, self.name = path.rpartition("/")
        self.temporary = temporary

    @property
    def path(self) -> str:
        """The target's path, relative to the workspace."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def folder(self) -> FolderHandle:
        """The open folder that contains the target and the temporary name."""
        return self._open_folders.folder(self.parent)

    @property
    def synced(self) -> bool:
        """Whether a new file is synced before it replaces the old one."""
        return self._open_folders.synced

    @property
    def folder_and_names(self) -> tuple[FolderHandle, str, str]:
        """The open folder, the target's name and the temporary name."""
        return self._open_folders.folder(self.parent), self.name, self.temporary

    @property
    def backups(self) -> FolderBackups:
        """The backups; raises `UsageError` if there are none."""
        if self._backups is None:
            raise UsageError("There is no backup folder, so no file can be moved to the backups.")
        return self._backups

    def forget(self, *, tree: bool = False) -> None:
        """Drop the cached fd of the target, a folder that is gone; with `tree`, of all folders below it too."""
        self._open_folders.forget(self.path, tree=tree)

    def move_backup_to_temporary(self, node: Node) -> None:
        """Move a backup to the temporary name; raises `StorageFault` if the backup was changed."""
        assert node.held is not None
        if (
            node.kind == "file"
            and is_stat_mark(node.held.mark)
            and not self.backups.is_expected_backup(node.held)
        ):
            raise StorageFault(
                f"Another program changed the backup of `{self.path}`; nothing was changed.",
                hint="Write the file again, or restore another version of it.",
            )
        self.backups.take_out(node.held.ref, self.folder, self.temporary)

    def is_temporary_copy(self, node: Node | None) -> bool:
        """Whether the temporary file is only a copy, maybe incomplete, of a file in the backups."""
        return node is not None and node.held is not None and self.backups.has(node.held.ref)


class TransactionStep:
    """One step of a transaction. Each phase runs for all steps before the next phase begins."""

    def __init__(self, target: StepTarget) -> None:
        self.target = target

    def begin(self) -> None:
        """Phase 1: create the new file under its temporary name; a new folder is created in place."""

    def watch(self) -> None:
        """Phase 2: check that the old file is as planned (raises `Stale`) and take a lease on it."""

    def land(self) -> None:
        """Phase 3: move the new file to the target, displacing the old one."""

    def recheck_old(self) -> None:
        """Phase 4: check again that the old file was not changed; raises `Stale`."""

    def settle(self) -> None:
        """Phase 5: delete the old file, or move it into the backups."""

    def set_final_mode(self) -> None:
        """Phase 6, innermost folders first: remove permissions that were added only for the transaction."""

    def release(self) -> None:
        """Release the leases and close the files of this step."""

    def roll_back(self) -> str | None:
        """Roll back this step; returns a sentence if another program's change prevents that, even in part."""
        return None


class CreateFolder(TransactionStep):
    """Transaction step that creates a folder."""

    def __init__(self, target: StepTarget, node: Node) -> None:
        super().__init__(target)
        self._node = node
        self._made = False

    def begin(self) -> None:
        folder, name, _ = self.target.folder_and_names
        folder.create_folder(name)
        self._made = True
        if is_root():
            folder.set_owner(name, folder.own_stat())  # as root: give it to the owner of the parent folder
        if self._node.mode is not None:
            folder.set_mode(name, self._node.mode | stat.S_IRWXU)

    def set_final_mode(self) -> None:
        if self._node.mode is not None and self._node.mode & stat.S_IRWXU != stat.S_IRWXU:
            self.target.folder.set_mode(self.target.name, self._node.mode)

    def roll_back(self) -> str | None:
        if self._made:
            self.target.forget()
            try:
                self.target.folder.remove_folder(self.target.name)
            except OSError as error:
                if error.errno not in _NOT_EMPTY_ERRNOS:
                    raise
                return f"The folder `{self.target.path}` is not empty and was kept."
        return None


class ChangeFolderMode(TransactionStep):
    """Transaction step that changes the permission bits of a folder."""

    def __init__(self, target: StepTarget, before: Node, after: Node) -> None:
        super().__init__(target)
        self._before, self._after = before, after
        self._was: int | None = None

    def begin(self) -> None:
        found = _folder_found(self.target, self._before)
        if self._after.mode is not None:
            self._was = stat.S_IMODE(found.st_mode)
            self.target.folder.set_mode(self.target.name, self._after.mode | stat.S_IRWXU)

    def set_final_mode(self) -> None:
        if self._after.mode is not None and self._after.mode & stat.S_IRWXU != stat.S_IRWXU:
            self.target.folder.set_mode(self.target.name, self._after.mode)

    def roll_back(self) -> str | None:
        if self._was is not None:
            self.target.folder.set_mode(self.target.name, self._was)
        return None


class RemoveFolder(TransactionStep):
    """Transaction step that removes a folder after the other steps have removed its contents."""

    def __init__(self, target: StepTarget, node: Node, leaving: Collection[str]) -> None:
        super().__init__(target)
        self._node = node
        self._leaving = leaving
        self._removed: os.stat_result | None = None

    def watch(self) -> None:
        _folder_found(self.target, self._node)

    def recheck_old(self) -> None:
        with self.target.folder.child(self.target.name) as inside:
            if not set(inside.names()) <= set(self._leaving):
                raise _not_empty(self.target)

    def settle(self) -> None:
        found = _folder_found(self.target, self._node)
        self.target.folder.remove_folder(self.target.name)
        self.target.forget()
        self._removed = found

    def roll_back(self) -> str | None:
        if self._removed is None:
            return None
        folder, name, _ = self.target.folder_and_names
        with contextlib.suppress(FileExistsError):
            folder.create_folder(name)
            with contextlib.suppress(OSError):
                folder.set_owner(name, self._removed)
            folder.set_mode(name, stat.S_IMODE(self._removed.st_mode))
        return None


def stale_target_error(target: StepTarget) -> Stale:
    """The `Stale` error for a step whose target is not as planned."""
    return Stale(
        f"`{target.path}` has changed since this change was planned; nothing was written.",
        hint="Read it again and redo the change.",
    )


def _folder_found(target: StepTarget, node: Node) -> os.stat_result:
    found = target.folder.find(target.name)
    if found is None or kind_of_mode(found.st_mode) != "folder":
        raise stale_target_error(target)
    if node.mode is not None and node.mode != stat.S_IMODE(found.st_mode):
        raise stale_target_error(target)
    return found


def _not_empty(target: StepTarget) -> Stale:
    return Stale(f"The folder `{target.path}` is not empty; nothing was written.", hint="List it again.")


PlaceFilePhase = Literal["planned", "staged", "landed", "settled"]


class PlaceFile(TransactionStep):
    """Transaction step that writes, creates or deletes a file or a symlink."""

    def __init__(self, target: StepTarget, before: Node | None, after: Node | None) -> None:
        super().__init__(target)
        self._before, self._after = before, after
        self._state: PlaceFilePhase = "planned"
        self._displaced = False
        """Whether the old file is at the temporary name; False if the system can't swap names."""
        self._old: LeasedFile | None = None
        self._made: os.stat_result | None = None
        self._mode: int | None = None
        self._seen: Node | None = None

    def begin(self) -> None:
        self._open_old_file(self.target.folder, self.target.name)
        self.stage()
        if self._after is not None and self._after.kind == "folder":
            self.land()  # later steps may create files in it

    def stage(self) -> None:
        """Create the new file at the temporary name, or move it there from the backups."""
        if self._after is None:
            return
        self._state = "staged"
        like = self._old if self._old and self._old.node.kind == "file" else None
        if self._after.is_moved_from_backups:
            self._made = self._fetch_from_backups(self._after, like)
            return
        self._made = temporary_file.write_node_under_temporary_name(
            self.target.folder, self.target.temporary, self._after, like, synced=self.target.synced
        )

    def _fetch_from_backups(self, after: Node, leased: LeasedFile | None) -> os.stat_result:
        self.target.move_backup_to_temporary(after)
        if after.kind == "file" and leased is not None and after.mode is None:
            temporary_file.copy_metadata(self.target.folder, self.target.temporary, leased)
        return self.target.folder.stat(self.target.temporary)

    def _open_old_file(self, folder: FolderHandle, name: str) -> None:
        if self._before is not None:
            self._old = LeasedFile.open_if_same_stat(folder, name, self._before)
        if self._old is None and (self._before is not None or folder.find(name) is not None):
            raise stale_target_error(self.target)

    def watch(self) -> None:
        if self._before is None or self._state == "landed":
            return
        if self._old is None:
            self._open_old_file(self.target.folder, self.target.name)
        if self._old is None or not self._old.hold():
            self._old = None
            raise stale_target_error(self.target)

    def land(self) -> None:
        if self._state == "landed":
            return
        folder, name, temporary = self.target.folder_and_names
        if self._old is None or not self._old.held:
            self.watch()
        if self._before is None:
            folder.move_new(temporary, name)
        elif self._after is None:
            self._refuse_other()
            folder.move_new(name, temporary)
            self._displaced = True
        else:
            self._change_places()
        self._state = "landed"
        if self._before is not None and self._before.kind == "folder":
            self.target.forget(tree=True)
        if self._after is None and not self._is_old_file_intact():
            raise stale_target_error(self.target)

    def _change_places(self) -> None:
        # A file moved from the backups keeps its bytes, so a reader that opens it early sees nothing that a
        # rollback would revert: no write lease needed.
        is_file = (
            self._after is not None and self._after.kind == "file" and not self._after.is_moved_from_backups
        )
        veil = WriteLease(self.target.folder, self.target.temporary) if is_file else None
        try:
            self._refuse_other()
            goes_to_backups = self._before is not None and self._before.held is not None
            self._displaced = swap_with_temporary(self.target, keep=goes_to_backups)
            if self._displaced and not self._is_old_file_intact():
                self._return_at_once(veil)
                raise stale_target_error(self.target)
        finally:
            if veil:
                veil.lift()

    def _return_at_once(self, lease: WriteLease | None) -> None:
        """Swap the names back at once, because another program replaced the target just before the swap."""
        folder, name, temporary = self.target.folder_and_names
        swap_with_temporary(self.target)
        self._seen = self._after
        found = folder.find(temporary)
        if found and self._made and not os.path.samestat(found, self._made):
            # The other program replaced our file too: its newer version gets the name, as it would without
            # us.
            swap_with_temporary(self.target)
        elif lease:
            shown = lease.copy_for_waiting_readers(folder, name)
            self._seen = self._after if shown is None else Node("file", shown)

    def _refuse_other(self) -> None:
        if self._old is None or not self._old.is_at(self.target.folder, self.target.name):
            raise stale_target_error(self.target)

    def _is_old_file_intact(self) -> bool:
        """Whether the temporary name still refers to the compared file, and it was not written to since."""
        folder, _, temporary = self.target.folder_and_names
        return self._old is not None and self._old.is_at(folder, temporary) and self._old.intact()

    def recheck_old(self) -> None:
        if self._before is None:
            return
        folder, _, temporary = self.target.folder_and_names
        if self._old is None:
            if not self._displaced:
                return  # replaced by a rename because the system can't swap names: nothing left to check
            self._old = LeasedFile.take(folder, temporary, self._before)
            known = self._old is not None
        else:
            # The only check of a folder's tree: it is never deleted, only moved to the backups or back.
            known = not self._displaced or self._old.is_tree_unchanged_at(folder, temporary)
        if not known or not (
            self._is_old_file_intact() if self._displaced else self._old and self._old.intact()
        ):
            raise stale_target_error(self.target)

    def release(self) -> None:
        if self._old is not None:
            self._old.close()
            self._old = None

    def settle(self) -> None:
        if self._displaced:
            store_displaced(self.target, self._before)
        if self._after is not None and self._after.held and self._after.is_moved_from_backups:
            self.target.backups.drop(self._after.held.ref)  # exists only if it had to be copied
        if self._old is not None:
            self._mode = stat.S_IMODE(self._old.found.st_mode)
        self._state, self._displaced = "settled", False
        self.release()

    def roll_back(self) -> str | None:
        try:
            if not self._has_landed():
                return self._drop_made()
            if self._after is not None and self._after.kind == "folder":
                self.target.forget(tree=True)
            if self._before is not None and not self._displaced:
                self._make_again(self._before)
            return undo_placement(self.target, self._before, self._after)
        finally:
            self._state = "planned"
            self.release()

    def _drop_made(self) -> str | None:
        """Delete the new file, unless another program wrote to it while it was visible.

        In that case, returns a sentence that says where the file is kept.
        """
        if self._seen is not None:
            ours = _lease_again(self.target, self.target.temporary, self._seen)
            if ours is None:
                return keep_beside_target(self.target)
            ours.close()
        if self._after is not None and self._after.held:
            discard_unfinished(self.target)
        if self._state == "staged" and self.target.folder.find(self.target.temporary) is not None:
            return_unplaced(self.target, self._after)
        return None

    def _has_landed(self) -> bool:
        """Check on disk whether the rename happened: an interrupt may come before `_state` is set."""
        if self._state in {"landed", "settled"}:
            return True
        found = self.target.folder.find(self.target.temporary)
        if self._after is None:
            self._displaced = found is not None
            return self._displaced
        if self._made is None or (found is not None and os.path.samestat(found, self._made)):
            return False
        self._displaced = found is not None
        return True

    def _make_again(self, before: Node) -> None:
        """Restore the old file at the temporary name, from its recorded bytes or from the backups."""
        if before.held:
            self.target.move_backup_to_temporary(before)
            return
        mode = before.mode if before.mode is not None else self._mode
        old_node = Node(before.kind, before.data, mode)
        temporary_file.write_node_under_temporary_name(
            self.target.folder, self.target.temporary, old_node, self._old
        )


class ReplaceFolderByFile(TransactionStep):
    """Transaction step that replaces an empty folder with a file or a symlink."""

    def __init__(self, removal: RemoveFolder, placement: PlaceFile) -> None:
        super().__init__(placement.target)
        self._old, self._new = removal, placement

    def begin(self) -> None:
        self._new.stage()

    def watch(self) -> None:
        self._old.watch()

    def recheck_old(self) -> None:
        self._old.recheck_old()

    def settle(self) -> None:
        self._old.settle()
        self._new.land()
        self._new.settle()

    def roll_back(self) -> str | None:
        return self._new.roll_back() or self._old.roll_back()


def undo_placement(target: StepTarget, before: Node | None, after: Node | None) -> str | None:
    """Roll back a step whose new file is in place: swap the old file back from the temporary name.

    Returns a sentence if another program's change prevents that.
    """
    folder, name, temporary = target.folder_and_names
    if after is None:
        return _rename_back(target, before)
    ours = _lease_again(target, name, after)
    if ours is None:
        return _keep_theirs(target, before)
    try:
        if before is None:
            folder.move_new(name, temporary)
        elif not swap_with_temporary(target, keep=after.held is not None):
            return None
        untouched = ours.is_at(folder, temporary) and ours.intact()
    finally:
        ours.close()
    if untouched and return_unplaced(target, after):
        return None
    return _rename_back(target, None) if before is None else keep_beside_target(target)


def discard_temporary(target: StepTarget) -> bool:
    """Delete the file or empty folder at the temporary name; False if it is a folder that is not empty."""
    folder, _, temporary = target.folder_and_names
    found = folder.find(temporary)
    if found is None:
        return True
    if kind_of_mode(found.st_mode) != "folder":
        folder.unlink(temporary)
        return True
    try:
        folder.remove_folder(temporary)
    except OSError as error:
        if error.errno not in _NOT_EMPTY_ERRNOS:
            raise
        return False
    return True


def discard_unfinished(target: StepTarget) -> None:
    """Delete a large new file whose write was interrupted, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        target.folder.unlink(temporary_file.unfinished_name(target.temporary))


def store_displaced(target: StepTarget, node: Node | None) -> bool:
    """Move the replaced file from the temporary name into the backups, or delete it.

    False if it can't be deleted.
    """
    if node is None or node.held is None:
        return discard_temporary(target)
    target.backups.put_in(node.held.ref, target.folder, target.temporary)
    return True


def return_unplaced(target: StepTarget, node: Node | None) -> bool:
    """Delete the new file at the temporary name, or move it back into the backups if it came from there.

    False if it can't be deleted.
    """
    if node is None or node.held is None or not node.is_moved_from_backups:
        return discard_temporary(target)
    target.backups.return_to_backups(node.held.ref, target.folder, target.temporary)
    return True


def swap_with_temporary(target: StepTarget, *, keep: bool = False) -> bool:
    """Swap the files at the target and the temporary name.

    If the system can't swap names, replace the old file and return False. With `keep`, or for
    folders, use three renames instead, so that the old file is never lost.
    """
    folder, name, temporary = target.folder_and_names
    spare = temporary_file.spare_name(temporary)
    try:
        folder.exchange(name, temporary, spare)
    except SyscallUnsupported:
        kinds = {kind_of_mode(folder.stat(name).st_mode), kind_of_mode(folder.stat(temporary).st_mode)}
        if "folder" not in kinds and not keep:
            folder.replace(temporary, name)
            return False
        folder.move_new(name, spare)
        folder.move_new(temporary, name)
        folder.move_new(spare, temporary)
    return True


def finish_swap(target: StepTarget) -> str | None:
    """Complete or revert a `swap_with_temporary` that was interrupted by a crash.

    Returns a sentence if another program's change prevents that.
    """
    folder, name, temporary = target.folder_and_names
    spare = temporary_file.spare_name(temporary)
    old, at_name = folder.find(spare), folder.find(name)
    if old is None:
        return None
    if at_name is None:
        folder.move_new(spare, name)
    elif folder.find(temporary) is None:
        folder.move_new(spare, temporary)
    elif os.path.samestat(old, at_name):
        folder.unlink(spare)
    else:
        return _keep_beside_target(target, spare)
    return None


def _lease_again(target: StepTarget, name: str, node: Node) -> LeasedFile | None:
    try:
        return LeasedFile.take(target.folder, name, Node(node.kind, node.data, held=node.held))
    except (Busy, OSError):
        return None


def _rename_back(target: StepTarget, before: Node | None) -> str | None:
    folder, name, temporary = target.folder_and_names
    try:
        folder.move_new(temporary, name)
    except FileExistsError:
        return _keep_theirs(target, before)
    return None


def _keep_theirs(target: StepTarget, before: Node | None) -> str:
    """Leave another program's file at the target and return a note.

    The displaced file is kept next to it if its bytes are not recorded.
    """
    folder, _, temporary = target.folder_and_names
    if folder.find(temporary) is not None:
        old = before and _lease_again(target, temporary, before)
        if not old:
            return keep_beside_target(target)
        old.close()
        store_displaced(target, before)
    return f"`{target.path}` was changed by another program in the meantime and was left as it is."


def keep_beside_target(target: StepTarget) -> str:
    """Rename the file at the temporary name to a visible name next to the target.

    Returns a sentence that names it.
    """
    return _keep_beside_target(target, target.temporary)


def _keep_beside_target(target: StepTarget, hidden: str) -> str:
    kept = temporary_file.conflict_copy_name(target.name)
    target.folder.move_new(hidden, kept)
    return f"Another program changed `{target.path}` in the meantime; its version is kept as `{kept}`."
