"""Open folders: operations relative to a directory fd. Symlinks are never followed."""

import contextlib
import errno
import os
import stat
from typing import Self

from handtools.core.changes import NodeKind
from handtools.core.errors import WrongKind
from handtools.host.files import syscalls

_READ_FLAGS = os.O_RDONLY | syscalls.OPEN_FLAGS
OPEN_FOLDER_TO_LIST_FLAGS = _READ_FLAGS | syscalls.DIRECTORY
"""Flags to open a folder for listing; needs read permission."""
OPEN_FOLDER_TO_ENTER_FLAGS = (syscalls.PATH_ONLY or _READ_FLAGS) | syscalls.DIRECTORY
"""Flags to open a folder for access to its entries; needs no read permission."""
NO_FOLLOW_FOLDER_FLAGS = OPEN_FOLDER_TO_ENTER_FLAGS | syscalls.NO_FOLLOW
_NOT_FILES = {
    "folder": ("a folder", "Use `list` to see its contents."),
    "link": ("a symlink", "Use the path it points to."),
}
"""For each kind that can't be read like a file: its name and the hint for the model."""
_DEVICE = ("a pipe, a socket or a device", "Use the path of a regular file.")
_NO_ENTRY_NAMES = frozenset({"", ".."})


class FolderHandle:
    """An open directory fd with operations on names in it; only a path on systems without `dir_fd`."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def at(cls, path: str, *, flags: int = OPEN_FOLDER_TO_ENTER_FLAGS) -> Self:
        """Open a folder by its absolute path, whose last part must not be a symlink."""
        if not syscalls.HAS_DIR_FD:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            return cls(None, path)
        return cls(os.open(path, flags | syscalls.NO_FOLLOW), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd is not None and self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def name_for_os(self, name: str) -> str:
        """Return a name as `os` calls need it: the name itself, or the full path if there is no `dir_fd`.

        Raises `OSError` for names that lead to another folder: `..` or a path.
        """
        if name in _NO_ENTRY_NAMES or "/" in name or os.sep in name:
            raise OSError(errno.EINVAL, "Not the name of an entry of this folder", name)
        return os.path.join(self.path, name) if self.fd is None else name

    def child(self, name: str, *, flags: int = OPEN_FOLDER_TO_ENTER_FLAGS) -> "FolderHandle":
        """Open a subfolder; refuses symlinks."""
        entry = self.name_for_os(name)
        if self.fd is None:
            return FolderHandle.at(entry)
        path = os.path.join(self.path, name)
        return FolderHandle(os.open(entry, flags | syscalls.NO_FOLLOW, dir_fd=self.fd), path)

    def own_stat(self) -> os.stat_result:
        """Stat the folder itself."""
        return os.stat(self.path) if self.fd is None else os.fstat(self.fd)

    def stat(self, name: str) -> os.stat_result:
        """Stat a name in this folder without following symlinks; raises `FileNotFoundError`."""
        return os.stat(self.name_for_os(name), dir_fd=self.fd, follow_symlinks=False)

    def find(self, name: str) -> os.stat_result | None:
        """Stat a name in this folder without following symlinks; None if it does not exist."""
        try:
            return os.stat(self.name_for_os(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Whether a name in this folder exists; false for a broken symlink."""
        return os.access(self.name_for_os(name), os.F_OK, dir_fd=self.fd)

    def writable(self, name: str) -> bool:
        """Whether this user has write permission for a name in this folder."""
        effective = os.access in os.supports_effective_ids
        return os.access(self.name_for_os(name), os.W_OK, dir_fd=self.fd, effective_ids=effective)

    def link_target(self, name: str) -> bytes:
        """Return the target of a symlink in this folder, as bytes."""
        return os.fsencode(os.readlink(self.name_for_os(name), dir_fd=self.fd))

    def open_file(self, name: str) -> int:
        """Open a regular file in this folder for reading and return its descriptor.

        Raises `WrongKind` if it is not a regular file.
        """
        found, fd = self.stat_and_open_file(name)
        if fd is None:
            raise not_a_file_error(found, name)
        return fd

    def stat_and_open_file(self, name: str) -> tuple[os.stat_result, int | None]:
        """Stat a name in this folder and open it if it is a regular file; otherwise the fd is None."""
        if syscalls.can_reopen_path_handles():
            flags = syscalls.PATH_ONLY | syscalls.NO_FOLLOW
            return reopen_for_reading(os.open(self.name_for_os(name), flags, dir_fd=self.fd))
        found = self.stat(name)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        fd = self._open_for_reading(name)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            return found, fd
        os.close(fd)
        return found, None

    def _open_for_reading(self, name: str) -> int:
        if os.name == "nt":
            return syscalls.open_replaceable(self.name_for_os(name))
        return os.open(self.name_for_os(name), _READ_FLAGS | syscalls.NO_FOLLOW, dir_fd=self.fd)

    def create_file(self, name: str, mode: int) -> int:
        """Create a new, empty file in this folder and open it for writing; fails if the name exists."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | syscalls.NO_FOLLOW | syscalls.OPEN_FLAGS
        return os.open(self.name_for_os(name), flags, mode, dir_fd=self.fd)

    def open_created_file(self, name: str) -> int:
        """Reopen a file that we created, for reading and writing; returns its descriptor."""
        flags = os.O_RDWR | syscalls.NO_FOLLOW | syscalls.OPEN_FLAGS
        return os.open(self.name_for_os(name), flags, dir_fd=self.fd)

    def create_link(self, name: str, target: bytes) -> None:
        """Create a symlink in this folder."""
        os.symlink(os.fsdecode(target), self.name_for_os(name), dir_fd=self.fd)

    def create_folder(self, name: str) -> None:
        """Create an empty folder in this folder."""
        os.mkdir(self.name_for_os(name), dir_fd=self.fd)

    def set_mode(self, name: str, mode: int) -> None:
        """Set the permission bits of a subfolder."""
        entry = self.name_for_os(name)
        if self.fd is None:
            os.chmod(entry, mode)
            return
        try:
            fd = os.open(entry, OPEN_FOLDER_TO_LIST_FLAGS | syscalls.NO_FOLLOW, dir_fd=self.fd)
        except PermissionError:
            self._set_unreadable_mode(entry, mode)
            return
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def _set_unreadable_mode(self, name: str, mode: int) -> None:
        """Set the permission bits of a subfolder that its owner can't read."""
        fd = os.open(name, NO_FOLLOW_FOLDER_FLAGS, dir_fd=self.fd)
        try:
            os.chmod(f"/proc/self/fd/{fd}", mode)
        finally:
            os.close(fd)

    def set_owner(self, name: str, like: os.stat_result) -> None:
        """Set the owner and group of an entry to those in a stat result."""
        if hasattr(os, "chown"):
            owner, group = like.st_uid, like.st_gid
            os.chown(self.name_for_os(name), owner, group, dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        """List the names of all entries in this folder."""
        if self.fd is None:
            return os.listdir(self.path)
        fd = os.open(".", OPEN_FOLDER_TO_LIST_FLAGS, dir_fd=self.fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def unlink(self, name: str) -> None:
        """Delete a file or a symlink in this folder."""
        os.unlink(self.name_for_os(name), dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Delete an empty subfolder."""
        os.rmdir(self.name_for_os(name), dir_fd=self.fd)

    def exchange(self, name: str, temporary: str, spare: str) -> None:
        """Swap a name and a temporary name; raises `SyscallUnsupported` if the system can't.

        Without RENAME_EXCHANGE, a hard link named `spare` keeps the old file while the new one is renamed
        over it. `name` exists at all times. If another program replaces the file at that very moment, one
        version is lost.
        """
        name, temporary, spare = map(self.name_for_os, (name, temporary, spare))
        try:
            syscalls.rename_exchange(self.fd, name, temporary)
        except syscalls.SyscallUnsupported:
            self._exchange_by_link(name, temporary, spare)

    def _exchange_by_link(self, name: str, temporary: str, spare: str) -> None:
        if os.name == "nt" and not (os.path.isdir(name) or os.path.isdir(temporary)):
            syscalls.replace_keeping_old(name, temporary, spare)
            os.rename(spare, temporary)
            return
        at = {"src_dir_fd": self.fd, "dst_dir_fd": self.fd}
        try:
            os.link(name, spare, **at, follow_symlinks=False)
        except (NotImplementedError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            # No hard link possible: a folder, another user's file, or a file system without hard links.
            raise syscalls.SyscallUnsupported from error
        try:
            os.replace(temporary, name, **at)
        except BaseException as error:
            os.unlink(spare, dir_fd=self.fd)
            if isinstance(error, NotADirectoryError | IsADirectoryError):
                raise syscalls.SyscallUnsupported from error  # a folder replaces a file
            raise
        os.rename(spare, temporary, **at)

    def replace(self, old: str, new: str) -> None:
        """Rename within this folder, replacing an existing file."""
        old, new = self.name_for_os(old), self.name_for_os(new)
        os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def move_new(self, old: str, new: str) -> None:
        """Rename within this folder; fails with EEXIST if the new name exists."""
        old, new = self.name_for_os(old), self.name_for_os(new)
        try:
            syscalls.rename_no_replace(self.fd, old, new)
        except syscalls.SyscallUnsupported:
            self._link_new(old, new)

    def _link_new(self, old: str, new: str) -> None:
        if os.name == "nt":
            os.rename(old, new)
            return
        try:
            os.link(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except (NotImplementedError, PermissionError):
            # No hard links here: check, then rename. Not atomic, but the best this system offers.
            with contextlib.suppress(FileNotFoundError):
                os.stat(new, dir_fd=self.fd, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
            os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        else:
            os.unlink(old, dir_fd=self.fd)

    def sync(self) -> None:
        """Fsync the folder, so that renames in it survive a crash.

        Does nothing on systems that can't do that.
        """
        if self.fd is None:
            return
        try:
            # `self.fd` is O_PATH: it works even for folders that can't be listed, but can't be synced. So
            # reopen the folder.
            fd = os.open(".", OPEN_FOLDER_TO_LIST_FLAGS, dir_fd=self.fd)
        except PermissionError:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(fd)


def kind_of_mode(mode: int) -> NodeKind | None:
    """Return the kind (file, folder, link) of an st_mode; None for pipes, sockets and devices."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else None


def reopen_for_reading(handle: int) -> tuple[os.stat_result, int | None]:
    """Stat an O_PATH descriptor and, if it is a regular file, open it for reading.

    Closes the O_PATH descriptor.
    """
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        return found, os.open(f"/proc/self/fd/{handle}", _READ_FLAGS)
    finally:
        os.close(handle)


def not_a_file_error(found: os.stat_result, name: str) -> WrongKind:
    """The `WrongKind` error for reading something that is not a regular file."""
    what, hint = _NOT_FILES.get(kind_of_mode(found.st_mode) or "", _DEVICE)
    return WrongKind(f"`{name}` is {what}, not a file.", hint=hint)


MAX_SYSCALL_PATH_BYTES = 4000
"""The most bytes of a path passed to the kernel at once; its limit is 4,096."""
_ODD_PARTS = frozenset({"", ".", ".."})
_MAX_RACES = 32
_NO_LINK_RESOLUTION = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS
_WALK_BY_HAND_ERRNOS = {errno.EXDEV, errno.EAGAIN, errno.EPERM, errno.ENOSYS, errno.ENAMETOOLONG}
"""openat2 errors after which a path is opened part by part: not available, blocked, or path too long."""


def join_path(above: str, name: str) -> str:
    """Join a relative folder path and a name with `/`; only the name if the path is empty."""
    return f"{above}/{name}" if above else name


def open_inner_folder(
    top_handle: FolderHandle, path: str, *, flags: int = OPEN_FOLDER_TO_ENTER_FLAGS
) -> FolderHandle:
    """Open a folder at a path below an open one; the empty path reopens the same folder."""
    if top_handle.fd is None:
        return open_folder_below(FolderHandle.at(top_handle.path), path, flags=flags)
    if not path:
        return FolderHandle(os.open(".", flags, dir_fd=top_handle.fd), top_handle.path)
    return open_folder_below(FolderHandle(os.dup(top_handle.fd), top_handle.path), path, flags=flags)


def open_folder_below(
    start_handle: FolderHandle, path: str, *, flags: int = OPEN_FOLDER_TO_ENTER_FLAGS, kernel: bool = True
) -> FolderHandle:
    """Open a folder below another, at any depth, without following symlinks (they raise ELOOP).

    Raises `OSError` for an absolute path or one with an empty part, `.` or `..`. Closes `start_handle`.
    """
    if path and not _ODD_PARTS.isdisjoint(path.split("/")):
        start_handle.close()
        raise OSError(errno.EINVAL, "Not a plain path below this folder", path)
    while path:
        with start_handle:
            names, rest = _leading_names(path)
            fd = None
            if names and kernel and syscalls.has_openat2():
                fd = open_beneath(start_handle, names, OPEN_FOLDER_TO_ENTER_FLAGS if rest else flags)
            if fd is None:
                names, _, rest = path.partition("/")
                inner_handle = open_child(
                    start_handle, names, OPEN_FOLDER_TO_ENTER_FLAGS if rest else flags
                )
            else:
                inner_handle = FolderHandle(fd, os.path.join(start_handle.path, names))
        start_handle, path = inner_handle, rest
    return start_handle


def _leading_names(path: str) -> tuple[str, str]:
    """Split a path into as many leading names as the kernel accepts in one call, and the rest."""
    encoded = os.fsencode(path)
    if len(encoded) <= MAX_SYSCALL_PATH_BYTES:
        return path, ""
    cut = max(encoded.rfind(b"/", 0, MAX_SYSCALL_PATH_BYTES + 1), 0)
    return os.fsdecode(encoded[:cut]), os.fsdecode(encoded[cut + 1 :])


def open_child(folder: FolderHandle, name: str, flags: int) -> FolderHandle:
    """Open a subfolder; raises ELOOP for a symlink, even where the system reports ENOTDIR."""
    try:
        return folder.child(name, flags=flags)
    except NotADirectoryError:
        if is_link(folder, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def open_beneath(root_handle: FolderHandle, path: str, flags: int) -> int | None:
    """Open a path below a folder with openat2, which refuses symlinks (ELOOP); None if unavailable."""
    if root_handle.fd is None:
        return None
    for _ in range(_MAX_RACES):
        try:
            return syscalls.openat2(root_handle.fd, path, flags, _NO_LINK_RESOLUTION)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # a concurrent rename in the path
                continue
            if error.errno in _WALK_BY_HAND_ERRNOS:
                return None
            raise
    return None


def is_link(folder: FolderHandle, name: str) -> bool:
    """Whether a name in a folder is a symlink."""
    found = folder.find(name)
    return found is not None and stat.S_ISLNK(found.st_mode)
