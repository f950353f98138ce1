"""Attending: a thread that runs one command in a container, and speaks of it like a supervisor would."""

import contextlib
import os
import secrets
import select
import signal
import socket
import stat
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from handtools.core.errors import HostError
from handtools.host.commands.container import slips
from handtools.host.commands.container.containers import Container, Containers
from handtools.host.commands.container.ending import end_all
from handtools.host.commands.container.engine import speaking
from handtools.host.commands.container.frames import Frames
from handtools.host.commands.container.shape import Shape
from handtools.host.commands.container.wrapping import standing, wrapped
from handtools.host.commands.processes.ending import PATIENCE
from handtools.host.commands.processes.orders import Gone, receive, send
from handtools.host.commands.processes.watching import Over, Watch

READ_BYTES = 256 << 10
LATE_SECONDS = 0.05
"""After this a command is no quick one, and we look for its process, to notice its end by that too."""
ASK_SECONDS = 1.0
"""Where its process can't be seen, the engine is asked so often."""
AGAIN_SECONDS = 0.02
SETTLE_SECONDS = 2.0


class Attendant:
    """Takes one command, then is done."""

    def __init__(self, containers: Containers, shape: Shape) -> None:
        self.line, theirs = socket.socketpair()
        self._bout = _Bout(containers, shape, theirs)
        self._thread = threading.Thread(target=self._bout.serve, name="handtools-container", daemon=True)
        self._thread.start()

    def order(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        """Tell it something; raises `Gone` when it is not there."""
        send(self.line, message, fds)

    def abandon(self) -> None:
        """It does not answer: its container goes, and everything in it."""
        self._bout.forsake()
        self.dismiss()

    def dismiss(self) -> None:
        """It is done."""
        self.line.close()
        self._thread.join(SETTLE_SECONDS)


@dataclass(frozen=True, slots=True)
class ContainerCrew:
    """Attendants for commands of one shape."""

    containers: Containers
    shape: Shape

    def take(self) -> Attendant:
        """A new one: it costs a thread, its container is what is kept."""
        return Attendant(self.containers, self.shape)

    def give_back(self, hired: Attendant) -> None:
        """It is done."""
        hired.dismiss()


@dataclass(slots=True)
class _Bout:
    """One command in one container."""

    containers: Containers
    shape: Shape
    line: socket.socket
    container: Container | None = None
    order: dict[str, Any] = field(default_factory=dict)
    fds: list[int] = field(default_factory=list)
    frames: Frames = field(default_factory=Frames)
    exec_id: str = ""
    again: bool = False
    told: bool = False
    over: Over = ""
    process: int = -1
    """A descriptor of the command's first process, once we looked for it."""

    def serve(self) -> None:
        """Wait for the command, run it, tell how it ended."""
        with self.line, contextlib.suppress(Gone):
            self.order, self.fds = receive(self.line)
            try:
                answer = self._run()
            except HostError as error:
                answer = {"refused": str(error).removesuffix(".")}
            finally:
                self._close()
            send(self.line, answer)

    def forsake(self) -> None:
        """End it from outside, with its container."""
        if self.container is not None:
            self.containers.remove(self.container)

    def _run(self) -> dict[str, Any]:
        """Once more in a new one, when the kept one has died or what lies over private files has come off."""
        try:
            answer = self._run_in(self.containers.take(self.shape))
        except HostError:
            if self.exec_id:
                raise
            answer = {}
        self.again = True
        return answer or self._run_in(self.containers.make(self.shape))

    def _run_in(self, container: Container) -> dict[str, Any]:
        """How it went; nothing when it did not begin."""
        self.container, clean = container, False
        self.frames = Frames(whole=self.order["terminal"] is not None, word=secrets.token_hex(8).encode())
        try:
            with slips.handed(container, self.order["fds"][3:], self.fds[3:]) as names:
                used, starved = container.group.used(), container.group.starved()
                container.group.limit(memory=None, processes=None, used=0)  # begins its peak anew
                if self.order["mounts"]:
                    container.lay(self.order["mounts"])
                with self._start(container, names) as stream:
                    asked = self._follow(stream) == "end"
                    survivors = self._end(container, stream, gently=asked)
            if self.order["mounts"]:
                container.lift()
            code = self._code()
            peak = container.group.peak() if os.geteuid() == 0 else None
            sure = container.seen or self.frames.left is not None
            clean = sure and not survivors and not self.frames.refused and container.alive
        finally:
            self.containers.give_back(container, clean=clean)
        if self.frames.refused and not self.again:
            return {}
        return {
            "status": self._status(code),
            "peak": max(peak - used, 0) if peak and used is not None else 0,
            "left": self.frames.left or 0,
            "starved": container.group.starved() > starved,
            "survivors": survivors,
            "over": self.over,
        }

    def _start(self, container: Container, names: dict[int, str]) -> socket.socket:
        order, terminal = self.order, self.order["terminal"]
        user, group = self.shape.user
        takes_input = _feeds(self.fds[0])
        if terminal:
            _pass_through(self.fds[0])
        with speaking():
            made = self.containers.engine.client.api.exec_create(
                container.id,
                wrapped(
                    order["argv"],
                    names,
                    checks=standing(self.shape, self.frames.word.decode()),
                    limits=order["limits"],
                    terminal=terminal,
                ),
                stdin=takes_input,
                tty=terminal is not None,
                environment=order["env"],
                workdir=order["cwd"],
                user=f"{user}:{group}",
            )
        self.exec_id = made["Id"]
        body = {"Detach": False, "Tty": terminal is not None}
        stream, first = self.containers.engine.stream(f"/exec/{self.exec_id}/start", body)
        if not self.told:
            self.told = True
            send(self.line, {"pid": 0})
        self._write(first)
        return stream

    def _follow(self, stream: socket.socket) -> str:
        """Carry bytes until it has ended, or is to be ended."""
        waiting = select.poll()
        for fd in (stream.fileno(), self.line.fileno(), *([self.fds[0]] if _feeds(self.fds[0]) else [])):
            waiting.register(fd, select.POLLIN)
        watch = Watch.ordered(self.order, memory=None)
        ask = time.monotonic() + LATE_SECONDS
        while True:
            until = min(ask, watch.due) if watch else ask
            ready = {fd for fd, _ in waiting.poll(max(until - time.monotonic(), 0) * 1000 + 1)}
            now = time.monotonic()
            if watch and now >= watch.due and self.container:
                self.over = watch.look(self.container.others)
            if self.line.fileno() in ready or self.over:
                return "end"
            if stream.fileno() in ready and not self._carry(stream):
                return "exit"
            if self.fds[0] in ready and not self._feed(stream):
                waiting.unregister(self.fds[0])
            if self.process in ready or (now >= ask and self._ended(waiting)):
                return "exit"
            if now >= ask:
                ask = now + ASK_SECONDS

    def _ended(self, waiting: "select.poll") -> bool:
        """Whether the engine says it has; else its own process will tell us."""
        if self.process >= 0:
            return False
        facts = self._facts()
        with contextlib.suppress(OSError):
            self.process = os.pidfd_open(facts["Pid"])
            waiting.register(self.process, select.POLLIN)
        return facts["ExitCode"] is not None and not facts["Running"]

    def _end(self, container: Container, stream: socket.socket, *, gently: bool) -> int:
        """End all that is left, and read what is still on its way; gives back how much could not be ended."""
        survivors = end_all(container, gently=gently)
        if not container.seen and (gently or self.frames.left is None):
            self.containers.kill(container)
        deadline = time.monotonic() + PATIENCE
        while not self._drained(stream, AGAIN_SECONDS):
            # It may have come to life only after it was to be ended.
            survivors = end_all(container, gently=False)
            if time.monotonic() > deadline:
                self.containers.kill(container)
                return survivors
        return survivors

    def _carry(self, stream: socket.socket) -> bool:
        """What it printed, on to who reads; False at the end."""
        data = stream.recv(READ_BYTES)
        self._write(data)
        return bool(data)

    def _write(self, data: bytes) -> None:
        for part in self.frames.of(data):
            view = memoryview(part)
            while view:
                view = view[os.write(self.fds[1], view) :]

    def _feed(self, stream: socket.socket) -> bool:
        """What it is sent, on to it; False at the end."""
        try:
            data = os.read(self.fds[0], READ_BYTES)
        except OSError:
            data = b""
        if data:
            stream.sendall(data)
        else:
            stream.shutdown(socket.SHUT_WR)
        return bool(data)

    def _drained(self, stream: socket.socket, seconds: float) -> bool:
        """Whether the stream has come to its end in this time."""
        stream.settimeout(seconds)
        try:
            while self._carry(stream):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _facts(self) -> dict[str, Any]:
        with speaking():
            facts: dict[str, Any] = self.containers.engine.client.api.exec_inspect(self.exec_id)
        return facts

    def _code(self) -> int:
        """Its exit code, which the engine may learn a moment after the stream has ended."""
        deadline = time.monotonic() + SETTLE_SECONDS
        code = None
        with contextlib.suppress(HostError):  # it may have gone with its container
            while (code := self._facts()["ExitCode"]) is None and time.monotonic() < deadline:
                time.sleep(0.002)
        return 128 + signal.SIGKILL if code is None else int(code)

    def _status(self, code: int) -> int:
        """As the kernel would put it. A shell says 128 and more for a signal, and only of its own we are sure."""
        killed = self.frames.left is None and not self.frames.whole
        by_signal = code - 128 if code > 128 and (killed or code - 128 == signal.SIGXFSZ) else 0
        return by_signal or code << 8

    def _close(self) -> None:
        if self.process >= 0:
            os.close(self.process)
        for fd in set(self.fds):
            with contextlib.suppress(OSError):
                os.close(fd)


def _pass_through(fd: int) -> None:
    """Have our terminal change nothing: the one that counts is inside."""
    import tty  # not on Windows

    tty.setraw(fd)


def _feeds(fd: int) -> bool:
    """Whether there is something to be read from a command's input: a pipe or a terminal."""
    return stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd)
