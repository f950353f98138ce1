"""Ending: everything in a container but its first process dies, whatever it did to get away."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable

from handtools.host.commands.container.containers import Container
from handtools.host.commands.processes.ending import GRACE, PATIENCE

_WAIT = 0.001


def end_all(container: Container, *, gently: bool) -> int:
    """End what a command left; gives back how much could not be.

    A container runs one command at a time, so all that is in it is the command's. The engine has no word for it,
    so we kill by number; who can't see the numbers has to end the container.
    """
    if gently:
        _signal(container.others(), signal.SIGTERM, signal.SIGCONT)
        _wait(container, GRACE)
    deadline = time.monotonic() + PATIENCE
    while (found := container.others()) and time.monotonic() < deadline:
        _signal(found, signal.SIGKILL)
        time.sleep(_WAIT)
    return len(found)


def _wait(container: Container, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while container.others() and time.monotonic() < deadline:
        time.sleep(_WAIT)


def _signal(pids: Iterable[int], *numbers: signal.Signals) -> None:
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
