"""A socket server with its own thread and event loop, because connections may outlive the caller's loop.

Used for the network proxy of a command and the published ports of a job.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

StreamPair = tuple[asyncio.StreamReader, asyncio.StreamWriter]

RELAY_BYTES = 64 << 10
_ACCEPT_RETRY_SECONDS = 0.1
_LAST_BYTES_SECONDS = 20.0
"""How long a client may take to receive the remaining bytes before its connection is closed."""


@dataclass(slots=True)
class ByteRelay:
    """Copies bytes from one connection to another, in one direction."""

    source: asyncio.StreamReader
    target: asyncio.StreamWriter
    size: int | None = None
    bytes: int = 0

    async def run(self, silence: float) -> None:
        """Copy bytes until EOF, until `size` is reached, or until `silence` seconds pass without data."""
        while self.size is None or self.bytes < self.size:
            most = RELAY_BYTES if self.size is None else min(RELAY_BYTES, self.size - self.bytes)
            async with asyncio.timeout(silence):
                piece = await self.source.read(most)
            if not piece:
                break
            self.target.write(piece)
            self.bytes += len(piece)
            async with asyncio.timeout(silence):
                await self.target.drain()
        if self.size is None and self.target.can_write_eof():
            self.target.write_eof()


@dataclass(slots=True)
class RelayServer:
    """Serves the connections of one listening socket, a limited number concurrently, until it is stopped."""

    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    """Serves one connection, which is closed when it returns; it may raise if the connection breaks."""
    most_connections: int
    """How many connections are served concurrently; more wait in the kernel's queue."""
    read_limit: int = RELAY_BYTES
    """The maximum number of bytes a reader searches for a separator."""
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def start(self, listening: socket.socket) -> None:
        """Start serving a listening socket, which `stop` closes; returns immediately."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, listening), name="handtools-relay", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the socket and all connections and stop the thread."""
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has already stopped
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        try:
            with listening:
                loop.run_until_complete(self._serve_until_closing(listening))
        finally:
            # Don't wait for executor threads: a hanging DNS lookup's result is no longer needed.
            loop.close()

    async def _serve_until_closing(self, listening: socket.socket) -> None:
        listening.settimeout(0)
        accepting = asyncio.create_task(self._accept(listening))
        await self._closing.wait()
        accepting.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(accepting, *self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports are really closed in the loop's next iteration

    async def _accept(self, listening: socket.socket) -> None:
        loop, places = asyncio.get_running_loop(), asyncio.Semaphore(self.most_connections)
        while True:
            await places.acquire()
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:  # the client already disconnected, or we are out of file descriptors
                places.release()
                await asyncio.sleep(_ACCEPT_RETRY_SECONDS)
                continue
            task = asyncio.create_task(self._serve_connection(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: places.release())

    async def _serve_connection(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=self.read_limit)
        try:
            await self.serve(reader, writer)
            writer.close()
            async with asyncio.timeout(_LAST_BYTES_SECONDS):
                await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client disconnected, or doesn't read the data
        finally:
            writer.transport.abort()
