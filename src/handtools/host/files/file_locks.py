"""File locks (flock) that exclude other processes and other toolboxes in the same process.

On Windows the first byte of a file is locked, which also excludes other handles; we have not tested this on
Windows.
"""

import contextlib
import errno
import hashlib
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from handtools.core.errors import Busy
from handtools.host.files import syscalls
from handtools.host.files.os_errors import os_error_as_tool_error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    _msvcrt: Any = import_module("msvcrt")
except ImportError:  # not Windows; if flock is missing too, locks work only within this process
    _msvcrt = None

_HAS_FLOCK: bool = fcntl is not None
HAS_FILE_LOCKS: bool = _HAS_FLOCK or _msvcrt is not None
LOCK_SLOTS = 4096
_SHORTEST_PAUSE, _MAX_PAUSE = 0.001, 0.020
_LOCKED_ERRNOS = {errno.EAGAIN, errno.EACCES, getattr(errno, "EDEADLOCK", errno.EAGAIN)}
_held_in_process: set[str] = set()
"""Paths locked in this process, on systems without file locks."""
_held_in_process_lock = threading.Lock()


_HeldLock = int | str
"""An acquired lock: the descriptor of the locked file, or its path on systems without file locks."""


class FileLocks:
    """Locks for arbitrary keys: a key's hash selects one of a fixed number of lock files in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = os.fspath(folder)

    @asynccontextmanager
    async def hold(self, keys: Sequence[str], *, timeout: float) -> AsyncIterator[None]:  # noqa: ASYNC109
        """Async context manager that locks all keys, always in the same order to avoid deadlocks.

        Raises `Busy` if the locks are not available within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        held: list[_HeldLock] = []
        try:
            for slot in sorted({_slot_of(key) for key in keys}):
                held.append(await self._lock_slot(slot, keys, deadline))  # noqa: PERF401 — one by one, so that a failure releases them
            yield
        finally:
            for lock in reversed(held):
                _unlock(lock)

    async def _lock_slot(self, slot: int, keys: Sequence[str], deadline: float) -> _HeldLock:
        began = time.monotonic()
        while (lock := self._try_lock_slot(slot)) is None:
            now = time.monotonic()
            if now >= deadline:
                raise Busy(
                    f"{_shown_keys(keys)} is being changed by another call.",
                    hint="Nothing was changed; try again.",
                )
            # Poll more often the longer we have waited, so that newcomers can't starve us.
            longest = max(_SHORTEST_PAUSE, _MAX_PAUSE - (now - began) / 20)
            pause = random.uniform(_SHORTEST_PAUSE, longest)  # noqa: S311 — jitter, not for security
            await anyio.sleep(min(pause, deadline - now))
        return lock

    def _try_lock_slot(self, slot: int) -> _HeldLock | None:
        path = f"{self._folder}/{slot:03x}"
        if not HAS_FILE_LOCKS:
            return _try_in_process(path)
        fd = self._open_lock_file(path)
        try:
            _lock_fd(fd)
        except OSError as error:
            os.close(fd)
            if error.errno in _LOCKED_ERRNOS:
                return None
            raise os_error_as_tool_error(error, path) from error
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _open_lock_file(self, path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW
        try:
            try:
                return os.open(path, flags, 0o600)
            except FileNotFoundError:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                return os.open(path, flags, 0o600)
        except OSError as error:
            raise os_error_as_tool_error(error, path) from error


def try_lock(path: str | Path) -> int | None:
    """Try to lock a file, excluding other processes.

    Returns a descriptor to pass to `unlock`, or None if the file is already locked.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    if not HAS_FILE_LOCKS:
        return fd
    try:
        _lock_fd(fd)
    except OSError:
        os.close(fd)
        return None
    return fd


def unlock(lock: int) -> None:
    """Release a lock returned by `try_lock` and close its descriptor."""
    if HAS_FILE_LOCKS:
        _unlock(lock)
    else:
        os.close(lock)


def _unlock(lock: _HeldLock) -> None:
    if isinstance(lock, str):
        _held_in_process.discard(lock)
        return
    try:
        # Unlock explicitly: the fd inherited by a forked child would keep the lock after our close.
        with contextlib.suppress(OSError):
            _unlock_fd(lock)
    finally:
        os.close(lock)


def _lock_fd(fd: int) -> None:
    """Lock an open file without blocking; raises `OSError` if it is locked."""
    if _HAS_FLOCK:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        os.lseek(fd, 0, os.SEEK_SET)
        _msvcrt.locking(fd, _msvcrt.LK_NBLCK, 1)


def _unlock_fd(fd: int) -> None:
    if _HAS_FLOCK:
        fcntl.flock(fd, fcntl.LOCK_UN)
    else:
        os.lseek(fd, 0, os.SEEK_SET)
        _msvcrt.locking(fd, _msvcrt.LK_UNLCK, 1)


def _try_in_process(path: str) -> str | None:
    with _held_in_process_lock:
        if path in _held_in_process:
            return None
        _held_in_process.add(path)
    return path


def _slot_of(key: str) -> int:
    name = key.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(name, digest_size=4).digest()) % LOCK_SLOTS


def _shown_keys(keys: Sequence[str]) -> str:
    more = f" or one of {len(keys) - 1} more" if len(keys) > 1 else ""
    return f"`{keys[0]}`{more}"
