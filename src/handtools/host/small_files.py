"""Small files that we read ourselves, such as settings: plain ones, up to a size, and without waiting."""

import os
import stat

from handtools.host.watching import read_at

SMALL_BYTES = 64 << 10
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK"))
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def small_text(path: str | os.PathLike[str], most: int = SMALL_BYTES, *, links: bool = False) -> str:
    """A plain file's text; empty when it is none or too long, and for a link unless `links` may lead there."""
    try:
        fd = os.open(path, _READING | (0 if links else _NO_LINK))
    except (OSError, ValueError):
        return ""
    try:
        facts = os.fstat(fd)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_size <= most
        return read_at(fd, facts.st_size, 0).decode("utf-8", "replace") if plain else ""
    finally:
        os.close(fd)
