"""Open folders: what can be done with the names in one, and walking everything below it. No link is followed.

Trees may be deeper than Python recurses and than the kernel takes as one path: walks keep paths and few handles.

ADR 114.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Self

from handtools.core.changes import NodeKind
from handtools.core.errors import WrongKind
from handtools.host.files import syscalls

_READ_FLAGS = os.O_RDONLY | syscalls.OPEN_FLAGS
LIST_FLAGS = _READ_FLAGS | syscalls.DIRECTORY
"""How a folder is opened to read its names; one that may be entered only can't be."""
ENTER_FLAGS = (syscalls.PATH_ONLY or _READ_FLAGS) | syscalls.DIRECTORY
"""How a folder's handle is opened, and with it what is in the folder."""
NO_FOLLOW_FOLDER_FLAGS = ENTER_FLAGS | syscalls.NO_FOLLOW
_NOT_FILES = {
    "folder": ("a folder", "Look into it with `list`."),
    "link": ("a link", "Name what it points to."),
}
"""What can't be read like a file, and what to do instead."""
_DEVICE = ("a pipe, a socket or a device", "Name a regular file.")


class FolderHandle:
    """An open directory; on machines without directory handles, its path."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def at(cls, path: str, *, flags: int = ENTER_FLAGS) -> Self:
        """Open a folder by its absolute path, which may not end in a link."""
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
        """Let go of the handle."""
        if self.fd is not None and self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def name(self, name: str) -> str:
        """A name in this folder, as the calls below take it."""
        return os.path.join(self.path, name) if self.fd is None else name

    def child(self, name: str, *, flags: int = ENTER_FLAGS) -> "FolderHandle":
        """Open a folder in this one."""
        path = os.path.join(self.path, name)
        if self.fd is None:
            return FolderHandle.at(path)
        return FolderHandle(os.open(name, flags | syscalls.NO_FOLLOW, dir_fd=self.fd), path)

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
        if syscalls.can_reopen_path_handles():
            flags = syscalls.PATH_ONLY | syscalls.NO_FOLLOW
            return reopen_for_reading(os.open(self.name(name), flags, dir_fd=self.fd))
        found = self.stat(name)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        fd = os.open(self.name(name), _READ_FLAGS | syscalls.NO_FOLLOW, dir_fd=self.fd)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            return found, fd
        os.close(fd)
        return found, None

    def create_file(self, name: str, mode: int) -> int:
        """Make a new, empty file and open it for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | syscalls.NO_FOLLOW | syscalls.OPEN_FLAGS
        return os.open(self.name(name), flags, mode, dir_fd=self.fd)

    def open_own_file(self, name: str) -> int:
        """Open a file of our own for reading and writing."""
        flags = os.O_RDWR | syscalls.NO_FOLLOW | syscalls.OPEN_FLAGS
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
            fd = os.open(name, LIST_FLAGS | syscalls.NO_FOLLOW, dir_fd=self.fd)
        except PermissionError:
            self._set_unreadable_mode(name, mode)
            return
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def _set_unreadable_mode(self, name: str, mode: int) -> None:
        """The same for a folder that its owner may not look into."""
        fd = os.open(name, NO_FOLLOW_FOLDER_FLAGS, dir_fd=self.fd)
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
        fd = os.open(".", LIST_FLAGS, dir_fd=self.fd)
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
        syscalls.rename_exchange(self.fd, self.name(one), self.name(other))

    def replace(self, old: str, new: str) -> None:
        """Rename over whatever is at the new name."""
        old, new = self.name(old), self.name(new)
        os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def move_new(self, old: str, new: str) -> None:
        """Rename, refusing with EEXIST to replace anything."""
        old, new = self.name(old), self.name(new)
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
            fd = os.open(".", LIST_FLAGS, dir_fd=self.fd)
        except PermissionError:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(fd)


def kind_of(mode: int) -> NodeKind | None:
    """The kind a mode stands for; None for pipes, sockets and devices."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else None


def reopen_for_reading(handle: int) -> tuple[os.stat_result, int | None]:
    """What a path-only handle names; and, if that is a regular file, open for reading. Closes the handle."""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return found, None
        return found, os.open(f"/proc/self/fd/{handle}", _READ_FLAGS)
    finally:
        os.close(handle)


def not_a_file(found: os.stat_result, name: str) -> WrongKind:
    """The refusal to read anything but a regular file."""
    what, hint = _NOT_FILES.get(kind_of(found.st_mode) or "", _DEVICE)
    return WrongKind(f"`{name}` is {what}, not a file.", hint=hint)


PATH_CHUNK_BYTES = 4000
"""As much of a path as is handed to the kernel at once: it takes no more than 4,096 bytes."""
MOST_KEPT_OPEN = 64
"""Folders that a walk keeps open."""
_MOST_RACES = 32
_NO_LINK_RESOLUTION = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_SYMLINKS
_WALK_BY_HAND_ERRNOS = {errno.EXDEV, errno.EAGAIN, errno.EPERM, errno.ENOSYS, errno.ENAMETOOLONG}
"""No such call, or one that is forbidden; a name of great length: then we go part by part."""
_SKIPPED_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}
"""A folder that is gone, is something else by now, or can't be looked into."""


class TreeEntry(NamedTuple):
    """Something below a folder, while the folder that holds it is open."""

    path: str
    folder: FolderHandle
    name: str
    facts: os.stat_result


class Subtree:
    """Folders below an open one, by their paths. Some are kept open: the next one asked for is mostly a step away.

    A folder that it gives is its own, and good until `MOST_KEPT_OPEN` others were asked for.
    """

    def __init__(self, top: FolderHandle, *, flags: int = LIST_FLAGS) -> None:
        self._top = top
        self._flags = flags
        self._open: dict[str, FolderHandle] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()

    def folder(self, path: str) -> FolderHandle:
        """The folder at a path, to which no link leads."""
        known = self._open.get(path)
        if known is not None:
            return known
        steps = [path]
        while steps[-1] and len(steps) < MOST_KEPT_OPEN // 2 and steps[-1] not in self._open:
            steps.append(steps[-1].rpartition("/")[0])
        folder = self._open.get(steps[-1])
        if folder is None:
            folder = self._keep(steps[-1], open_inner_folder(self._top, steps[-1], flags=self._flags))
        for step in reversed(steps[:-1]):
            name = step.rpartition("/")[2]
            folder = self._keep(step, open_child(folder, name, self._flags))
        return folder

    def _keep(self, path: str, folder: FolderHandle) -> FolderHandle:
        self._open[path] = folder
        if len(self._open) > MOST_KEPT_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return folder


def walk_tree(top: FolderHandle) -> Iterator[TreeEntry]:
    """All that is in a folder and in those below it, each folder before what it holds."""
    waiting = [""]
    with Subtree(top) as subtree:
        while waiting:
            above = waiting.pop()
            try:
                folder = subtree.folder(above)
            except OSError as error:
                if error.errno not in _SKIPPED_ERRNOS or not above:
                    raise
                continue
            for name in sorted(folder.names() if folder.fd is None else os.listdir(folder.fd)):
                facts = folder.find(name)
                if facts is not None:
                    path = join_path(above, name)
                    yield TreeEntry(path, folder, name, facts)
                    if stat.S_ISDIR(facts.st_mode):
                        waiting.append(path)


def join_path(above: str, name: str) -> str:
    """The path of a name in a folder."""
    return f"{above}/{name}" if above else name


def open_inner_folder(top: FolderHandle, path: str, *, flags: int = ENTER_FLAGS) -> FolderHandle:
    """Open a folder below another that stays open; for the other itself, once more."""
    if top.fd is None:
        return open_folder_below(FolderHandle.at(top.path), path, flags=flags)
    if not path:
        return FolderHandle(os.open(".", flags, dir_fd=top.fd), top.path)
    return open_folder_below(FolderHandle(os.dup(top.fd), top.path), path, flags=flags)


def open_folder_below(
    start: FolderHandle, path: str, *, flags: int = ENTER_FLAGS, kernel: bool = True
) -> FolderHandle:
    """Open a folder below another, however deep, no link followed: ELOOP at the first. Closes the start."""
    parts = path.split("/") if path else []
    while parts:
        with start:
            count, inner = (
                _open_path_chunk(start, parts, flags) if kernel and syscalls.has_openat2() else (0, None)
            )
            if inner is None:
                count, inner = 1, open_child(start, parts[0], flags if len(parts) == 1 else ENTER_FLAGS)
        start, parts = inner, parts[count:]
    return start


def _open_path_chunk(start: FolderHandle, parts: list[str], flags: int) -> tuple[int, FolderHandle | None]:
    """Open as much of a path as the kernel takes at once; None when it won't."""
    count, size = len(parts), sum(map(len, parts)) * 4
    if size > PATH_CHUNK_BYTES:
        count = size = 0
        for part in parts:
            size += len(os.fsencode(part)) + 1
            if size > PATH_CHUNK_BYTES:
                break
            count += 1
    names = "/".join(parts[:count])
    fd = open_beneath(start, names, flags if count == len(parts) else ENTER_FLAGS) if count else None
    return count, None if fd is None else FolderHandle(fd, os.path.join(start.path, names))


def open_child(folder: FolderHandle, name: str, flags: int) -> FolderHandle:
    """Open a folder in another; ELOOP where the name is a link, whichever way the system puts that."""
    try:
        return folder.child(name, flags=flags)
    except NotADirectoryError:
        if is_link(folder, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def open_beneath(root: FolderHandle, path: str, flags: int) -> int | None:
    """Have the kernel open a path through no link at all (ELOOP); None when it can't, and we go ourselves."""
    if root.fd is None:
        return None
    for _ in range(_MOST_RACES):
        try:
            return syscalls.openat2(root.fd, path, flags, _NO_LINK_RESOLUTION)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # a rename somewhere on the way, at this very moment
                continue
            if error.errno in _WALK_BY_HAND_ERRNOS:
                return None
            raise
    return None


def is_link(folder: FolderHandle, name: str) -> bool:
    """Whether a name in a folder is a link."""
    found = folder.find(name)
    return found is not None and stat.S_ISLNK(found.st_mode)
