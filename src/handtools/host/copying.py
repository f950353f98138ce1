"""Copying and removing whole things: for where they can't be moved."""

import contextlib
import errno
import os
import stat
from contextlib import ExitStack

from handtools.host.folders import Folder
from handtools.host.subtrees import Subtree, joined

_CHUNK_BYTES = 1 << 20
_READ = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def copy(source: Folder, old: str, target: Folder, new: str) -> None:
    """Copy a file, a link or a folder with all in it: bytes and holes, modes, times, owners, attributes, links."""
    found = source.stat(old)
    if not stat.S_ISDIR(found.st_mode):
        _copy_thing(source, old, target, new, found)
        return
    os.mkdir(target.name(new), 0o700, dir_fd=target.fd)
    with ExitStack() as stack:
        there = stack.enter_context(Subtree(stack.enter_context(source.child(old))))
        here = stack.enter_context(Subtree(stack.enter_context(target.child(new))))
        paths = [""]
        for path in paths:  # it grows as we go
            paths += _copied(there.folder(path), here.folder(path), path)
        # The innermost first: a folder that may not be written to is made so when nothing more comes in.
        for path in reversed(paths):
            _make_alike(there.folder(path), here.folder(path))


def _copied(inside: Folder, copied: Folder, path: str) -> list[str]:
    """Copy what a folder holds; gives the folders in it, which are copied next."""
    folders = []
    first: dict[int, str] = {}
    for name in inside.names():
        found = inside.stat(name)
        known = first.setdefault(found.st_ino, name) if found.st_nlink > 1 else name
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(copied.name(name), 0o700, dir_fd=copied.fd)
            folders.append(joined(path, name))
        elif known != name and stat.S_ISREG(found.st_mode):
            os.link(copied.name(known), copied.name(name), src_dir_fd=copied.fd, dst_dir_fd=copied.fd)
        else:
            _copy_thing(inside, name, copied, name, found)
    return folders


def _copy_thing(source: Folder, old: str, target: Folder, new: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        target.create_link(new, source.link_target(old))
        with contextlib.suppress(OSError):
            target.set_owner(new, found)
    elif stat.S_ISREG(found.st_mode):
        _copy_file(source.fd, source.name(old), target.fd, target.name(new))


def _make_alike(inside: Folder, copied: Folder) -> None:
    found = inside.own_stat()
    if inside.fd is None or copied.fd is None:
        return
    _copy_attributes(inside.fd, copied.fd)
    with contextlib.suppress(OSError):
        os.fchown(copied.fd, found.st_uid, found.st_gid)
    os.fchmod(copied.fd, stat.S_IMODE(found.st_mode))
    os.utime(copied.fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_file(source: int | None, old: str, target: int | None, new: str) -> None:
    reading = os.open(old, _READ, dir_fd=source)
    try:
        found = os.fstat(reading)
        writing = os.open(new, _WRITE, 0o600, dir_fd=target)
        try:
            for start, end in _stretches(reading, found.st_size):
                while start < end and (part := os.pread(reading, min(_CHUNK_BYTES, end - start), start)):
                    os.pwrite(writing, part, start)
                    start += len(part)  # noqa: PLW2901
            os.ftruncate(writing, found.st_size)
            _copy_attributes(reading, writing)
            with contextlib.suppress(OSError):
                os.fchown(writing, found.st_uid, found.st_gid)
            os.fchmod(writing, stat.S_IMODE(found.st_mode))
            os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _stretches(fd: int, size: int) -> list[tuple[int, int]]:
    """Where a file has bytes: the rest are holes."""
    found, end = [], 0
    try:
        while end < size:
            start = os.lseek(fd, end, os.SEEK_DATA)
            end = os.lseek(fd, start, os.SEEK_HOLE)
            found.append((start, end))
    except (OSError, AttributeError) as error:
        if getattr(error, "errno", None) != errno.ENXIO:  # nothing but a hole up to the end
            return [(0, size)]
    return found


def _copy_attributes(source: int, target: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def remove(folder: Folder, name: str) -> None:
    """Remove a thing with everything in it; no error when there is nothing."""
    if _is_removed(folder, name):
        return
    _let_in(folder, name)
    with folder.child(name) as top, Subtree(top) as subtree:
        paths = [""]
        for path in paths:  # it grows as we go
            paths += _left_in(subtree.folder(path), path)
        for path in reversed(paths[1:]):
            above, _, last = path.rpartition("/")
            subtree.folder(above).remove_folder(last)
    folder.remove_folder(name)


def _left_in(inside: Folder, path: str) -> list[str]:
    """Remove what a folder holds, but for folders that hold something; gives those."""
    left = [name for name in inside.names() if not _is_removed(inside, name)]
    for name in left:
        _let_in(inside, name)
    return [joined(path, name) for name in left]


def _is_removed(folder: Folder, name: str) -> bool:
    """Remove a thing; False when it is a folder that holds others."""
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


def _let_in(folder: Folder, name: str) -> None:
    """A folder whose things are to go may be one that its owner may not look into."""
    mode = stat.S_IMODE(folder.stat(name).st_mode)
    if mode & 0o700 != 0o700:
        folder.set_mode(name, mode | 0o700)
