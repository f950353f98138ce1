"""Backup storage: files and folders moved out of a workspace so that undo can move them back.

They are kept outside the workspace, on the same file system if possible: moving a file or folder is then
one rename, however large it is. Otherwise it is copied, and the copy is complete before the original is
removed.
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
from handtools.host.files.folder_trees import copy_tree, remove_tree
from handtools.host.files.syscalls import read_bytes_at

REPLACED_FILES_NAME, UPPER_LAYER_NAME = "before", "upper"
"""Subfolders of a backup item: the replaced files, and the upper layer of an overlay."""
OVERLAY_WORK_NAME = "work"
"""Subfolder of a backup item that overlayfs needs as its work folder."""
MASK_LAYER_NAME = "masked"
"""Subfolder of a backup item with empty files that an overlay puts over private ones."""
BACKUP_LOCK_NAME = "lock"
UNDELETABLE_PREFIX = "aside-"
"""Prefix for the name of a backup item that could not be deleted, so that clean-up does not retry it."""
_ITEM_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(slots=True)
class BackupItem:
    """One folder in the backups, for the files that one command moves there. It is locked while in use."""

    name: str
    path: Path
    _lock: int | None

    def release(self) -> None:
        """Unlock the backup item. After that, clean-up may delete it unless the journal refers to it."""
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
        """The path of the backups folder."""
        return self._folder

    def create_item(self) -> BackupItem:
        """Create and lock a new, empty backup item."""
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(8)
        path = self._folder / name
        path.mkdir(0o700)
        return BackupItem(name, path, try_lock(path / BACKUP_LOCK_NAME))

    def suits(self, device: int) -> bool:
        """Whether files on a device can be moved into the backups by a rename and keep nanosecond times."""
        if self._device is None:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._device = _device_with_ns_times(self._folder)
        return self._device == device

    def has(self, ref: str) -> bool:
        """Whether the backup `ref` exists."""
        return os.path.lexists(self._path(ref))

    def backup_size(self, ref: str) -> int | None:
        """Return the size of the backed-up file `ref`; None if it is missing or not a regular file."""
        found = self._stat_regular_file(ref)
        return found and found.st_size

    def is_expected_backup(self, backup: BackupRef) -> bool:
        """Whether the backed-up file is the expected one, by its size and time, otherwise by its digest.

        If the digest matches but the time differs (the file was saved again unchanged), the time is
        restored. Also true if there is no regular file to check.
        """
        found = self._stat_regular_file(backup.ref)
        if found is None or stat_mark(found) == backup.mark:
            return True
        if not backup.content or found.st_size != backup.bytes:
            return False
        with contextlib.suppress(OSError), self._path(backup.ref).open("rb") as file:
            if content_mark(file.fileno()) == backup.content:
                os.utime(file.fileno(), ns=(found.st_atime_ns, stat_mark_time(backup.mark)))
                return True
        return False

    def _stat_regular_file(self, ref: str) -> os.stat_result | None:
        try:
            found = os.lstat(self._path(ref))
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def read(self, ref: str, most: int) -> bytes | None:
        """Return the bytes of the backed-up file `ref`; None if it is missing or exceeds `most` bytes."""
        size = self.backup_size(ref)
        if size is None or size > most:
            return None
        with contextlib.suppress(OSError):
            return self._path(ref).read_bytes()
        return None

    def part(self, ref: str, start: int, size: int) -> bytes | None:
        """Return up to `size` bytes of the backup `ref` from offset `start`; None if it is missing."""
        if self._stat_regular_file(ref) is None:
            return None
        with contextlib.suppress(OSError), self._path(ref).open("rb") as file:
            return read_bytes_at(file.fileno(), size, start)
        return None

    def file_path(self, ref: str) -> str:
        """Return the path of a backed-up file, for a program that reads it."""
        return os.fspath(self._path(ref))

    def take_out(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Move a backup to a name in a workspace folder; across file systems, copy it instead."""
        with self._open_parent_folder(ref) as (shelf, kept):
            if not _move_between(shelf, kept, folder, name):
                copy_tree(shelf, kept, folder, name)

    def put_in(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Move a file or folder from the workspace into the backups; an incomplete copy there is replaced."""
        with self._open_parent_folder(ref, make=True) as (shelf, kept):
            remove_tree(shelf, kept)
            if not _move_between(folder, name, shelf, kept):
                partial = f".{secrets.token_hex(8)}"
                copy_tree(folder, name, shelf, partial)
                shelf.move_new(partial, kept)
                remove_tree(folder, name)

    def copy_in(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Copy a file or folder from the workspace into the backups."""
        with self._open_parent_folder(ref, make=True) as (shelf, kept):
            copy_tree(folder, name, shelf, kept)

    def return_to_backups(self, ref: str, folder: FolderHandle, name: str) -> None:
        """Undo `take_out`: move the file back to the backups, or delete it if it is only a copy."""
        if self.has(ref):
            remove_tree(folder, name)
        else:
            self.put_in(ref, folder, name)

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Delete a backup if it exists. With `erase`, overwrite a file's bytes first."""
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            self._open_parent_folder(ref) as (shelf, kept),
        ):
            if erase:
                _overwrite_with_zeros(self._path(ref))
            remove_tree(shelf, kept)

    def delete_item_leftovers(self, name: str) -> None:
        """Delete the overlay layers of a backup item, and the item itself if nothing else is in it."""
        for part in (UPPER_LAYER_NAME, OVERLAY_WORK_NAME, MASK_LAYER_NAME):
            self.drop(f"{name}/{part}")
        with contextlib.suppress(OSError):
            if not {*os.listdir(self._folder / name)} - {BACKUP_LOCK_NAME}:
                self.drop(name)

    def delete_unwanted_items(self, wanted: Collection[str]) -> list[str]:
        """Delete the backup items that are not locked by any process and not in `wanted`.

        An item that can't be deleted is renamed so that it is not tried again. Returns a
        sentence about each of these.
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
        return f"Leftover files of a command in {aside} can't be deleted ({problem}) and were left there."

    def _path(self, ref: str) -> Path:
        if not ref or not {"", ".", ".."}.isdisjoint(ref.split("/")):
            raise UsageError(f"{ref[:80]!r} is not a valid name in the backup folder.")
        return self._folder / ref

    @contextmanager
    def _open_parent_folder(self, ref: str, *, make: bool = False) -> Iterator[tuple[FolderHandle, str]]:
        """Open the folder that contains a backup, without following symlinks.

        Yields the folder's handle and the backup's name in it.
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


def _move_between(source_handle: FolderHandle, old: str, target_handle: FolderHandle, new: str) -> bool:
    """Rename between two open folders; False if they are on different file systems."""
    try:
        _rename_no_replace(source_handle, old, target_handle, new)
    except PermissionError:
        # Moving a folder rewrites its `..` entry, so it has to be writable during the rename.
        found = source_handle.stat(old)
        if not stat.S_ISDIR(found.st_mode):
            raise
        mode = stat.S_IMODE(found.st_mode)
        source_handle.set_mode(old, mode | 0o700)
        _rename_no_replace(source_handle, old, target_handle, new)
        target_handle.set_mode(new, mode)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _rename_no_replace(
    source_handle: FolderHandle, old: str, target_handle: FolderHandle, new: str
) -> None:
    old, new = source_handle.name_for_os(old), target_handle.name_for_os(new)
    try:
        syscalls.rename_no_replace(source_handle.fd, old, new, into=target_handle.fd)
    except syscalls.SyscallUnsupported:
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=target_handle.fd, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new, src_dir_fd=source_handle.fd, dst_dir_fd=target_handle.fd)


def _device_with_ns_times(folder: Path) -> int:
    """Return the device number of a folder; -1 if its file system does not keep nanosecond timestamps."""
    odd = time.time_ns() | 1
    with tempfile.TemporaryFile(dir=folder) as file:
        if os.utime not in os.supports_fd:
            return -1
        os.utime(file.fileno(), ns=(odd, odd))
        found = os.fstat(file.fileno())
        return found.st_dev if found.st_mtime_ns == odd else -1


def _overwrite_with_zeros(path: Path) -> None:
    """Overwrite a file's bytes before it is deleted, unless the file has other hard links."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            with path.open("r+b") as file:
                for start in range(0, found.st_size, 1 << 20):
                    file.write(bytes(min(1 << 20, found.st_size - start)))
                file.flush()
                os.fsync(file.fileno())
