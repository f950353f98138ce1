"""Polls the memory and disk use of a command, where no cgroup limits the whole tree. Runs in a supervisor.

It does not hold anything back: what is used between two polls is used. So it polls often, and counts closely only
when a cheap look says that a limit may be exceeded. ADR 66.
"""

import contextlib
import math
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from handtools.host.sandbox.orders import StartOrder

ExceededLimit = Literal["", "memory", "bytes", "files"]

MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.01, 0.25
"""Shortest and longest time between two polls, in seconds."""
PAUSE_FACTOR = 30
"""The pause after a poll is this many times as long as the poll took."""
MEMORY_GROWTH_BYTES_PER_SECOND = 4 << 30
"""Assumed largest growth of memory, in bytes per second: near the limit, polls come sooner."""
MAX_RECOUNT_SECONDS = 1.0
"""An overlay layer is counted at least this often, in seconds, even if the file system is no fuller."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BLOCK_BYTES = 512
_TMPFS_ENTRY_BYTES = 1 << 10
"""The memory that a tmpfs file takes besides its contents, in bytes."""


@dataclass(slots=True)
class ResourceMonitor:
    """Polls the memory and disk use of one command and decides when to poll again."""

    memory: int | None
    """Limit in bytes for all its processes together; None if a control group counts or there is no limit."""
    places: Sequence[str]
    """Folders, as the command sees them, that are in memory (tmpfs)."""
    layer: str
    """The upper layer that takes the command's writes; empty when it writes in place."""
    seen_at: str
    """The path at which the command sees the layer."""
    bytes: int
    files: int
    due: float = field(init=False)
    _free: tuple[int, int] = field(init=False)
    _counted: float = 0.0
    _costs: float = 0.0
    _room: float = math.inf
    """Bytes of memory below the limit at the last poll."""

    def __post_init__(self) -> None:
        self.due = time.monotonic() + MIN_POLL_SECONDS
        self._free = _free_space(self.layer)
        self._counted = time.monotonic()

    @classmethod
    def ordered(cls, order: StartOrder, *, memory: int | None) -> "ResourceMonitor | None":
        """As an order has it; None when there is nothing to watch."""
        layer, seen_at, size, files = order["layer"] or ("", "", 0, 0)
        return cls(memory, order["places"], layer, seen_at, size, files) if memory or layer else None

    def look(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        """The limit that is exceeded now, or none; `tree` gives the pids and is called only when needed."""
        began = time.monotonic()
        over = self._memory_over(tree) or self._layer_over(tree)
        now = time.monotonic()
        pause = min((now - began) * PAUSE_FACTOR, self._room / MEMORY_GROWTH_BYTES_PER_SECOND)
        self.due = now + min(max(pause, MIN_POLL_SECONDS), MAX_POLL_SECONDS)
        return over

    def _memory_over(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        if self.memory is None:
            return ""
        pids = tree()
        beside = _tmpfs_bytes(pids, self.places) + _deleted_file_bytes(pids, {_memory_device()})
        # Pages that several share count for each at first, and only then for all together.
        self._room = self.memory - beside - sum(map(_resident_bytes, pids))
        if self._room < 0:
            self._room = self.memory - beside - sum(map(_proportional_bytes, pids))
        return "memory" if self._room < 0 else ""

    def _layer_over(self, tree: Callable[[], Sequence[int]]) -> ExceededLimit:
        if not self.layer or not self._fuller():
            return ""
        began = time.monotonic()
        files, size = _layer_usage(self.layer, self.files)
        pids = tree()
        size += _deleted_file_bytes(pids, set(_devices(pids, self.seen_at)))
        self._counted = time.monotonic()
        self._costs = self._counted - began
        self._free = _free_space(self.layer)
        return "files" if files > self.files else "bytes" if size > self.bytes else ""

    def _fuller(self) -> bool:
        """Whether to count the layer now: when the file system has filled noticeably, or the last count is old."""
        since = time.monotonic() - self._counted
        if since < self._costs * PAUSE_FACTOR:
            return False
        free_bytes, free_files = _free_space(self.layer)
        filled = (
            self._free[0] - free_bytes > self.bytes // 16 or self._free[1] - free_files > self.files // 16
        )
        return filled or since > MAX_RECOUNT_SECONDS


def _free_space(folder: str) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize, found.f_ffree
    return 0, 0


def _layer_usage(folder: str, most: int) -> tuple[int, int]:
    """The number of files in a layer and their bytes; stops counting beyond `most`."""
    files = size = 0
    waiting = [folder]
    while waiting and files <= most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return files, size


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES
    return 0


def _proportional_bytes(pid: int) -> int:
    """The memory of a process in bytes (PSS), shared pages divided among those who share them."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return _resident_bytes(pid)


def _tmpfs_bytes(pids: Sequence[int], places: Sequence[str]) -> int:
    """The bytes in tmpfs folders that the processes see."""
    used = {}
    for place in places:
        for device, path in _devices(pids, place).items():
            with contextlib.suppress(OSError):
                found = os.statvfs(path)
                files = (found.f_files - found.f_ffree) * _TMPFS_ENTRY_BYTES
                used[device] = (found.f_blocks - found.f_bfree) * found.f_frsize + files
    return sum(used.values())


def _devices(pids: Sequence[int], place: str) -> dict[int, str]:
    """The tmpfs devices at a path, as the processes see it, except those that we see there ourselves."""
    found = {}
    for pid in pids[-2:]:
        with contextlib.suppress(OSError):
            path = f"/proc/{pid}/root{place}"
            found[os.stat(path).st_dev] = path
    with contextlib.suppress(OSError):
        found.pop(os.stat(place).st_dev, None)
    return found


@cache
def _memory_device() -> int:
    """The device number of anonymous memory files (memfd)."""
    fd = os.memfd_create("none")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _deleted_file_bytes(pids: Sequence[int], devices: AbstractSet[int]) -> int:
    """The bytes of deleted files that processes hold open on these devices; each file counts once."""
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
