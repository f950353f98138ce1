"""Read or write all requested bytes, looping over short reads and writes."""

import os


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
