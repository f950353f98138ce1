"""The pool of supervisors: started when needed, kept for the next command."""

import atexit
import contextlib
import os
import socket
import threading
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import HostError
from handtools.host.commands.processes import groups
from handtools.host.commands.processes.orders import Gone, receive, send
from handtools.host.programs import Process, let_end, start_python

IDLE = 2
"""Supervisors that are kept without work."""
_END_SECONDS = 10.0


@dataclass(slots=True)
class Hired:
    """A supervisor of ours, and the line to it."""

    line: socket.socket
    process: Process
    folders: list[str]
    """Of its control group; everything it starts is in there."""

    def order(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        """Tell it something; raises `Gone` when it is not there."""
        send(self.line, message, fds)

    def abandon(self) -> None:
        """It does not answer: end it, and what is in its group."""
        self.process.kill()
        self.dismiss()
        for folder in self.folders:
            groups.kill(folder)

    def dismiss(self) -> None:
        """Let it go: it ends what it runs, then itself."""
        self.line.close()
        let_end(self.process, _END_SECONDS)


class Pool:
    """Shared by all workspaces of a process."""

    def __init__(self) -> None:
        self._idle: list[Hired] = []
        self._lock = threading.Lock()
        self._owner = 0

    def take(self) -> Hired:
        """One that is free, or a new one."""
        with self._lock:
            if self._owner != os.getpid():
                # After a fork they are our parent's.
                self._idle, self._owner = [], os.getpid()
                atexit.register(self.close)
            while self._idle:
                hired = self._idle.pop()
                if hired.process.poll() is None:
                    return hired
                hired.dismiss()
        return _hire()

    def give_back(self, hired: Hired) -> None:
        """It has nothing to do any more."""
        with self._lock:
            if len(self._idle) < IDLE:
                self._idle.append(hired)
                return
        hired.dismiss()

    def close(self) -> None:
        """Let all go that have nothing to do."""
        with self._lock:
            idle, self._idle = self._idle, []
            if self._owner != os.getpid():
                return
        for hired in idle:
            with contextlib.suppress(Gone):
                hired.dismiss()


POOL = Pool()


def _hire() -> Hired:
    ours, theirs = socket.socketpair()
    try:
        process = start_python(
            "handtools.host.commands.processes.supervisor",
            [str(theirs.fileno()), str(os.getpid())],
            pass_fds=(theirs.fileno(),),
        )
    except OSError as error:
        ours.close()
        raise HostError(f"No supervisor for commands could be started: {error}.") from error
    finally:
        theirs.close()
    try:
        hello, _ = receive(ours)
    except Gone:
        ours.close()
        raise HostError(f"The supervisor for commands ended with status {process.wait()}.") from None
    return Hired(ours, process, hello["folders"])
