"""Folders: a directory handle and what can be done with the names in it, no link followed."""

import contextlib
import errno
import os
import stat
from typing import Self

from handtools.core.changes import Kind
from handtools.core.errors import WrongKind
from handtools.host import syscalls

_READ = os.O_RDONLY | syscalls.PLAIN
LISTED = _READ | syscalls.DIRECTORY
"""How a folder is opened to read its names; one that may be entered only can't be."""
ENTERED = (syscalls.PATH_ONLY or _READ) | syscalls.DIRECTORY
"""How a folder's handle is opened, and with it what is in the folder."""
FOLDER = ENTERED | syscalls.NO_FOLLOW
_NO_FILES = {
    "folder": ("a folder", "Look into it with `list`."),
    "link": ("a link", "Name what it points to."),
}
"""What can't be read like a file, and what to do instead."""
_DEVICE = ("a pipe, a socket or a device", "Name a regular file.")


class Folder:
    """An open directory; on machines without directory handles, its path."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def at(cls, path: str, *, flags: int = ENTERED) -> Self:
        """Open a folder by its absolute path, which may not end in a link."""
        if not syscalls.HANDLES:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            return cls(None, path)
        return cls(os.open(path, flags | syscalls.NO_FOLLOW), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the handle."""
        if self.fd is not None and self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def name(self, name: str) -> str:
        """A name in this folder, as the calls below take it."""
        return os.path.join(self.path, name) if self.fd is None else name

    def child(self, name: str, *, flags: int = ENTERED) -> "Folder":
        """Open a folder in this one."""
        path = os.path.join(self.path, name)
        if self.fd is None:
            return Folder.at(path)
        return Folder(os.open(name, flags | syscalls.NO_FOLLOW, dir_fd=self.fd), path)

    def own_stat(self) -> os.stat_result:
        """What the folder itself is."""
        return os.stat(self.path) if self.fd is None else os.fstat(self.fd)

    def stat(self, name: str) -> os.stat_result:
        """What the name itself is."""
        return os.stat(self.name(name), dir_fd=self.fd, follow_symlinks=False)

    def find(self, name: str) -> os.stat_result | None:
        """What the name itself is, or None."""
        try:
            return self.stat(name)
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Whether there is something of this name; a link to nothing is nothing."""
        return os.access(self.name(name), os.F_OK, dir_fd=self.fd)

    def writable(self, name: str) -> bool:
        """Whether this user may write to what the name stands for."""
        effective = os.access in os.supports_effective_ids
        return os.access(self.name(name), os.W_OK, dir_fd=self.fd, effective_ids=effective)

    def link_target(self, name: str) -> bytes:
        """Where a link points."""
        return os.fsencode(os.readlink(self.name(name), dir_fd=self.fd))

    def open_file(self, name: str) -> int:
        """Open a regular file for reading; nothing else is so much as touched."""
        found, fd = self.open_found(name)
        if fd is None:
            raise not_a_file(found, name)
        return fd

    def open_found(self, name: str) -> tuple[os.stat_result, int | None]:
        """What the name is; and, if that is a regular file, open for reading."""
        if syscalls.reopens():
            flags = syscalls.PATH_ONLY | syscalls.NO_FOLLOW
            return reopened(os.open(self.name(name), flags, dir_fd=self.fd))
        found = self.stat(name)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        fd = os.open(self.name(name), _READ | syscalls.NO_FOLLOW, dir_fd=self.fd)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            return found, fd
        os.close(fd)
        return found, None

    def create_file(self, name: str, mode: int) -> int:
        """Make a new, empty file and open it for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | syscalls.NO_FOLLOW | syscalls.PLAIN
        return os.open(self.name(name), flags, mode, dir_fd=self.fd)

    def open_made(self, name: str) -> int:
        """Open a file of our own for reading and writing."""
        flags = os.O_RDWR | syscalls.NO_FOLLOW | syscalls.PLAIN
        return os.open(self.name(name), flags, dir_fd=self.fd)

    def create_link(self, name: str, target: bytes) -> None:
        """Make a link."""
        os.symlink(os.fsdecode(target), self.name(name), dir_fd=self.fd)

    def create_folder(self, name: str) -> None:
        """Make an empty folder."""
        os.mkdir(self.name(name), dir_fd=self.fd)

    def set_mode(self, name: str, mode: int) -> None:
        """Set the permission bits of a folder."""
        if self.fd is None:
            os.chmod(self.name(name), mode)
            return
        try:
            fd = os.open(name, LISTED | syscalls.NO_FOLLOW, dir_fd=self.fd)
        except PermissionError:
            self._set_unreadable_mode(name, mode)
            return
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def _set_unreadable_mode(self, name: str, mode: int) -> None:
        """The same for a folder that its owner may not look into."""
        fd = os.open(name, FOLDER, dir_fd=self.fd)
        try:
            os.chmod(f"/proc/self/fd/{fd}", mode)
        finally:
            os.close(fd)

    def set_owner(self, name: str, like: os.stat_result) -> None:
        """Give a folder the owner and group that another had."""
        if hasattr(os, "chown"):
            owner, group = like.st_uid, like.st_gid
            os.chown(self.name(name), owner, group, dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        """The names in this folder."""
        if self.fd is None:
            return os.listdir(self.path)
        fd = os.open(".", LISTED, dir_fd=self.fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def unlink(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(self.name(name), dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self.name(name), dir_fd=self.fd)

    def exchange(self, one: str, other: str) -> None:
        """Swap two names in one moment; `Unsupported` where that can't be done."""
        syscalls.exchange(self.fd, self.name(one), self.name(other))

    def replace(self, old: str, new: str) -> None:
        """Rename over whatever is at the new name."""
        old, new = self.name(old), self.name(new)
        os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def move_new(self, old: str, new: str) -> None:
        """Rename, refusing with EEXIST to replace anything."""
        old, new = self.name(old), self.name(new)
        try:
            syscalls.move_new(self.fd, old, new)
        except syscalls.Unsupported:
            self._link_new(old, new)

    def _link_new(self, old: str, new: str) -> None:
        if os.name == "nt":
            os.rename(old, new)
            return
        try:
            os.link(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except (NotImplementedError, PermissionError):
            # No hard links here: the check and the rename are two moments, the best this machine has.
            with contextlib.suppress(FileNotFoundError):
                os.stat(new, dir_fd=self.fd, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
            os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        else:
            os.unlink(old, dir_fd=self.fd)

    def sync(self) -> None:
        """Make the names durable, where a folder can be synced."""
        if self.fd is None:
            return
        try:
            # The handle only names the folder, so that a folder we may enter but not list still works.
            fd = os.open(".", LISTED, dir_fd=self.fd)
        except PermissionError:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(fd)


def kind_of(mode: int) -> Kind | None:
    """The kind a mode stands for; None for pipes, sockets and devices."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else None


def reopened(handle: int) -> tuple[os.stat_result, int | None]:
    """What a path-only handle names; and, if that is a regular file, open for reading. Closes the handle."""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        return found, os.open(f"/proc/self/fd/{handle}", _READ)
    finally:
        os.close(handle)


def not_a_file(found: os.stat_result, name: str) -> WrongKind:
    """The refusal to read anything but a regular file."""
    what, hint = _NO_FILES.get(kind_of(found.st_mode) or "", _DEVICE)
    return WrongKind(f"`{name}` is {what}, not a file.", hint=hint)
