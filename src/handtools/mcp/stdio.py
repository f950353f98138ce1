"""The MCP server over stdio: one client, one process, one workspace.

Pipes and sockets are read and written by the event loop, and `StdioSession` answers. For anything else (a file,
or Windows) the SDK's transport is used, which passes every line through a worker thread. Nothing heavy is
imported at module level, because the client is waiting for the first response.
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
from typing import TYPE_CHECKING, Any, cast

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
    from handtools.mcp.confinement_to_roots import ClientRootsEnforcer
    from handtools.mcp.served_toolbox import ServedToolbox
    from handtools.mcp.tool_calls import ConnectionTools
    from handtools.toolbox import Toolbox

MAX_STDIN_LINE_BYTES = 64 << 20


class OutputPipe(asyncio.Protocol):
    """Writes lines to stdout, and knows whether the client reads fast enough."""

    def __init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()
        self.pipe: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.pipe = cast("asyncio.WriteTransport", transport)

    def write(self, line: bytes) -> None:
        """Write a line; do nothing if the client is gone."""
        if not self.pipe.is_closing():
            self.pipe.write(line)

    async def wait_for_room(self) -> None:
        """Wait while the client reads more slowly than we write."""
        await self._room.wait()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self._room.set()


@asynccontextmanager
async def _connected_pipes(
    incoming: Any, outgoing: Any
) -> AsyncIterator[tuple[asyncio.StreamReader, OutputPipe]]:
    """Connect stdin and stdout, which are pipes or sockets, to the event loop."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=MAX_STDIN_LINE_BYTES)
    taking, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    _, output = await loop.connect_write_pipe(OutputPipe, outgoing)
    try:
        yield reader, output
    finally:
        taking.close()
        output.pipe.close()


def _are_pipes(*descriptors: int) -> bool:
    """Whether the event loop can read and write these files: pipes or sockets, but not on Windows."""
    modes = [os.fstat(descriptor).st_mode for descriptor in descriptors]
    return sys.platform != "win32" and all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


async def _all_lines(heard: list[bytes], reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines that were already read, and those that follow until the end of input."""
    for line in heard:
        yield line
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # The line is too long.
            continue
        if not line:
            return
        yield line


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
    def connection_tools() -> "ConnectionTools[Any]":
        from pydantic import BaseModel, TypeAdapter

        # Build models on first use: the SDK and the tools define 400, but a session uses only a few dozen.
        BaseModel.model_config["defer_build"] = True
        TypeAdapter._defer_build = True  # type: ignore[method-assign, assignment] # noqa: SLF001 - there is no public setting
        from handtools.mcp.tool_calls import ConnectionTools

        # Request ids start over in each process, so they are unique only within this one.
        nonce = secrets.token_hex(8)
        return ConnectionTools(open_toolbox(), agent="", session=f"mcp-{nonce[:8]}", scope=nonce)

    if _are_pipes(0, 1):
        with _private_streams() as files:
            async with _connected_pipes(*files) as (reader, output):
                responder = HandshakeResponder(
                    lambda: listed or connection_tools().listed, output.write, capabilities=capabilities
                )
                await responder.greet(reader)
                await _serve_session(connection_tools(), root, responder, reader, output)
    else:
        serve = _load_sdk_loop(connection_tools(), _roots_enforcer(connection_tools(), root))
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (reading, writing), connection_tools().open():
            await serve(reading, writing)
    _end_session(connection_tools())


async def _serve_session(
    connection_tools: "ConnectionTools[Any]",
    root: Path | None,
    responder: HandshakeResponder,
    reader: asyncio.StreamReader,
    output: OutputPipe,
) -> None:
    from handtools.mcp.stdio_session import StdioSession

    roots = _roots_enforcer(connection_tools, root)
    session = StdioSession(
        connection_tools, roots, output, partial(_load_sdk_loop, connection_tools, roots), responder.silent
    )
    _collect_garbage_from_now()
    async with connection_tools.open():
        await session.run(_all_lines(responder.heard, reader))


def _roots_enforcer(
    connection_tools: "ConnectionTools[Any]", root: Path | None
) -> "ClientRootsEnforcer | None":
    from handtools.mcp.confinement_to_roots import ClientRootsEnforcer

    return ClientRootsEnforcer(connection_tools, root) if root is not None else None


def _end_session(connection_tools: "ConnectionTools[Any]") -> None:
    """Delete the session's $HOME and /tmp, which no other process uses."""
    from handtools.host.commands.local_commands import LocalCommands
    from handtools.toolbox import Toolbox

    commands = (
        connection_tools.toolbox.workspace.commands
        if isinstance(connection_tools.toolbox, Toolbox)
        else None
    )
    if isinstance(commands, LocalCommands):
        commands.end_session(connection_tools.session)


def _cancel_on_sigterm() -> None:
    """Cancel the server's task on SIGTERM, so that running calls are recorded as cancelled."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


def _load_sdk_loop(
    connection_tools: "ConnectionTools[Any]", roots: "ClientRootsEnforcer | None"
) -> Callable[[Any, Any], Awaitable[None]]:
    """Import the SDK and return its loop over two streams of messages."""
    from handtools.mcp.server import build_mcp_server, import_sdk_lazily

    gc.disable()
    import_sdk_lazily()
    from mcp.server.runner import serve_dual_era_loop

    registry = cast("Any", build_mcp_server(connection_tools, roots))
    _collect_garbage_from_now()
    return partial(serve_dual_era_loop, registry, lifespan_state={})


def _collect_garbage_from_now() -> None:
    """Enable the garbage collector, but not for what is loaded: that stays, and scanning it takes time."""
    gc.freeze()
    gc.enable()


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
