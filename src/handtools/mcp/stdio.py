"""The stdio server: one client, one process, one workspace, over this process's standard streams.

The SDK's own transport hands every line to a worker thread, three times per call; that is most of what a call
costs there. Where the streams are not pipes (a file, another system) it is used all the same. Nothing heavy is
imported at the top: a client waits for the first answer. ADR 70.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from handtools.core.errors import HandtoolsError
from handtools.host.files.user_folders import policy_file
from handtools.mcp.handshake import Handshake, Json, written_tools_list

if TYPE_CHECKING:
    from handtools.mcp.tool_calls import ConnectionTools
    from handtools.toolbox import Toolbox

MOST_LINE_BYTES = 64 << 20


@asynccontextmanager
async def standard_streams(listed: Callable[[], Json]) -> AsyncIterator[tuple[Any, Any]]:
    """Both directions, for the SDK's loop, once the client was greeted.

    Meanwhile stray prints go to stderr, and children read nothing.
    """
    with _private_streams() as (incoming, outgoing):
        reader = asyncio.StreamReader(limit=MOST_LINE_BYTES)
        connected = await _connect_pipes(reader, incoming, outgoing)
        if connected is not None:
            taking, giving, flow = connected
            greeting = Handshake(listed, giving.write)
            await greeting.greet(reader)
            try:
                yield StdinMessages(reader, greeting.heard), StdoutMessages(giving, flow, greeting.silent)
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
    """Both streams in the event loop's hands; None where they are no pipes."""
    modes = [os.fstat(file.fileno()).st_mode for file in (incoming, outgoing)]
    if sys.platform == "win32" or not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes):
        return None
    loop = asyncio.get_running_loop()
    taking, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    giving, flow = await loop.connect_write_pipe(_WriteFlow, outgoing)
    return taking, giving, flow


class StdinMessages:
    """Messages as they arrive; a line that is none arrives as the problem with it."""

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
        """The next message."""
        import anyio

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Nothing more is read."""

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
    """Says when the client has room again."""

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
    """Messages as lines; waits while the client does not read."""

    def __init__(self, pipe: asyncio.WriteTransport, flow: _WriteFlow, silent: set[str | int]) -> None:
        self._pipe, self._flow, self._silent = pipe, flow, silent

    async def send(self, item: Any) -> None:
        """Write one message."""
        import anyio

        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        if self._silent and self._said(item.message):
            return
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode() + b"\n")
        await self._flow.room.wait()

    async def aclose(self) -> None:
        """What was written still goes out."""

    def _said(self, message: Any) -> bool:
        """Whether this answers what the greeting has answered; our own requests count from the same number."""
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
    """Private copies of stdin and stdout; in their places an empty file, and stderr."""
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
            # Closed already where a transport owned it; then the process ends, and nobody needs the place.
            with contextlib.suppress(ValueError, OSError):
                os.dup2(file.fileno(), place)
            file.close()


SIGTERM_STATUS = 128 + signal.SIGTERM
"""The exit status of programs that SIGTERM ended."""


def serve_stdio(toolbox: "Toolbox", root: Path | None = None) -> None:
    """Serve a toolbox on this process's standard streams until the client leaves.

    With the folder that the toolbox works in, it keeps to the client's roots inside that.
    """
    serve_when_opened(lambda: toolbox, root, None)


def serve_when_opened(
    open_toolbox: Callable[[], "Toolbox"], root: Path | None, listed: "Json | None"
) -> None:
    """Serve a toolbox that is opened after the greeting where its tools are known already."""
    try:
        asyncio.run(_serve(open_toolbox, root, listed))
    except asyncio.CancelledError:
        raise SystemExit(SIGTERM_STATUS) from None


async def _serve(open_toolbox: Callable[[], "Toolbox"], root: Path | None, listed: "Json | None") -> None:
    _cancel_on_sigterm()

    @cache
    def desk() -> "ConnectionTools":
        from handtools.mcp.tool_calls import ConnectionTools

        # Request ids begin anew with each process, so they count within this one only.
        nonce = secrets.token_hex(8)
        return ConnectionTools(open_toolbox(), agent="", session=f"mcp-{nonce[:8]}", scope=nonce)

    async with standard_streams(lambda: listed or desk().listed) as (reading, writing), desk().open():
        await _run_sdk_loop(desk(), root, reading, writing)


def _cancel_on_sigterm() -> None:
    """End as on Ctrl-C, calls that run recorded as cancelled: some clients that leave send it at once."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


async def _run_sdk_loop(desk: "ConnectionTools", root: Path | None, reading: Any, writing: Any) -> None:
    from handtools.mcp.server import import_sdk_lazily

    import_sdk_lazily()
    from mcp.server.runner import serve_dual_era_loop

    from handtools.mcp.roots import Roots
    from handtools.mcp.server import server_for

    registry = cast("Any", server_for(desk, Roots(desk, root) if root is not None else None))
    await serve_dual_era_loop(registry, reading, writing, lifespan_state={})


def serve_folder(
    folder: str,
    *,
    preset: str = "coding",
    policy: Path | None = None,
    unattended: str | None = None,
    block: Sequence[str] = (),
    runner: str = "",
    sampling: bool = False,
) -> None:
    """Serve the tools of a folder until the client leaves; what goes wrong is said on stderr."""
    # The protocol owns stdout; clients keep what comes on stderr as the server's log.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    root = Path(os.path.expanduser(folder)).absolute()
    if find_spec("mcp") is None:
        sys.exit("handtools: the `mcp` package is missing: pip install 'handtools-slim[mcp]'")
    if not root.is_dir():
        sys.exit(f"handtools: {root} is no folder. Name one that is there: handtools mcp FOLDER")

    def opening() -> "Toolbox":
        from handtools.mcp.presets import open_preset

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
        usual = preset == "coding" and not block and policy_file(root, policy) is None
        serve_when_opened(opening, root, written_tools_list() if usual else None)
    except HandtoolsError as problem:
        sys.exit(_failure_text(problem))
    except ExceptionGroup as group:
        # What fails after the greeting fails beside the tasks that talk to the client.
        problems, others = group.split(HandtoolsError)
        if problems is None or others is not None:
            raise
        sys.exit(_failure_text(problems))
    except KeyboardInterrupt:
        sys.exit(130)


def _failure_text(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return f"handtools: {problem} `handtools doctor` looks at this machine."
