"""Read or write all that was asked for, however little the system takes at once."""

import os


def read_bytes_at(fd: int, size: int, start: int) -> bytes:
    """Read `size` bytes of an open file from position `start`; fewer only where it ends."""
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
    """Write all of the bytes at an open file's position."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])
