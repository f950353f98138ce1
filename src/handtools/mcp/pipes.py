"""Pipes: this process's standard streams as messages, without a thread between.

The SDK's own transport hands every line to a worker thread, three times per call; that is most of what a call
costs there. Where the streams are not pipes (a file, another system) it is used all the same.
"""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from handtools.mcp.greeting import Greeting, Json

LINE_BYTES = 64 << 20


@asynccontextmanager
async def standard_streams(listed: Callable[[], Json]) -> AsyncIterator[tuple[Any, Any]]:
    """Both directions, for the SDK's loop, once the client was greeted.

    Meanwhile stray prints go to stderr, and children read nothing.
    """
    with _claimed() as (incoming, outgoing):
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        connected = await _connected(reader, incoming, outgoing)
        if connected is not None:
            taking, giving, flow = connected
            greeting = Greeting(listed, giving.write)
            await greeting.greet(reader)
            try:
                yield Incoming(reader, greeting.heard), Outgoing(giving, flow, greeting.silent)
            finally:
                taking.close()
                giving.close()
            return
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        yield reading, writing


async def _connected(
    reader: asyncio.StreamReader, incoming: Any, outgoing: Any
) -> tuple[asyncio.ReadTransport, asyncio.WriteTransport, "_Flow"] | None:
    """Both streams in the event loop's hands; None where they are no pipes."""
    modes = [os.fstat(file.fileno()).st_mode for file in (incoming, outgoing)]
    if sys.platform == "win32" or not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes):
        return None
    loop = asyncio.get_running_loop()
    taking, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    giving, flow = await loop.connect_write_pipe(_Flow, outgoing)
    return taking, giving, flow


class Incoming:
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


class _Flow(asyncio.Protocol):
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


class Outgoing:
    """Messages as lines; waits while the client does not read."""

    def __init__(self, pipe: asyncio.WriteTransport, flow: _Flow, silent: set[str | int]) -> None:
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
def _claimed() -> Any:
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
