"""Read or write all requested bytes, looping over short reads and writes; read small text files."""

import os
import stat


def read_bytes_at(fd: int, size: int, start: int) -> bytes:
    """Read `size` bytes of an open file from offset `start`; fewer only at the end of the file."""
    found = _read_some(fd, size, start)
    while len(found) < size and (more := _read_some(fd, size - len(found), start + len(found))):
        found += more
    return found


def _read_some(fd: int, size: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes at the current position of an open file."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


SMALL_FILE_BYTES = 64 << 10
SETTINGS_BYTES = 1 << 20
"""The largest settings file that is read, in bytes."""
_SMALL_FILE_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK"))
_NO_FOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)


def read_small_text(
    path: str | os.PathLike[str], most: int = SMALL_FILE_BYTES, *, links: bool = False
) -> str:
    """Read a regular file's text; empty if it is not one, exceeds `most` bytes or is a symlink.

    With `links`, symlinks are followed.
    """
    try:
        fd = os.open(path, _SMALL_FILE_FLAGS | (0 if links else _NO_FOLLOW_FLAG))
    except (OSError, ValueError):
        return ""
    try:
        facts = os.fstat(fd)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_size <= most
        return read_bytes_at(fd, facts.st_size, 0).decode("utf-8", "replace") if plain else ""
    finally:
        os.close(fd)
