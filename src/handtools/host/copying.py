"""Copying and removing whole things: for where they can't be moved."""

import contextlib
import errno
import os
import stat

from handtools.host.folders import Folder

_CHUNK_BYTES = 1 << 20
_READ = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _READ | getattr(os, "O_DIRECTORY", 0)


def copy(source: Folder, old: str, target: Folder, new: str) -> None:
    """Copy a file, a link or a folder with all in it: bytes and holes, modes, times, owners, attributes, links."""
    _copy(source.fd, source.name(old), target.fd, target.name(new))


def _copy(source: int | None, old: str, target: int | None, new: str) -> None:
    found = os.stat(old, dir_fd=source, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        _copy_folder(source, old, target, new, found)
    elif stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(old, dir_fd=source), new, dir_fd=target)
        _like(found, new, target)
    elif stat.S_ISREG(found.st_mode):
        _copy_file(source, old, target, new)


def _copy_folder(source: int | None, old: str, target: int | None, new: str, found: os.stat_result) -> None:
    os.mkdir(new, 0o700, dir_fd=target)
    inside, made = os.open(old, _FOLDER, dir_fd=source), os.open(new, _FOLDER, dir_fd=target)
    try:
        first: dict[int, str] = {}
        for name in os.listdir(inside):
            facts = os.stat(name, dir_fd=inside, follow_symlinks=False)
            known = first.setdefault(facts.st_ino, name) if facts.st_nlink > 1 else name
            if known != name and stat.S_ISREG(facts.st_mode):
                os.link(known, name, src_dir_fd=made, dst_dir_fd=made)
            else:
                _copy(inside, name, made, name)
        _copy_attributes(inside, made)
        _like(found, new, target)
        os.fchmod(made, stat.S_IMODE(found.st_mode))
        os.utime(made, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(inside)
        os.close(made)


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


def _like(found: os.stat_result, name: str, folder: int | None) -> None:
    with contextlib.suppress(OSError):
        os.chown(name, found.st_uid, found.st_gid, dir_fd=folder, follow_symlinks=False)


def remove(folder: Folder, name: str) -> None:
    """Remove a thing with everything in it; no error when there is nothing."""
    _remove(folder.fd, folder.name(name))


def _remove(folder: int | None, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
        return
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=folder)
        return
    inside = _entered(folder, name)
    try:
        for inner in os.listdir(inside):
            _remove(inside, inner)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=folder)


def _entered(folder: int | None, name: str) -> int:
    """Open a folder whose things are to go, also one that its owner may not look into."""
    try:
        fd = os.open(name, _FOLDER, dir_fd=folder)
        if os.fstat(fd).st_mode & 0o300 == 0o300:
            return fd
        os.fchmod(fd, 0o700)
        return fd
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
