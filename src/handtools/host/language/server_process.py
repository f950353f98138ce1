"""A language server's process in its sandbox, and the messages on its streams.

A supervisor kills the server when this process exits.
"""

import asyncio
import contextlib
import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from handtools.core.commands import CommandLimits
from handtools.core.errors import HostError
from handtools.host.language.servers import FoundServer
from handtools.host.sandbox.environment_variables import command_environment
from handtools.host.sandbox.launch import Launch, Runner, confined_launch
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
from handtools.host.sandbox.program_dependencies import (
    contains_home_folder,
    folders_needed_by_program,
    interpreter_folders,
)
from handtools.host.sandbox.runners.command_user import workspace_owner
from handtools.host.sandbox.supervisor_messages import CommandStarted, RefusalAnswer
from handtools.text.search.glob import PathGlobs

STREAM_BUFFER_BYTES = 1 << 20
STDERR_TAIL_CHARS = 300
SERVER_END_SECONDS = 8.0
"""Seconds after which an unresponsive supervisor is killed."""
LSP_HEADER_BYTES = 4 << 10
LSP_BODY_BYTES = 64 << 20
"""The largest message body accepted from a server, in bytes."""
SERVER_LIFETIME_SECONDS = 10 * 365 * 86400.0
"""Time limit of a server process in seconds: practically none, because idle servers are stopped."""
_PACKAGE_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "GOROOT", "GOPATH", "JAVA_HOME")
"""Environment variables that name package folders outside the project."""
_ALWAYS_READABLE = ("/usr", "/etc", "/opt", "/bin", "/lib")

LspMessage = dict[str, Any]


class ServerFailure(Exception):
    """Raised when a language server gives no result; the message is the reason."""


class ServerLost(ServerFailure):
    """Raised when a language server did not start, has exited, or sends invalid messages."""


class ServerProcess:
    """A language server's process with asynchronous streams; used on one event loop only."""

    def __init__(self, supervisor: SupervisorHandle, run_id: str, fds: tuple[int, int, int]) -> None:
        self._supervisor = supervisor
        self._run_id = run_id
        self._fds = fds
        self._stderr_tail: deque[bytes] = deque(maxlen=20)
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
            with contextlib.suppress(ServerLost):
                supervisor, _, fds = await beginning
                _close_fds(fds)
                await loop.run_in_executor(None, supervisor.dismiss)
            raise
        await child._connect_streams()
        return child

    async def _connect_streams(self) -> None:
        loop = asyncio.get_running_loop()
        sink, source, errors = self._fds
        reading = asyncio.StreamReaderProtocol(self.reader)
        transport, _ = await loop.connect_read_pipe(lambda: reading, os.fdopen(source, "rb", 0))
        stderr = asyncio.StreamReader(STREAM_BUFFER_BYTES)
        other, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stderr), os.fdopen(errors, "rb", 0)
        )
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(sink, "wb", 0)
        )
        self._writer = asyncio.StreamWriter(writing, protocol, None, loop)
        self._transports = [transport, other, writing]
        self._tasks = [
            asyncio.create_task(self._read_stderr(stderr)),
            asyncio.create_task(self._wait_for_exit()),
        ]

    @property
    def over(self) -> bool:
        """Whether the server and all processes it started have exited."""
        return self._over.is_set()

    @property
    def complaint(self) -> str:
        """The end of the server's stderr output."""
        text = b"".join(self._stderr_tail).decode(errors="replace").strip()
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
            self._ending = asyncio.create_task(self._kill_and_close_streams())
        await asyncio.shield(self._ending)

    async def _kill_and_close_streams(self) -> None:
        if not self.over:
            with contextlib.suppress(PeerGone):
                self._supervisor.send_order({"order": "end", "gently": False})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), SERVER_END_SECONDS)
            if not self.over:
                await run_in_thread(self._kill_supervisor_and_server)
                self._over.set()
        for task in self._tasks:
            task.cancel()
        for transport in self._transports:
            transport.close()

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(4096):
            self._stderr_tail.append(data)

    async def _wait_for_exit(self) -> None:
        """Wait for the supervisor's message that the server has exited."""
        loop = asyncio.get_running_loop()
        line = self._supervisor.line
        ready = asyncio.Event()
        loop.add_reader(line.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(line.fileno())
        await run_in_thread(self._return_supervisor)
        self._over.set()

    def _return_supervisor(self) -> None:
        try:
            receive_message_and_fds(self._supervisor.line)
        except PeerGone:
            self._kill_supervisor_and_server()
        else:
            SUPERVISORS.give_back(self._supervisor)

    def _kill_supervisor_and_server(self) -> None:
        self._supervisor.process.kill()
        self._supervisor.dismiss()
        for folder in self._supervisor.folders:
            cgroups.kill_cgroup(folder)
        kill_by_environment(f"{RUN_ID_VARIABLE}={self._run_id}")


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
    run_id = secrets.token_hex(8)
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    ours_err, theirs_err = os.pipe()
    ours, theirs = (ours_in, ours_out, ours_err), (theirs_in, theirs_out, theirs_err)
    answer: CommandStarted | RefusalAnswer = RefusalAnswer(refused="no supervisor")
    supervisor = SUPERVISORS.take()
    try:
        with confined_launch(runner, launch) as confined:
            supervisor.send_order(start_order(confined, run_id), (*theirs, *extra_fds(confined)))
            answer, _ = receive_message_and_fds(supervisor.line)
    except PeerGone:
        supervisor.dismiss()
    except HostError as failure:
        answer = RefusalAnswer(refused=str(failure))
    finally:
        _close_fds(theirs)
        if "refused" in answer:
            _close_fds(ours)
    if "refused" in answer:
        if supervisor.process.poll() is None:
            SUPERVISORS.give_back(supervisor)
        raise ServerLost(str(answer["refused"]))
    return supervisor, run_id, ours


def _close_fds(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


def server_launch(
    found_server: FoundServer, workspace: str, cache: Path, private_globs: Sequence[PathGlobs]
) -> Launch:
    """How to launch a language server: it can write only to its cache folder and has no network."""
    folder = cache / found_server.server.name
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if (owner := workspace_owner(workspace)) is not None:
        os.chown(folder, *owner)
    own = {
        name: value.replace("{cache}", str(folder))
        for name, value in found_server.server.environment.items()
    }
    layers = [os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)]
    home = Path(os.environ.get("HOME", "/"))
    outside = [
        *folders_needed_by_program(found_server.program, workspace),
        *(place for place in os.environ.get("PATH", "").split(os.pathsep) if place),
        *layers,
        *(str(home / each) for each in found_server.server.readable),
        *(
            folder
            for name in (".venv", "venv")
            for folder in interpreter_folders(os.path.join(found_server.root, name, "bin", "python"))
        ),
    ]
    path = os.pathsep.join([os.path.dirname(found_server.program), os.environ.get("PATH", os.defpath)])
    more = {name: os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)}
    return Launch(
        argv=(found_server.program, *found_server.server.command[1:]),
        env=command_environment(
            {**more, "PATH": path, "XDG_CACHE_HOME": str(folder), **own}, frozenset(), terminal=False
        ),
        cwd=found_server.root,
        root=workspace,
        private_globs=tuple(private_globs),
        frozen=True,
        readable=tuple(
            each
            for each in dict.fromkeys(outside)
            if os.path.isdir(each)
            and not each.startswith(_ALWAYS_READABLE)
            and not contains_home_folder(each)
            and not Path(workspace).is_relative_to(os.path.realpath(each))
        ),
        writable=(str(folder),),
        limits=CommandLimits(seconds=SERVER_LIFETIME_SECONDS, processes=4096),
    )


class InvalidMessage(Exception):
    """Raised when bytes from a server are not a valid LSP message."""


def encode_message(message: LspMessage) -> bytes:
    """Encode an LSP message with its Content-Length header."""
    whole = {"jsonrpc": "2.0", **message}
    try:
        data = to_json(whole)
    except PydanticSerializationError:
        # Text may contain lone surrogates, which only the slower encoder can replace.
        data = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


async def read_message(stream: asyncio.StreamReader) -> LspMessage | None:
    """Read the next LSP message from a stream; None at its end; raises `InvalidMessage`."""
    try:
        header = await stream.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as end:
        if end.partial.strip():
            raise InvalidMessage(f"its output ended inside a header: {end.partial[:80]!r}") from end
        return None
    except asyncio.LimitOverrunError as error:
        raise InvalidMessage("its output has no header") from error
    if len(header) > LSP_HEADER_BYTES:
        raise InvalidMessage("its header is too long")
    size = _content_length(header)
    try:
        body = json.loads(await stream.readexactly(size))
    except asyncio.IncompleteReadError as end:
        raise InvalidMessage("its output ended inside a message") from end
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"not JSON: {error}") from error
    if not isinstance(body, dict):
        raise InvalidMessage("not a JSON object")
    return body


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            size = int(value)
            if size > LSP_BODY_BYTES:
                raise InvalidMessage(f"message too large ({size} bytes)")
            return size
    raise InvalidMessage(f"no Content-Length: {header[:80]!r}")
