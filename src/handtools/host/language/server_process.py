"""A language server's process and its streams, under a supervisor that kills it when this process exits."""

import asyncio
import contextlib
import os
import secrets
from collections import deque
from collections.abc import Callable

from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch, Runner
from handtools.host.sandbox.processes import cgroups
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds
from handtools.host.sandbox.processes.kill_tree import descendants, kill_by_environment
from handtools.host.sandbox.processes.memory_and_disk_monitor import resident_memory_bytes
from handtools.host.sandbox.processes.supervisor_client import (
    RUN_ID_VARIABLE,
    SUPERVISORS,
    SupervisorHandle,
    extra_fds,
    start_order,
)
from handtools.host.sandbox.runners.runner_selection import confined_launch
from handtools.host.sandbox.supervisor_messages import CommandStarted, RefusalAnswer

STREAM_BUFFER_BYTES = 1 << 20
STDERR_TAIL_CHARS = 300
SERVER_END_SECONDS = 8.0
"""Seconds after which an unresponsive supervisor is killed."""


class ServerNotStarted(Exception):
    """Raised when a language server could not be started; the message is the reason."""


class ServerProcess:
    """A language server's process with asynchronous streams; used on one event loop only."""

    def __init__(self, supervisor: SupervisorHandle, mark: str, fds: tuple[int, int, int]) -> None:
        self._supervisor = supervisor
        self._mark = mark
        self._fds = fds
        self._errors: deque[bytes] = deque(maxlen=20)
        self._tasks: list[asyncio.Task[None]] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._over = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self.reader = asyncio.StreamReader(STREAM_BUFFER_BYTES)
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def start(cls, launch: Launch, runner: Runner) -> "ServerProcess":
        """Start the server's process in its sandbox; blocking work runs in a thread."""
        loop = asyncio.get_running_loop()
        beginning = loop.run_in_executor(None, _start_server, launch, runner)
        try:
            child = cls(*await asyncio.shield(beginning))
        except asyncio.CancelledError:
            # The thread can't be cancelled: wait for it and dismiss the supervisor it started.
            with contextlib.suppress(ServerNotStarted):
                hired, _, fds = await beginning
                _close_fds(fds)
                await loop.run_in_executor(None, hired.dismiss)
            raise
        await child._connect()
        return child

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        sink, source, errors = self._fds
        reading = asyncio.StreamReaderProtocol(self.reader)
        transport, _ = await loop.connect_read_pipe(lambda: reading, os.fdopen(source, "rb", 0))
        complaints = asyncio.StreamReader(STREAM_BUFFER_BYTES)
        other, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(complaints), os.fdopen(errors, "rb", 0)
        )
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(sink, "wb", 0)
        )
        self._writer = asyncio.StreamWriter(writing, protocol, None, loop)
        self._transports = [transport, other, writing]
        self._tasks = [asyncio.create_task(self._listen(complaints)), asyncio.create_task(self._watch())]

    @property
    def over(self) -> bool:
        """Whether the server and all processes it started have exited."""
        return self._over.is_set()

    @property
    def complaint(self) -> str:
        """The end of the server's stderr output."""
        text = b"".join(self._errors).decode(errors="replace").strip()
        return " ".join(text[-STDERR_TAIL_CHARS:].split())

    def send(self, data: bytes) -> None:
        """Queue bytes for the server's stdin; they are dropped if the process has exited."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    @property
    def clogged(self) -> bool:
        """Whether too much input is queued because the server has stopped reading."""
        return self._writer is not None and self._writer.transport.get_write_buffer_size() > 64 << 20

    def memory_bytes(self) -> int:
        """Resident memory of the server and all processes it started, in bytes."""
        return sum(resident_memory_bytes(pid) for pid in descendants(self._supervisor.process.pid))

    async def kill(self) -> None:
        """Kill the server and all processes it started; returns when they are gone."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        if not self.over:
            with contextlib.suppress(PeerGone):
                self._supervisor.send_order({"order": "end", "gently": False})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), SERVER_END_SECONDS)
            if not self.over:
                await run_in_thread(self._lost)
                self._over.set()
        for task in self._tasks:
            task.cancel()
        for transport in self._transports:
            transport.close()

    async def _listen(self, complaints: asyncio.StreamReader) -> None:
        while data := await complaints.read(4096):
            self._errors.append(data)

    async def _watch(self) -> None:
        """Wait for the supervisor's message that the server has exited."""
        loop = asyncio.get_running_loop()
        line = self._supervisor.line
        ready = asyncio.Event()
        loop.add_reader(line.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(line.fileno())
        await run_in_thread(self._settle)
        self._over.set()

    def _settle(self) -> None:
        try:
            receive_message_and_fds(self._supervisor.line)
        except PeerGone:
            self._lost()
        else:
            SUPERVISORS.give_back(self._supervisor)

    def _lost(self) -> None:
        self._supervisor.process.kill()
        self._supervisor.dismiss()
        for folder in self._supervisor.folders:
            cgroups.kill_cgroup(folder)
        kill_by_environment(f"{RUN_ID_VARIABLE}={self._mark}")


async def run_in_thread(work: Callable[[], None]) -> None:
    """Run a blocking function in a thread, or directly if the interpreter is shutting down."""
    try:
        running = asyncio.get_running_loop().run_in_executor(None, work)
    except RuntimeError:
        work()
    else:
        await running


def _start_server(launch: Launch, runner: Runner) -> tuple[SupervisorHandle, str, tuple[int, int, int]]:
    """Have a supervisor start the server; returns its handle, run id and our ends of the pipes."""
    mark = secrets.token_hex(8)
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    ours_err, theirs_err = os.pipe()
    ours, theirs = (ours_in, ours_out, ours_err), (theirs_in, theirs_out, theirs_err)
    answer: CommandStarted | RefusalAnswer = RefusalAnswer(refused="no supervisor")
    hired = SUPERVISORS.take()
    try:
        with confined_launch(runner, launch) as confined:
            hired.send_order(start_order(confined, mark), (*theirs, *extra_fds(confined)))
            answer, _ = receive_message_and_fds(hired.line)
    except PeerGone:
        hired.dismiss()
    except HostError as failure:
        answer = RefusalAnswer(refused=str(failure))
    finally:
        _close_fds(theirs)
        if "refused" in answer:
            _close_fds(ours)
    if "refused" in answer:
        if hired.process.poll() is None:
            SUPERVISORS.give_back(hired)
        raise ServerNotStarted(str(answer["refused"]))
    return hired, mark, ours


def _close_fds(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
