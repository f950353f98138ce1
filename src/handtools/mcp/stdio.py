"""The MCP server over stdio: one client, one process, one workspace.

The SDK's transport passes every line through a worker thread, three times per call, which is most of the
cost of a call. So we use that transport only if stdin and stdout are not pipes or sockets (a file, or
Windows). Nothing heavy is imported at module level, because the client is waiting for the first response.
"""

import asyncio
import contextlib
import gc
import logging
import os
import re
import secrets
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from handtools.core.errors import HandtoolsError
from handtools.host.files.config_files import config_file, policy_file, project_files, read_config_file
from handtools.host.workspace_folders import combined_workspace
from handtools.mcp.handshake import (
    REMOTE_WORKSPACE_CAPABILITIES,
    SERVER_CAPABILITIES,
    HandshakeResponder,
    Json,
    stored_tools_list,
)

if TYPE_CHECKING:
    from handtools.mcp.served_toolbox import ServedToolbox
    from handtools.mcp.tool_calls import ConnectionTools
    from handtools.toolbox import Toolbox

MAX_STDIN_LINE_BYTES = 64 << 20


@asynccontextmanager
async def open_stdio_after_handshake(
    listed: Callable[[], Json], capabilities: tuple[str, ...] = SERVER_CAPABILITIES
) -> AsyncIterator[tuple[Any, Any]]:
    """Answer the client's handshake on stdin and stdout, then yield both as streams for the SDK's loop.

    Until the block ends, stray prints go to stderr and child processes get an empty stdin.
    """
    with _private_streams() as (incoming, outgoing):
        reader = asyncio.StreamReader(limit=MAX_STDIN_LINE_BYTES)
        connected = await _connect_pipes(reader, incoming, outgoing)
        if connected is not None:
            taking, giving, flow = connected
            responder = HandshakeResponder(listed, giving.write, capabilities=capabilities)
            await responder.greet(reader)
            try:
                yield StdinMessages(reader, responder.heard), StdoutMessages(giving, flow, responder.silent)
            finally:
                taking.close()
                giving.close()
            return
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        yield reading, writing


async def _connect_pipes(
    reader: asyncio.StreamReader, incoming: Any, outgoing: Any
) -> tuple[asyncio.ReadTransport, asyncio.WriteTransport, "_WriteFlow"] | None:
    """Connect stdin and stdout to the event loop; None if they are not pipes or sockets."""
    modes = [os.fstat(file.fileno()).st_mode for file in (incoming, outgoing)]
    if sys.platform == "win32" or not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes):
        return None
    loop = asyncio.get_running_loop()
    taking, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    giving, flow = await loop.connect_write_pipe(_WriteFlow, outgoing)
    return taking, giving, flow


class StdinMessages:
    """Async stream of JSON-RPC messages from stdin. For an invalid line, it yields the exception."""

    def __init__(self, reader: asyncio.StreamReader, heard: list[bytes]) -> None:
        self._reader, self._heard = reader, heard

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        import mcp_types
        from mcp.shared.message import SessionMessage

        try:
            line = await self._line()
            if not line:
                raise StopAsyncIteration
            message = mcp_types.jsonrpc_message_adapter.validate_json(
                line.decode("utf-8", "replace"), by_name=False
            )
        except ValueError as problem:
            return problem
        return SessionMessage(message)

    async def receive(self) -> Any:
        """The next message; raises `anyio.EndOfStream` at the end of input."""
        import anyio

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Do nothing: `open_stdio_after_handshake` closes stdin."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _line(self) -> bytes:
        if self._heard:
            return self._heard.pop(0)
        line = b"\n"
        while line.isspace():
            line = await self._reader.readline()
        return line


class _WriteFlow(asyncio.Protocol):
    """Asyncio protocol for backpressure: its event is set while the client reads fast enough."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self.room.set()


class StdoutMessages:
    """Stream that writes JSON-RPC messages to stdout, one per line, and waits if the client is slow."""

    def __init__(self, pipe: asyncio.WriteTransport, flow: _WriteFlow, silent: set[str | int]) -> None:
        self._pipe, self._flow, self._silent = pipe, flow, silent

    async def send(self, item: Any) -> None:
        """Write one message as a line, unless the handshake already answered that request."""
        import anyio

        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        if self._silent and self._is_already_answered(item.message):
            return
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode() + b"\n")
        await self._flow.room.wait()

    async def aclose(self) -> None:
        """Do nothing: `open_stdio_after_handshake` closes stdout after flushing it."""

    def _is_already_answered(self, message: Any) -> bool:
        """Whether a message is a response to a request that the handshake already answered.

        Requests from the server can have the same ids, so they are excluded.
        """
        name = getattr(message, "id", None)
        if name not in self._silent or hasattr(message, "method"):
            return False
        self._silent.discard(name)
        return True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@contextlib.contextmanager
def _private_streams() -> Any:
    """Yield private copies of stdin and stdout.

    Within the block, fd 0 reads from /dev/null and fd 1 writes to stderr, so that stray prints do not break
    the protocol.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    reading, writing = os.fdopen(incoming, "rb", 0), os.fdopen(outgoing, "wb", 0)
    try:
        yield reading, writing
    finally:
        sys.stdout.flush()
        for file, place in ((reading, 0), (writing, 1)):
            # A transport may have closed the file. The fd isn't needed then: the process is exiting.
            with contextlib.suppress(ValueError, OSError):
                os.dup2(file.fileno(), place)
            file.close()


SIGTERM_STATUS = 128 + signal.SIGTERM
"""Exit status of a process killed by SIGTERM."""


def serve_stdio(toolbox: "Toolbox", root: Path | None = None) -> None:
    """Serve a toolbox over MCP on stdin and stdout until the client disconnects.

    With `root` (the toolbox's folder), tools are confined to the client's MCP roots inside it.
    """
    serve_when_opened(lambda: toolbox, root, None)


def serve_when_opened(
    open_toolbox: Callable[[], "Toolbox"], root: Path | None, listed: "Json | None"
) -> None:
    """Serve the toolbox that `open_toolbox` opens over stdio.

    With `listed` (the result of `tools/list`), the toolbox is opened only after the handshake, so that the
    client waits less.
    """
    _run_until_disconnected(lambda: _serve(open_toolbox, root, listed, SERVER_CAPABILITIES))


def serve_remote_over_stdio(
    open_toolbox: "Callable[[], AbstractAsyncContextManager[ServedToolbox]]",
) -> None:
    """Serve the tools of a remote workspace on stdin and stdout until the client disconnects.

    `open_toolbox` makes a `RemoteToolbox` or a `FleetToolbox`, which is entered here. Resources and prompts
    are not offered, because they need the journal, which is on the other machine.
    """

    async def serve() -> None:
        async with open_toolbox() as toolbox:
            await _serve(lambda: toolbox, None, None, REMOTE_WORKSPACE_CAPABILITIES)

    _run_until_disconnected(serve)


def _run_until_disconnected(serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    gc.disable()
    try:
        asyncio.run(serve())
    except asyncio.CancelledError:
        raise SystemExit(SIGTERM_STATUS) from None


async def _serve(
    open_toolbox: Callable[[], "ServedToolbox"],
    root: Path | None,
    listed: "Json | None",
    capabilities: tuple[str, ...],
) -> None:
    _cancel_on_sigterm()

    @cache
    def desk() -> "ConnectionTools[Any]":
        from pydantic import BaseModel, TypeAdapter

        # Build models on first use: the SDK and the tools define 400, but a session uses only a few dozen.
        BaseModel.model_config["defer_build"] = True
        TypeAdapter._defer_build = True  # type: ignore[method-assign, assignment] # noqa: SLF001 - there is no public setting
        from handtools.mcp.tool_calls import ConnectionTools

        # Request ids start over in each process, so they are unique only within this one.
        nonce = secrets.token_hex(8)
        return ConnectionTools(open_toolbox(), agent="", session=f"mcp-{nonce[:8]}", scope=nonce)

    async with open_stdio_after_handshake(lambda: listed or desk().listed, capabilities) as (
        reading,
        writing,
    ):
        run_sdk_loop = _load_sdk_loop(desk(), root)
        async with desk().open():
            await run_sdk_loop(reading, writing)
    _end_session(desk())


def _end_session(desk: "ConnectionTools[Any]") -> None:
    """Delete the session's $HOME and /tmp, which no other process uses."""
    from handtools.host.commands.local_commands import LocalCommands
    from handtools.toolbox import Toolbox

    commands = desk.toolbox.workspace.commands if isinstance(desk.toolbox, Toolbox) else None
    if isinstance(commands, LocalCommands):
        commands.end_session(desk.session)


def _cancel_on_sigterm() -> None:
    """Cancel the server's task on SIGTERM, so that running calls are recorded as cancelled."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


def _load_sdk_loop(
    desk: "ConnectionTools[Any]", root: Path | None
) -> Callable[[Any, Any], Awaitable[None]]:
    from handtools.mcp.server import import_sdk_lazily

    import_sdk_lazily()
    from mcp.server.runner import serve_dual_era_loop

    from handtools.mcp.confinement_to_roots import ClientRootsEnforcer
    from handtools.mcp.server import build_mcp_server

    registry = cast(
        "Any", build_mcp_server(desk, ClientRootsEnforcer(desk, root) if root is not None else None)
    )
    # Everything loaded so far stays loaded. Scanning it for garbage took a tenth of the startup time.
    gc.freeze()
    gc.enable()
    return partial(serve_dual_era_loop, registry, lifespan_state={})


_TOOL_LIST_KEY = re.compile(r"""^[ \t]*["']?(preset|tools|allow|block)["']?[ \t]*=""", re.MULTILINE)


def _may_change_tools(root: Path) -> bool:
    """Whether the user's configuration may change the default tools.

    Searches the text with a regex: importing the parser and the schema would delay the first response.
    """
    file = config_file(root)
    text = "" if file is None else read_config_file(file)
    return _TOOL_LIST_KEY.search(text) is not None


def serve_folders_over_stdio(
    folders: Sequence[str],
    *,
    preset: str | None = None,
    policy: Path | None = None,
    unattended: str | None = None,
    block: Sequence[str] = (),
    runner: str = "",
    sampling: bool = False,
) -> None:
    """Run the stdio MCP server on one or more folders, like `handtools mcp`, until the client disconnects.

    Errors exit the process with a message on stderr.
    """
    # stdout is for the protocol; clients keep stderr as the server's log.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    places = [Path(os.path.expanduser(folder)).absolute() for folder in folders]
    if find_spec("mcp") is None:
        sys.exit("handtools: the `mcp` package is missing: pip install 'handtools-slim[mcp]'")
    for place in places:
        if not place.is_dir():
            sys.exit(f"handtools: {place} is not a folder. Pass an existing one: handtools mcp FOLDER")
    try:
        root = combined_workspace(places)
    except HandtoolsError as problem:
        sys.exit(f"handtools: {problem}")

    def opening() -> "Toolbox":
        from handtools.mcp.served_toolbox import open_preset

        return open_preset(
            root,
            preset=preset,
            policy=policy,
            unattended=unattended,
            block=block,
            runner=runner,
            sampling=sampling,
        )

    try:
        changed = block or policy_file(root, policy) or project_files(root) or _may_change_tools(root)
        usual = preset in {None, "coding"} and not changed
        serve_when_opened(opening, root, stored_tools_list() if usual else None)
    except HandtoolsError as problem:
        sys.exit(_failure_text(problem))
    except ExceptionGroup as group:
        # After the handshake, the task group wraps errors in an ExceptionGroup.
        problems, others = group.split(HandtoolsError)
        if problems is None or others is not None:
            raise
        sys.exit(_failure_text(problems))
    except KeyboardInterrupt:
        sys.exit(130)


def _failure_text(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return f"handtools: {problem} Run `handtools doctor` to check this machine."
