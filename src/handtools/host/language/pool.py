"""The pool: servers of this process, one for each project, started when needed and ended when idle."""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from handtools.core.errors import HostError
from handtools.core.language import Diagnostic
from handtools.host.language.child import NotStarted
from handtools.host.language.client import Client, Lost, Refused, Silent
from handtools.host.language.depending import Heads

BACK_OFF = (0.0, 1.0, 4.0)
"""Seconds before a server that ended is started again; after the last it is parked."""
FORGIVEN_SECONDS = 60.0
"""A server that ran this long is not held to its earlier ends."""
PARKED_SECONDS = 300.0
IDLE_SECONDS = 600.0
LOOK_SECONDS = 5.0
SERVERS = 4
MEMORY_BYTES = 2 << 30
BASELINES = 512

Key = tuple[object, ...]
Start = Callable[[], Awaitable[Client]]


class NotReady(Exception):
    """There is no server to ask now; the reason is for the model."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last proved verdict about a file, and the text it was about."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


@dataclass(slots=True)
class Seat:
    """A place for one server of one project: it outlives the server's processes."""

    name: str
    start: Start
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    owners: set[object] = field(default_factory=set)
    baselines: OrderedDict[str, Baseline] = field(default_factory=OrderedDict)
    heads: Heads = field(default_factory=Heads)
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When each open file was last seen on disk, and its size."""
    client: Client | None = None
    starting: asyncio.Task[Client] | None = None
    began: float = 0.0
    ends: int = 0
    """How often it ended without having run for long."""
    again_at: float = 0.0
    fault: str = ""
    used: float = 0.0

    def keep(self, uri: str, baseline: Baseline) -> None:
        """Note the newest proved verdict."""
        self.baselines[uri] = baseline
        self.baselines.move_to_end(uri)
        while len(self.baselines) > BASELINES:
            self.baselines.popitem(last=False)


class Pool:
    """All seats of this process. Lives on one event loop."""

    def __init__(
        self, *, most: int = SERVERS, memory_bytes: int = MEMORY_BYTES, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self.seats: dict[Key, Seat] = {}
        self._most = most
        self._memory = memory_bytes
        self._idle = idle_seconds
        self._keeper: asyncio.Task[None] | None = None

    def seat(self, key: Key, name: str, start: Start, owner: object) -> Seat:
        """The place of a server; the same for all who ask for the same project."""
        seat = self.seats.get(key)
        if seat is None:
            seat = self.seats[key] = Seat(name, start)
        seat.owners.add(owner)
        seat.used = time.monotonic()
        return seat

    async def client(self, seat: Seat, deadline: float) -> Client:
        """A server that can be asked, started if need be; raises `NotReady` when there is none in time."""
        seat.used = time.monotonic()
        if seat.client is not None and seat.client.alive:
            return seat.client
        if seat.starting is None:
            self._note_end(seat)
            pause = seat.again_at - time.monotonic()
            if pause > max(deadline - time.monotonic(), 0.0):
                parked = (
                    "given up for some minutes" if seat.ends >= len(BACK_OFF) else "starting again soon"
                )
                raise NotReady(f"{parked}: {seat.fault}")
            seat.starting = asyncio.create_task(self._start(seat, max(pause, 0.0)))
        starting = seat.starting
        await asyncio.wait([starting], timeout=max(deadline - time.monotonic(), 0.0))
        if not starting.done():
            raise NotReady("still starting")
        if starting.cancelled():
            raise NotReady("it was ended")
        try:
            return starting.result()
        except (NotStarted, HostError, Lost, Refused, Silent) as failure:
            raise NotReady(seat.fault or str(failure)) from failure

    async def let_go(self, owner: object) -> None:
        """End the servers that nobody else uses."""
        for key, seat in list(self.seats.items()):
            seat.owners.discard(owner)
            if not seat.owners:
                self.seats.pop(key, None)
                await self._stop(seat)

    async def close(self) -> None:
        """End all servers."""
        if self._keeper is not None:
            self._keeper.cancel()
        seats = list(self.seats.values())
        self.seats.clear()
        await asyncio.gather(*(self._stop(seat) for seat in seats))

    async def tidy(self) -> None:
        """End what is idle, and what is too much."""
        now = time.monotonic()
        for seat in self._running():
            if now - seat.used > self._idle:
                await self._stop(seat)
        running = sorted(self._running(), key=lambda seat: seat.used)
        sizes = {id(seat): seat.client.child.memory_bytes() for seat in running if seat.client}
        total = sum(sizes.values())
        for seat in running:
            if total <= self._memory:
                return
            total -= sizes.get(id(seat), 0)
            await self._stop(seat)

    def _running(self) -> list[Seat]:
        return [seat for seat in self.seats.values() if seat.client is not None and seat.client.alive]

    async def _start(self, seat: Seat, pause: float) -> Client:
        try:
            await asyncio.sleep(pause)
            await self._make_room(seat)
            seat.began = time.monotonic()
            seat.client = await seat.start()
            seat.stamps.clear()
            if self._keeper is None:
                self._keeper = asyncio.create_task(self._keep())
            return seat.client
        except (NotStarted, HostError, Lost, Refused, Silent) as failure:
            seat.fault = str(failure) or type(failure).__name__
            self._push_back(seat)
            raise
        finally:
            seat.starting = None

    def _note_end(self, seat: Seat) -> None:
        """A server that has ended is started again, later each time."""
        client, seat.client = seat.client, None
        if client is not None and client.fault:
            if time.monotonic() - seat.began > FORGIVEN_SECONDS:
                seat.ends = 0
            seat.fault = client.fault
            self._push_back(seat)

    def _push_back(self, seat: Seat) -> None:
        seat.again_at = time.monotonic() + (*BACK_OFF, PARKED_SECONDS)[seat.ends]
        seat.ends = min(seat.ends + 1, len(BACK_OFF))

    async def _make_room(self, wanted: Seat) -> None:
        others = sorted(
            (each for each in self._running() if each is not wanted), key=lambda seat: seat.used
        )
        for seat in others[: max(len(others) + 1 - self._most, 0)]:
            await self._stop(seat)

    async def _stop(self, seat: Seat) -> None:
        if seat.starting is not None:
            starting = seat.starting
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, NotStarted, HostError, Lost, Refused, Silent):
                await starting
        client, seat.client = seat.client, None
        if client is not None:
            await client.stop()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.tidy()
