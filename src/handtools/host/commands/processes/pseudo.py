"""What a command reads from and writes to: pipes, or a terminal that is not one."""

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field

from handtools.host.commands.launching import Launch

try:
    import fcntl
except ImportError:  # Windows, where no commands are offered
    fcntl = None  # type: ignore[assignment]

PIPE_BYTES = 1 << 20
SEND_SECONDS = 2.0
_SET_PIPE_SIZE = 1031


@dataclass(slots=True)
class Pipes:
    """Our ends and the command's."""

    source: int
    """What it prints."""
    sink: int | None
    """Where its input goes."""
    theirs: tuple[int, ...]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, data: bytes) -> bool:
        """Write to the command; False when it takes no input, or not in time."""
        deadline = time.monotonic() + SEND_SECONDS
        view = memoryview(data)
        with self._lock:
            while view:
                if self.sink is None or time.monotonic() > deadline:
                    return False
                try:
                    view = view[os.write(self.sink, view) :]
                except BlockingIOError:
                    time.sleep(0.005)
                except OSError:
                    return False
        return True

    def close_input(self) -> None:
        """Let it see the end of its input."""
        with self._lock:
            if self.sink is not None and self.sink != self.source:
                os.close(self.sink)
            self.sink = None

    def close_theirs(self) -> None:
        """After it was started: only it may hold its ends."""
        for fd in set(self.theirs):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.theirs = ()

    def close(self) -> None:
        """All that is ours."""
        self.close_theirs()
        self.close_input()
        os.close(self.source)


def open_pipes(launch: Launch) -> Pipes:
    """Make what a launch needs."""
    if launch.terminal is not None:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        return Pipes(ours, ours, (theirs, theirs, theirs))
    source, printed = os.pipe()
    with contextlib.suppress(OSError):  # the user's share of pipe memory may be used up
        fcntl.fcntl(source, _SET_PIPE_SIZE, PIPE_BYTES)
    os.set_blocking(source, False)
    if launch.input_open:
        reading, sink = os.pipe()
        os.set_blocking(sink, False)
        return Pipes(source, sink, (reading, printed, printed))
    return Pipes(source, None, (os.open(os.devnull, os.O_RDONLY), printed, printed))
