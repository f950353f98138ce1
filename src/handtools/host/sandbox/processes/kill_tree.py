"""Kill every descendant of a supervisor, even one that tries to escape.

A supervisor is the subreaper of all its descendants: a process that leaves its process group, session or
parent becomes the supervisor's child. So the supervisor knows that no process is left when it has no
children.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable

from handtools.host.sandbox.processes.cgroups import Cgroup

TERM_GRACE_SECONDS = 0.1
"""Seconds between SIGTERM and SIGKILL: enough to remove a lock file."""
KILL_TIMEOUT_SECONDS = 5.0
"""Seconds after which we stop trying to kill a process (another user's, or stuck in the kernel)."""
_POLL_SECONDS = 0.001

ReapChildren = Callable[[float], bool]
"""A function that reaps children that exit within the given seconds; False if there are none left."""


def kill_descendants(cgroup: Cgroup, reap: ReapChildren, *, gently: bool) -> int:
    """Kill every descendant of this process, first with SIGTERM if `gently`.

    Returns how many could not be killed.
    """
    if gently and _terminate_and_wait(cgroup, reap):
        return 0
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while reap(0.0):
        for pid in running_pids(cgroup):
            _signal(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return len(descendants(os.getpid()))
        if not reap(_POLL_SECONDS):
            break
    return 0


def kill_by_environment(mark: str) -> int:
    """Kill every process of this user with `mark` in its environment; returns how many survived.

    Used if a command killed its own supervisor; a process that also clears its environment escapes.
    """
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while (found := _pids_by_environment(mark.encode())) and time.monotonic() < deadline:
        for pid in found:
            _signal(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return len(found)


def _pids_by_environment(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read():
                    found.append(int(name))
    return found


def descendants(pid: int) -> list[int]:
    """Return the pids of all descendants.

    May miss some while processes start or exit, so call it repeatedly.
    """
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def running_pids(cgroup: Cgroup) -> list[int]:
    """Return the pids of all descendants, from the cgroup or, without one, from /proc."""
    return cgroup.pids() or descendants(os.getpid())


def _terminate_and_wait(cgroup: Cgroup, reap: ReapChildren) -> bool:
    """Send SIGTERM to all descendants and wait; returns whether all have exited."""
    for pid in running_pids(cgroup):
        _signal(pid, signal.SIGTERM)
        _signal(pid, signal.SIGCONT)
    deadline = time.monotonic() + TERM_GRACE_SECONDS
    while reap(_POLL_SECONDS):
        if time.monotonic() > deadline:
            return False
    return True


def _children(pid: int) -> list[int]:
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
    except (OSError, ValueError):
        return found
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
