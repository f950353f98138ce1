"""The proxy: connects a confined command to the hosts on its list, notes every attempt, and resolves names itself.

It has a thread and a loop of its own: a background job outlives the loop that started it.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from handtools.core.visits import Visit
from handtools.host.commands.network.reading import (
    HEAD_BYTES,
    Outcome,
    Unreadable,
    Wish,
    http_answer,
    read_wish,
    socks_answer,
)
from handtools.text.addresses import literal, refusal
from handtools.text.hosts import Hosts, normal

Tell = Callable[[Visit], None]
Side = tuple[asyncio.StreamReader, asyncio.StreamWriter]

PIECE_BYTES = 64 << 10
MOST_CONNECTIONS = 128
"""At once; more wait their turn in the kernel's queue."""
MOST_NOTED = 1_000
"""Attempts that are kept one by one; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the proxy waits, in seconds."""

    wish: float = 15.0
    connect: float = 20.0
    silence: float = 600.0


@dataclass(slots=True)
class Flow:
    """Bytes on their way in one direction."""

    source: asyncio.StreamReader
    target: asyncio.StreamWriter
    size: int | None = None
    bytes: int = 0

    async def run(self, silence: float) -> None:
        """Until the source ends, or the size is reached."""
        while self.size is None or self.bytes < self.size:
            most = PIECE_BYTES if self.size is None else min(PIECE_BYTES, self.size - self.bytes)
            async with asyncio.timeout(silence):
                piece = await self.source.read(most)
            if not piece:
                break
            self.target.write(piece)
            self.bytes += len(piece)
            await self.target.drain()
        if self.size is None and self.target.can_write_eof():
            self.target.write_eof()


class Refused(Exception):
    """Not on the list, or its name leads where nobody may go."""


@dataclass(slots=True)
class Proxy:
    """Serves one listening socket until it is closed."""

    hosts: Hosts
    tell: Tell = lambda _: None
    patience: Patience = Patience()
    visits: list[Visit] = field(default_factory=list)
    """What was tried, in the order in which it ended; the log."""
    unnoted: int = 0
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_CONNECTIONS))

    def start(self, line: socket.socket) -> None:
        """Wait for a listening socket to come over the line, and serve it; returns at once."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, line), name="handtools-proxy", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close every connection; the line must be shut by now."""
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self, loop: asyncio.AbstractEventLoop, line: socket.socket) -> None:
        try:
            _, fds, _, _ = socket.recv_fds(line, 1, 1)
            if fds:
                loop.run_until_complete(self._serve(socket.socket(fileno=fds[0])))
        except OSError:  # shut before anything came
            return
        finally:
            # A lookup that hangs is left to its thread: nobody waits for its answer any more.
            loop.close()

    async def _serve(self, listening: socket.socket) -> None:
        listening.settimeout(0)
        server = await asyncio.start_server(self._meet, sock=listening, limit=HEAD_BYTES)
        await self._closing.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._places:
                await self._attend(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass  # the client went away, or we are closing
        finally:
            writer.close()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self.patience.wish):
                wish = await read_wish(reader, writer)
        except Unreadable as refusal:
            writer.write(http_answer("unsupported", f"{refusal}."))
            await writer.drain()
            return
        visit = Visit(host=normal(wish.host), port=wish.port)
        try:
            visit = await self._vetted(visit)
            there = await self._connected(visit)
        except Refused as no:
            await self._turn_away(writer, wish, "refused", replace(visit, refused=str(no)))
        except (OSError, TimeoutError) as error:
            why = f"{visit.host}:{visit.port} can't be reached: {error or 'no answer'}."
            await self._turn_away(writer, wish, "unreachable", replace(visit, refused=why))
        else:
            await self._carry(wish, visit, (reader, writer), there)

    async def _vetted(self, visit: Visit) -> Visit:
        """Where the host is, if it is on the list and its addresses are fit to go to."""
        if not self.hosts.lists(visit.host, visit.port):
            raise Refused(f"{visit.host}:{visit.port} is not on the list of hosts for this command.")
        found = await asyncio.get_running_loop().getaddrinfo(
            visit.host, visit.port, type=socket.SOCK_STREAM, flags=_flags(visit.host)
        )
        addresses = dict.fromkeys(str(place[4][0]) for place in found)
        reasons = {each: refusal(each, but=self.hosts.networks) for each in addresses}
        fit = [each for each, reason in reasons.items() if not reason]
        if not fit:
            raise Refused(f"{visit.host} leads where no command may go: {' '.join(reasons.values())}")
        return replace(visit, addresses=tuple(fit))

    async def _connected(self, visit: Visit) -> Side:
        """To the address that was vetted, never to the name again: it might lead elsewhere by now."""
        failure: OSError | TimeoutError = OSError("no address")
        for address in visit.addresses:
            try:
                async with asyncio.timeout(self.patience.connect):
                    return await asyncio.open_connection(address, visit.port)
            except (OSError, TimeoutError) as error:
                failure = error
        raise failure

    async def _turn_away(
        self, writer: asyncio.StreamWriter, wish: Wish, how: Outcome, visit: Visit
    ) -> None:
        self._note(visit)
        answer = socks_answer(how) if wish.kind == "socks" else http_answer(how, visit.refused)
        writer.write(answer)
        await writer.drain()

    async def _carry(self, wish: Wish, visit: Visit, here: Side, there: Side) -> None:
        """Both ways, until both sides are done."""
        self.tell(visit)
        up, down = Flow(here[0], there[1], wish.body_bytes), Flow(there[0], here[1])
        if wish.kind == "request":
            there[1].write(wish.first)
        else:
            here[1].write(socks_answer("open") if wish.kind == "socks" else http_answer("open"))
        going = asyncio.create_task(up.run(self.patience.silence))
        try:
            await down.run(self.patience.silence)
            if wish.kind != "request":
                await going
        finally:
            going.cancel()
            there[1].close()
            sent = up.bytes + len(wish.first)
            self._note(replace(visit, sent_bytes=sent, received_bytes=down.bytes), told=True)

    def _note(self, visit: Visit, *, told: bool = False) -> None:
        if len(self.visits) < MOST_NOTED:
            self.visits.append(visit)
        else:
            self.unnoted += 1
        if not told:
            self.tell(visit)


def _flags(host: str) -> int:
    """An address is not looked up."""
    return socket.AI_NUMERICHOST if literal(host) is not None else 0
