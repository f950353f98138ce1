"""Polls the memory and disk use of a command, where no cgroup limits the whole tree. Runs in a supervisor.

It does not hold anything back: what is used between two polls is used. So it polls often, and counts closely only
when a cheap look says that a limit may be exceeded.
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
"""Seconds between two looks."""
PAUSE_FACTOR = 30
"""A look pauses for so many times as long as it took."""
MEMORY_GROWTH_BYTES_PER_SECOND = 4 << 30
"""Bytes of memory that can be taken in a second: close to the limit there is less time between two looks."""
MAX_RECOUNT_SECONDS = 1.0
"""A layer is counted at least so often, also when the file system seems no fuller."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BLOCK_BYTES = 512
_TMPFS_ENTRY_BYTES = 1 << 10
"""What a file takes of memory that is nothing but a name."""


@dataclass(slots=True)
class ResourceMonitor:
    """The limits of one command, and when to look again."""

    memory: int | None
    """Bytes of all its processes together; None where a control group counts, or nothing is limited."""
    places: Sequence[str]
    """Folders in its own view that are memory."""
    layer: str
    """Where its writes go; empty when it writes in place."""
    seen_at: str
    """Where the layer is in its own view."""
    bytes: int
    files: int
    due: float = field(init=False)
    _free: tuple[int, int] = field(init=False)
    _counted: float = 0.0
    _costs: float = 0.0
    _room: float = math.inf
    """Bytes of memory that were left when it was last looked at."""

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
        """What is over its limit now; the processes are asked for only when they matter."""
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
        """Whether to count now: when the file system has filled by a part of the limit, and now and then."""
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
    """How many things a layer holds, and how many bytes they take; not beyond the most."""
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
    """Its memory, with what it shares divided among those who share it."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return _resident_bytes(pid)


def _tmpfs_bytes(pids: Sequence[int], places: Sequence[str]) -> int:
    """Bytes in folders that are memory."""
    used = {}
    for place in places:
        for device, path in _devices(pids, place).items():
            with contextlib.suppress(OSError):
                found = os.statvfs(path)
                files = (found.f_files - found.f_ffree) * _TMPFS_ENTRY_BYTES
                used[device] = (found.f_blocks - found.f_bfree) * found.f_frsize + files
    return sum(used.values())


def _devices(pids: Sequence[int], place: str) -> dict[int, str]:
    """What is at a path in the view of the tree's own processes, where that is not what we see there."""
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
    """What files say they are on that are memory and never had a name."""
    fd = os.memfd_create("none")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _deleted_file_bytes(pids: Sequence[int], devices: AbstractSet[int]) -> int:
    """Bytes of files that no folder shows but that are held open; each counts once."""
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
