"""Folder trees: walk, copy and delete them through directory fds. Symlinks are never followed.

Trees may be hostile: deeper than Python's recursion limit and longer than the kernel's path limit. So
these functions don't recurse; they keep paths, and only a few open fds.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import NamedTuple, Self

from handtools.core.changes import NodeKind
from handtools.host.files import syscalls
from handtools.host.files.folder_handle import (
    OPEN_FOLDER_TO_LIST_FLAGS,
    FolderHandle,
    join_path,
    kind_of_mode,
    open_child,
    open_inner_folder,
)

MAX_FOLDERS_KEPT_OPEN = 64
"""The most folders that a tree walk or a transaction keeps open."""
_SKIPPED_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}
"""Errors on which a walk skips a folder: deleted, no longer a folder, or no permission."""
_COPY_CHUNK_BYTES = 1 << 20
_COPY_SOURCE_FLAGS = os.O_RDONLY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW
_COPY_TARGET_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW


class TreeEntry(NamedTuple):
    """One file, symlink or folder found by a tree walk, with the open folder that contains it."""

    path: str
    folder: FolderHandle
    name: str
    found: os.stat_result

    @property
    def kind(self) -> NodeKind | None:
        """The entry's kind; None for pipes, sockets and devices."""
        return kind_of_mode(self.found.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a folder, not a symlink to one."""
        return stat.S_ISDIR(self.found.st_mode)

    @property
    def mode(self) -> int:
        """The entry's permission bits."""
        return stat.S_IMODE(self.found.st_mode)

    @property
    def proc_fd_path(self) -> str:
        """A path to the entry through `/proc/self/fd`, for calls that don't accept a directory fd."""
        return f"/proc/self/fd/{self.folder.fd}/{self.name}"

    def set_mode(self, mode: int) -> None:
        """Set the permission bits of a file or folder if they differ."""
        if mode == self.mode:
            return
        if self.is_folder:
            self.folder.set_mode(self.name, mode)
            return
        with open(self.folder.open_file(self.name), "rb") as file:
            os.fchmod(file.fileno(), mode)


class SubfolderCache:
    """Opens folders below a top folder by their relative paths and caches the most recent ones.

    A returned handle belongs to the cache, which closes it after opening `MAX_FOLDERS_KEPT_OPEN` others.
    """

    def __init__(self, top_handle: FolderHandle, *, flags: int = OPEN_FOLDER_TO_LIST_FLAGS) -> None:
        self._top_handle = top_handle
        self._flags = flags
        self._open: dict[str, FolderHandle] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()

    def folder(self, path: str) -> FolderHandle:
        """Return the cached handle of a relative path, or open it without following symlinks."""
        known = self._open.get(path)
        if known is not None:
            return known
        steps = [path]
        while steps[-1] and len(steps) < MAX_FOLDERS_KEPT_OPEN // 2 and steps[-1] not in self._open:
            steps.append(steps[-1].rpartition("/")[0])
        folder = self._open.get(steps[-1])
        if folder is None:
            folder = self._keep(
                steps[-1], open_inner_folder(self._top_handle, steps[-1], flags=self._flags)
            )
        for step in reversed(steps[:-1]):
            name = step.rpartition("/")[2]
            folder = self._keep(step, open_child(folder, name, self._flags))
        return folder

    def _keep(self, path: str, folder: FolderHandle) -> FolderHandle:
        self._open[path] = folder
        if len(self._open) > MAX_FOLDERS_KEPT_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return folder


def walk_tree(top_handle: FolderHandle, *, skipped: list[str] | None = None) -> Iterator[TreeEntry]:
    """Walk everything below a folder, each folder before its contents, without following symlinks.

    Folders that can't be opened are added to `skipped`.
    """
    waiting = [""]
    with SubfolderCache(top_handle) as subtree:
        while waiting:
            above = waiting.pop()
            try:
                folder = subtree.folder(above)
            except OSError as error:
                if error.errno not in _SKIPPED_ERRNOS or not above:
                    raise
                if skipped is not None:
                    skipped.append(above)
                continue
            for name in sorted(folder.names() if folder.fd is None else os.listdir(folder.fd)):
                found = folder.find(name)
                if found is not None:
                    path = join_path(above, name)
                    yield TreeEntry(path, folder, name, found)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(path)


def copy_tree(source_handle: FolderHandle, old: str, target_handle: FolderHandle, new: str) -> None:
    """Copy a file, symlink or tree with modes, times, owners, extended attributes, hard links and holes."""
    found = source_handle.stat(old)
    if not stat.S_ISDIR(found.st_mode):
        _copy_file_or_link(source_handle, old, target_handle, new, found)
        return
    os.mkdir(target_handle.name_for_os(new), 0o700, dir_fd=target_handle.fd)
    with ExitStack() as stack:
        there = stack.enter_context(SubfolderCache(stack.enter_context(source_handle.child(old))))
        here = stack.enter_context(SubfolderCache(stack.enter_context(target_handle.child(new))))
        paths = [""]
        for path in paths:  # grows while iterating
            paths += _copy_folder(there.folder(path), here.folder(path), path)
        # Innermost first: a folder becomes read-only only after its contents are complete.
        for path in reversed(paths):
            _copy_folder_metadata(there.folder(path), here.folder(path))


def _copy_folder(inner_handle: FolderHandle, copy_handle: FolderHandle, path: str) -> list[str]:
    """Copy the entries of one folder; returns the paths of its subfolders, which the caller copies next."""
    folders = []
    first: dict[int, str] = {}
    for name in inner_handle.names():
        found = inner_handle.stat(name)
        known = first.setdefault(found.st_ino, name) if found.st_nlink > 1 else name
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(copy_handle.name_for_os(name), 0o700, dir_fd=copy_handle.fd)
            folders.append(join_path(path, name))
        elif known != name and stat.S_ISREG(found.st_mode):
            os.link(
                copy_handle.name_for_os(known),
                copy_handle.name_for_os(name),
                src_dir_fd=copy_handle.fd,
                dst_dir_fd=copy_handle.fd,
            )
        else:
            _copy_file_or_link(inner_handle, name, copy_handle, name, found)
    return folders


def _copy_file_or_link(
    source_handle: FolderHandle, old: str, target_handle: FolderHandle, new: str, found: os.stat_result
) -> None:
    if stat.S_ISLNK(found.st_mode):
        target_handle.create_link(new, source_handle.link_target(old))
        with contextlib.suppress(OSError):
            target_handle.set_owner(new, found)
    elif stat.S_ISREG(found.st_mode):
        _copy_file(
            source_handle.fd,
            source_handle.name_for_os(old),
            target_handle.fd,
            target_handle.name_for_os(new),
        )


def _copy_folder_metadata(inner_handle: FolderHandle, copy_handle: FolderHandle) -> None:
    found = inner_handle.own_stat()
    there, here = (
        folder.path if folder.fd is None else folder.fd for folder in (inner_handle, copy_handle)
    )
    syscalls.copy_xattrs(there, here)
    with contextlib.suppress(OSError, AttributeError):  # Windows has no owners
        os.chown(here, found.st_uid, found.st_gid)
    os.chmod(here, stat.S_IMODE(found.st_mode))
    os.utime(here, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_file(source: int | None, old: str, target: int | None, new: str) -> None:
    reading = os.open(old, _COPY_SOURCE_FLAGS, dir_fd=source)
    try:
        found = os.fstat(reading)
        writing = os.open(new, _COPY_TARGET_FLAGS, 0o600, dir_fd=target)
        try:
            for start, end in _data_ranges(reading, found.st_size):
                while start < end and (
                    part := os.pread(reading, min(_COPY_CHUNK_BYTES, end - start), start)
                ):
                    start += os.pwrite(writing, part, start)  # noqa: PLW2901
            os.ftruncate(writing, found.st_size)
            syscalls.copy_xattrs(reading, writing)
            with contextlib.suppress(OSError):
                os.fchown(writing, found.st_uid, found.st_gid)
            os.fchmod(writing, stat.S_IMODE(found.st_mode))
            os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _data_ranges(fd: int, size: int) -> list[tuple[int, int]]:
    """Return the (start, end) ranges of a sparse file that contain data; the rest is holes."""
    found, end = [], 0
    try:
        while end < size:
            start = os.lseek(fd, end, os.SEEK_DATA)
            end = os.lseek(fd, start, os.SEEK_HOLE)
            found.append((start, end))
    except (OSError, AttributeError) as error:
        if getattr(error, "errno", None) != errno.ENXIO:  # ENXIO: only a hole up to the end
            return [(0, size)]
    return found


def remove_tree(folder: FolderHandle, name: str) -> None:
    """Delete a file, symlink or folder tree below an open folder; no error if it does not exist."""
    if _try_remove(folder, name):
        return
    _make_enterable(folder, name)
    with folder.child(name) as top, SubfolderCache(top) as subtree:
        paths = [""]
        for path in paths:  # grows while iterating
            paths += _empty_folder(subtree.folder(path), path)
        for path in reversed(paths[1:]):
            above, _, last = path.rpartition("/")
            subtree.folder(above).remove_folder(last)
    folder.remove_folder(name)


def empty_hostile_folder(folder: FolderHandle, *, most: int, but: Collection[str] = ()) -> None:
    """Delete everything in a folder, at any depth, even while another process writes to it.

    Entries named in `but` are kept. Subfolders are first moved up into the folder, so that paths stay short
    and never lead through another folder. Visits at most `most` folders, because another process may keep
    adding more; entries that can't be deleted remain.
    """
    waiting = [name for name in folder.names() if name not in but]
    for _ in range(most):
        if not waiting:
            return
        name = waiting.pop()
        with contextlib.suppress(OSError):
            if _try_remove(folder, name):
                continue
            _make_enterable(folder, name)
            with folder.child(name) as inside:
                for each in inside.names():
                    with contextlib.suppress(OSError):
                        if not _try_remove(inside, each):
                            _make_enterable(inside, each)
                            up = secrets.token_hex(8)
                            os.rename(each, up, src_dir_fd=inside.fd, dst_dir_fd=folder.fd)
                            waiting.append(up)
            folder.remove_folder(name)


def _empty_folder(inner_handle: FolderHandle, path: str) -> list[str]:
    """Delete a folder's files, symlinks and empty subfolders; returns the paths of the other subfolders."""
    left = [name for name in inner_handle.names() if not _try_remove(inner_handle, name)]
    for name in left:
        _make_enterable(inner_handle, name)
    return [join_path(path, name) for name in left]


def _try_remove(folder: FolderHandle, name: str) -> bool:
    """Delete a file, symlink or empty folder; False if the folder is not empty."""
    try:
        folder.unlink(name)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
    else:
        return True
    try:
        folder.remove_folder(name)
    except OSError:
        return False
    return True


def _make_enterable(folder: FolderHandle, name: str) -> None:
    """Give the owner full permission for a folder, so that its contents can be deleted."""
    mode = stat.S_IMODE(folder.stat(name).st_mode)
    if mode & 0o700 != 0o700:
        folder.set_mode(name, mode | 0o700)
