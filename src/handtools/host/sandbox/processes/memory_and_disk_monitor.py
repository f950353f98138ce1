"""Polls the memory and disk use of a command if no cgroup limits the whole tree. Runs in a supervisor.

It can't prevent use beyond the limit between two polls. So it polls often, and counts exactly only when a
cheap check shows that a limit may be exceeded.
"""

import contextlib
import math
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Literal

from handtools.host.sandbox.supervisor_messages import StartOrder

ExceededLimit = Literal["", "memory", "bytes", "files", "scratch"]

MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.01, 0.25
"""Shortest and longest time between two polls, in seconds."""
POLL_PAUSE_COST_FACTOR = 30
"""The pause after a poll is this many times as long as the poll took."""
MEMORY_GROWTH_BYTES_PER_SECOND = 4 << 30
"""Assumed maximum memory growth in bytes per second: near the limit, polls are more frequent."""
MAX_RECOUNT_SECONDS = 1.0
"""A folder is counted at least this often, in seconds, even if the file system's usage hasn't grown."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_BLOCK_BYTES = 512
# The module is also imported on other systems, where it polls nothing.
_HANDLE_FLAGS = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_PATH_CHUNK_CHARS, _MAX_PATH_CHARS = 1000, 16 << 10
_TMPFS_ENTRY_BYTES = 1 << 10
"""The memory in bytes that a tmpfs file uses in addition to its content."""


class ResourceMonitor:
    """Polls the memory and disk use of one command and decides when to poll again."""

    def __init__(
        self, memory: int | None, places: Sequence[str], folders: Sequence["WatchedFolder"] = ()
    ) -> None:
        """`memory` limits all its processes together; None if a cgroup enforces it or there is no limit.

        `places` are tmpfs folders, with their paths as the command sees them.
        """
        self.memory = memory
        self.places = places
        self.folders = folders
        self.due = time.monotonic() + MIN_POLL_SECONDS
        self._room = math.inf
        """How many bytes of memory were left below the limit at the last poll."""

    @classmethod
    def from_order(cls, order: StartOrder, *, memory: int | None) -> "ResourceMonitor | None":
        """Create a monitor from a start order; None if there is nothing to monitor."""
        folders = [WatchedFolder(*layer) for layer in order["layers"]]
        folders += [
            WatchedFolder(path, "", size, files, scratch=True) for path, size, files in order["scratch"]
        ]
        return cls(memory, order["places"], folders) if memory or folders else None

    def look(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        """Return the limit that is exceeded now, or ""; calls `tree` for the pids only if needed."""
        began = time.monotonic()
        over = self._memory_over(tree)
        for folder in self.folders:
            over = over or folder.exceeded_limit(tree)
        now = time.monotonic()
        pause = min((now - began) * POLL_PAUSE_COST_FACTOR, self._room / MEMORY_GROWTH_BYTES_PER_SECOND)
        self.due = now + min(max(pause, MIN_POLL_SECONDS), MAX_POLL_SECONDS)
        return over

    def _memory_over(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        if self.memory is None:
            return ""
        pids = tree()
        beside = _tmpfs_bytes(pids, self.places) + _deleted_file_bytes(pids, _memory_devices())
        # Count shared pages once per process first (RSS); only if that exceeds the limit, use the slower
        # PSS.
        self._room = self.memory - beside - sum(map(resident_memory_bytes, pids))
        if self._room < 0:
            self._room = self.memory - beside - sum(map(_proportional_bytes, pids))
        return "memory" if self._room < 0 else ""


class WatchedFolder:
    """A folder that a command writes to (its overlay's upper layer, or scratch) and its limits."""

    def __init__(
        self, path: str, seen_at: str, most_bytes: int, most_files: int, *, scratch: bool = False
    ) -> None:
        """`seen_at` is the path at which the command sees it, if that is a separate device; or empty.

        `scratch` persists: earlier commands may have created unreadable folders in it.
        """
        self.path = path
        self.seen_at = seen_at
        self.bytes = most_bytes
        self.files = most_files
        self.scratch = scratch
        self.counted = time.monotonic()
        self._costs = 0.0
        self._free = _free_space(path)

    def exceeded_limit(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        """Return the limit that is exceeded now, or ""; counts only when a count is due."""
        if not self._is_count_due():
            return ""
        began = time.monotonic()
        files, size = _folder_usage(self.path, self.files, whole=self.scratch)
        pids = tree()
        devices = (
            set(_devices_seen_by_processes(pids, self.seen_at))
            if self.seen_at
            else {os.stat(self.path).st_dev}
        )
        size += _deleted_file_bytes(pids, devices)
        self.counted = time.monotonic()
        self._costs = self.counted - began
        self._free = _free_space(self.path)
        if files <= self.files and size <= self.bytes:
            return ""
        return "scratch" if self.scratch else "files" if files > self.files else "bytes"

    def _is_count_due(self) -> bool:
        """Whether to count now: the file system's usage has grown noticeably, or the last count is old."""
        since = time.monotonic() - self.counted
        if since < self._costs * POLL_PAUSE_COST_FACTOR:
            return False
        free_bytes, free_files = _free_space(self.path)
        filled = (
            self._free[0] - free_bytes > self.bytes // 16 or self._free[1] - free_files > self.files // 16
        )
        return filled or since > MAX_RECOUNT_SECONDS


def _free_space(folder: str) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize, found.f_ffree
    return 0, 0


def _folder_usage(folder: str, most: int, *, whole: bool) -> tuple[int, int]:
    """Return the number of files in a folder and their bytes; stops counting beyond `most`.

    An excessively deep tree counts as too many files. With `whole`, unreadable folders are made readable;
    otherwise a command could hide files there.
    """
    files = size = 0
    waiting = [folder]
    while waiting and files <= most:
        path = waiting.pop()
        if len(path) > _MAX_PATH_CHARS:
            return most + 1, size
        with contextlib.suppress(OSError), _listed_folder(path, force=whole) as entries:
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/{entry.name}")
                else:
                    with contextlib.suppress(OSError):
                        size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return files, size


@contextlib.contextmanager
def _listed_folder(path: str, *, force: bool) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Context manager: the entries of a folder, even if its path is longer than PATH_MAX."""
    handle = _folder_handle(path)
    try:
        try:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        except PermissionError:
            if not force:
                raise
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    finally:
        os.close(handle)
    try:
        with os.scandir(fd) as entries:
            yield entries
    finally:
        os.close(fd)


def _folder_handle(path: str) -> int:
    handle, rest = os.open("/", _HANDLE_FLAGS), path.lstrip("/")
    while rest:
        cut = rest.find("/", _PATH_CHUNK_CHARS)
        part, rest = (rest[:cut], rest[cut + 1 :]) if cut > 0 else (rest, "")
        try:
            handle, above = os.open(part, _HANDLE_FLAGS | os.O_NOFOLLOW, dir_fd=handle), handle
        except OSError:
            os.close(handle)
            raise
        os.close(above)
    return handle


def resident_memory_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has exited or the system doesn't report it."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES
    return 0


def _proportional_bytes(pid: int) -> int:
    """Return the memory of a process in bytes (PSS): shared pages are divided among their processes."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return resident_memory_bytes(pid)


def _tmpfs_bytes(pids: Sequence[int], places: Sequence[str]) -> int:
    """Return the bytes in tmpfs folders that the processes see."""
    used = {}
    for place in places:
        for device, path in _devices_seen_by_processes(pids, place).items():
            with contextlib.suppress(OSError):
                found = os.statvfs(path)
                files = (found.f_files - found.f_ffree) * _TMPFS_ENTRY_BYTES
                used[device] = (found.f_blocks - found.f_bfree) * found.f_frsize + files
    return sum(used.values())


def _devices_seen_by_processes(pids: Sequence[int], place: str) -> dict[int, str]:
    """Return the devices at a path as the processes see it, except a device that we see there ourselves."""
    found = {}
    for pid in pids[-2:]:
        with contextlib.suppress(OSError):
            path = f"/proc/{pid}/root{place}"
            found[os.stat(path).st_dev] = path
    with contextlib.suppress(OSError):
        found.pop(os.stat(place).st_dev, None)
    return found


@cache
def _memory_devices() -> frozenset[int]:
    """Return the device of anonymous memory files (memfd); empty if Python can't create one."""
    if not hasattr(os, "memfd_create"):
        return frozenset()
    fd = os.memfd_create("none")
    try:
        return frozenset({os.fstat(fd).st_dev})
    finally:
        os.close(fd)


def _deleted_file_bytes(pids: Sequence[int], devices: AbstractSet[int]) -> int:
    """Return the bytes of deleted files that processes have open on these devices, each counted once."""
    found = {}
    for facts in _open_files(pids) if devices else ():
        if facts.st_nlink == 0 and stat.S_ISREG(facts.st_mode) and facts.st_dev in devices:
            found[facts.st_dev, facts.st_ino] = facts.st_blocks * _BLOCK_BYTES
    return sum(found.values())


def _open_files(pids: Sequence[int]) -> Iterator[os.stat_result]:
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    yield os.stat(f"/proc/{pid}/fd/{name}")
