"""Read small text files such as settings: regular files only, up to a size limit, without blocking."""

import os
import stat

from handtools.host.files.whole_reads_and_writes import read_bytes_at

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
