"""Slips: descriptors can't be handed into a container, files can. What a command writes to them comes back."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence

from handtools.host.commands.container.containers import Container

MOST_BYTES = 16 << 20
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def handed(container: Container, numbers: Sequence[int], fds: Sequence[int]) -> Iterator[dict[int, str]]:
    """Files by the number that they are to have in a command; `fds` are ours, and get what was written.

    We keep our own handle: whatever the command puts in a file's place is not what we read.
    """
    names = {number: secrets.token_hex(8) for number in numbers}
    held = [os.open(name, _NEW, 0o600, dir_fd=container.slips) for name in names.values()]
    try:
        for file, fd in zip(held, fds, strict=True):
            if os.geteuid() == 0:
                os.chown(file, *container.shape.user)
            _copy(fd, file)
        yield names
        for file, fd in zip(held, fds, strict=True):
            _copy(file, fd)
    finally:
        for file in held:
            os.close(file)
        for name in names.values():
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=container.slips)


def _copy(source: int, target: int) -> None:
    """All of one file into another, which keeps its place for who reads on."""
    at = 0
    while at < MOST_BYTES and (part := os.pread(source, 1 << 20, at)):
        os.pwrite(target, part, at)
        at += len(part)
