"""Backup storage: files and folders moved out of a workspace so that undo can move them back.

They lie outside the workspace, on the same file system where there is a place for it: moving is then one rename,
however large the thing is. Elsewhere things are copied, and the copy is complete before anything is removed.

ADR 60.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handtools.core.changes import BackupRef
from handtools.core.errors import UsageError
from handtools.host.files import syscalls
from handtools.host.files.change_detection import content_mark, stat_mark, stat_mark_time
from handtools.host.files.file_locks import try_lock, unlock
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.tree_copy_and_removal import copy_tree, remove_tree
from handtools.host.files.whole_reads_and_writes import read_bytes_at

REPLACED_FILES_NAME, UPPER_LAYER_NAME = "before", "upper"
"""Names of subfolders of a backup item: the replaced files, and the upper layer of an overlay."""
OVERLAY_WORK_NAME = "work"
"""Name of the subfolder of a backup item that overlayfs needs as its work folder."""
MASK_LAYER_NAME = "masked"
"""Name of the subfolder of a backup item with empty files that an overlay puts over private ones."""
BACKUP_LOCK_NAME = "lock"
UNDELETABLE_PREFIX = "aside-"
"""Prefix given to the name of a backup item that could not be deleted, so that it is not tried again."""
_ITEM_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(slots=True)
class BackupItem:
    """A folder in the backups for the files that one command moves; it is in use while its lock is held."""

    name: str
    path: Path
    _lock: int | None

    def release(self) -> None:
        """Unlock the backup item: from then on clean-up may delete it, unless the journal names it."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            unlock(lock)


class FolderBackups:
    """Backups in a folder outside the workspace, one subfolder per item."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._device: int | None = None

    @property
    def folder(self) -> Path:
        """The path of the folder in which the backups are."""
        return self._folder

    def create_item(self) -> BackupItem:
        """Create and lock a new, empty backup item."""
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(8)
        path = self._folder / name
        path.mkdir(0o700)
        return BackupItem(name, path, try_lock(path / BACKUP_LOCK_NAME))

    def suits(self, device: int) -> bool:
        """Whether files of a device can be renamed into the backups and keep their times to the nanosecond."""
        if self._device is None:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._device = _device_with_ns_times(self._folder)
        return self._device == device

    def has(self, ref: str) -> bool:
        """Whether the backup named `ref` exists here, which means that it is not at its path in the workspace."""
        return os.path.lexists(self._path(ref))

    def backup_size(self, ref: str) -> int | None:
        """The size in bytes of the backed-up file `ref`; None when it is not here or no file."""
        found = self._found(ref)
        return found and found.st_size

    def is_expected_backup(self, held: BackupRef) -> bool:
        """Whether the backed-up file is the expected one, by its size and time or else by its digest.

        A file that was saved again unchanged before it was moved here gets its old modification time back.
        """
        found = self._found(held.ref)
        if found is None or stat_mark(found) == held.mark:
            return True
        if not held.content or found.st_size != held.bytes:
            return False
        with contextlib.suppress(OSError), self._path(held.ref).open("rb") as file:
            if content_mark(file.fileno()) == held.content:
                os.utime(file.fileno(), ns=(found.st_atime_ns, stat_mark_time(held.mark)))
                return True
        return False

    def _found(self, ref: str) -> os.stat_result | None:
        try:
            found = os.lstat(self._path(ref))
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def read(self, ref: str, most: int) -> bytes | None:
        """The bytes of the backed-up file `ref`; None when it is missing or has more than `most` bytes."""
        size = self.backup_size(ref)
        if size is None or size > most:
            return None
        with contextlib.suppress(OSError):
            return self._path(ref).read_bytes()
        return None

    def part(self, ref: str, start: int, size: int) -> bytes | None:
        """Up to `size` bytes of the backed-up file `ref` from offset `start`; None when it is missing."""
        if self._found(ref) is None:
            return None
        with contextlib.suppress(OSError), self._path(ref).open("rb") as file:
            return read_bytes_at(file.fileno(), size, start)
        return None

    def file_path(self, ref: str) -> str:
        """The path of the file that a backup is, for a program that reads it."""
        return os.fspath(self._path(ref))

    def take_out(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Move a backup to a name in a workspace folder; across file systems it is copied and also stays here."""
        with self._parent(ref) as (shelf, kept):
            if not _move_between(shelf, kept, folder, name):
                copy_tree(shelf, kept, folder, name)

    def put_in(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Move a file or folder from the workspace into the backups, replacing an interrupted copy."""
        with self._parent(ref, make=True) as (shelf, kept):
            remove_tree(shelf, kept)
            if not _move_between(folder, name, shelf, kept):
                partial = f".{secrets.token_hex(8)}"
                copy_tree(folder, name, shelf, partial)
                shelf.move_new(partial, kept)
                remove_tree(folder, name)

    def copy_in(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Copy a file or folder from the workspace into the backups."""
        with self._parent(ref, make=True) as (shelf, kept):
            copy_tree(folder, name, shelf, kept)

    def return_to_backups(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Undo `take_out`: move the file back into the backups, or delete the copy if the backup still exists."""
        if self.has(ref):
            remove_tree(folder, name)
        else:
            self.put_in(ref, folder, name)

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Delete a backup; no error when it is not here. With `erase`, a file's bytes are overwritten first."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(ref) as (shelf, kept):
            if erase:
                _overwrite(self._path(ref))
            remove_tree(shelf, kept)

    def delete_item_leftovers(self, name: str) -> None:
        """Delete the overlay layers of a backup item, and the item itself when nothing else is in it."""
        for part in (UPPER_LAYER_NAME, OVERLAY_WORK_NAME, MASK_LAYER_NAME):
            self.drop(f"{name}/{part}")
        with contextlib.suppress(OSError):
            if not {*os.listdir(self._folder / name)} - {BACKUP_LOCK_NAME}:
                self.drop(name)

    def delete_unwanted_items(self, wanted: Collection[str]) -> list[str]:
        """Delete the backup items that no process has locked and that are not in `wanted`.

        Returns a sentence for each item that could not be deleted: it is renamed so that it is not tried again.
        """
        told = []
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                lock = (
                    try_lock(self._folder / name / BACKUP_LOCK_NAME) if _ITEM_NAME.fullmatch(name) else None
                )
                if lock is None:
                    continue
                try:
                    self.drop(f"{name}/{OVERLAY_WORK_NAME}" if name in wanted else name)
                except (OSError, RecursionError) as problem:
                    told.append(self._set_aside(name, problem))
                finally:
                    unlock(lock)
        return told

    def _set_aside(self, name: str, problem: Exception) -> str:
        """Rename a backup item that could not be deleted, so that clean-up skips it.

        Returns a sentence about it.
        """
        aside = self._folder / f"{UNDELETABLE_PREFIX}{name}"
        with contextlib.suppress(OSError):
            os.rename(self._folder / name, aside)
        return f"What a command left in {aside} can't be removed ({problem}); it is set aside."

    def _path(self, ref: str) -> Path:
        if not ref or not {"", ".", ".."}.isdisjoint(ref.split("/")):
            raise UsageError(f"{ref[:80]!r} is not a name in the vault.")
        return self._folder / ref

    @contextmanager
    def _parent(self, ref: str, *, make: bool = False) -> Iterator[tuple[FolderHandle, str]]:
        """Open the folder that contains a backup, following no symbolic link.

        Yields its handle and the name in it.
        """
        *above, name = self._path(ref).relative_to(self._folder).parts
        if make:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
        folder = FolderHandle.at(os.fspath(self._folder))
        try:
            for part in above:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder.name_for_os(part), 0o700, dir_fd=folder.fd)
                inner = folder.child(part)
                folder.close()
                folder = inner
            yield folder, name
        finally:
            folder.close()


def _move_between(source: FolderHandle, old: str, target: FolderHandle, new: str) -> bool:
    """Rename between two open folders; False when they are on different file systems."""
    try:
        _rename(source, old, target, new)
    except PermissionError:
        # A folder's own entry for what is above it changes too: it has to be writable for that moment.
        found = source.stat(old)
        if not stat.S_ISDIR(found.st_mode):
            raise
        mode = stat.S_IMODE(found.st_mode)
        source.set_mode(old, mode | 0o700)
        _rename(source, old, target, new)
        target.set_mode(new, mode)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _rename(source: FolderHandle, old: str, target: FolderHandle, new: str) -> None:
    old, new = source.name_for_os(old), target.name_for_os(new)
    try:
        syscalls.rename_no_replace(source.fd, old, new, into=target.fd)
    except syscalls.SyscallUnsupported:
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=target.fd, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new, src_dir_fd=source.fd, dst_dir_fd=target.fd)


def _device_with_ns_times(folder: Path) -> int:
    """The device number of a folder; -1 when its file system does not keep times to the nanosecond."""
    odd = time.time_ns() | 1
    with tempfile.TemporaryFile(dir=folder) as file:
        if os.utime not in os.supports_fd:
            return -1
        os.utime(file.fileno(), ns=(odd, odd))
        found = os.fstat(file.fileno())
        return found.st_dev if found.st_mtime_ns == odd else -1


def _overwrite(path: Path) -> None:
    """Overwrite a file's bytes before it is deleted, unless the file has other hard links."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            with path.open("r+b") as file:
                for start in range(0, found.st_size, 1 << 20):
                    file.write(bytes(min(1 << 20, found.st_size - start)))
                file.flush()
                os.fsync(file.fileno())
