"""Claims: a call that replicas are both asked for runs at one of them."""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from handtools.host.locks import try_lock, unlock

LOOK_SECONDS = 0.05


class Claims:
    """Locks on files of a folder that the replicas share, one per call id; a process that dies lets go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def hold(self, call_id: str) -> AsyncIterator[None]:
        """Wait for as long as another replica has the call."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Ids are whatever the host of a call chose.
        path = self._folder / hashlib.sha256(call_id.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        while (lock := _claim(path)) is None:  # noqa: ASYNC110 - no file tells when its lock is free
            await anyio.sleep(LOOK_SECONDS)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            unlock(lock)


def _claim(path: Path) -> int | None:
    lock = try_lock(path)
    if lock is None:
        return None
    # Whoever had it before has removed the file: then this lock is on nothing that others can see.
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    unlock(lock)
    return None
