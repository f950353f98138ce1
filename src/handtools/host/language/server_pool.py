"""Pool of running language servers, one per project, on one thread: started on demand, stopped when idle.

Servers outlive the caller's event loop, because a program may run a new loop for each call, or two at once.
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from handtools.core.errors import HostError
from handtools.core.language import Diagnostic
from handtools.host.language.lsp_client import LspClient
from handtools.host.language.server_process import ServerFailure

RESTART_DELAYS = (0.0, 1.0, 4.0)
"""Seconds to wait before restarting a crashed server, by number of crashes; after more crashes it stays off."""
SERVER_STABLE_SECONDS = 60.0
"""Seconds after which a running server's earlier crashes are forgotten."""
CRASHED_SERVER_OFF_SECONDS = 300.0
IDLE_SERVER_SECONDS = 600.0
POOL_TIDY_SECONDS = 5.0
MAX_SERVERS = 4
MAX_SERVER_MEMORY_BYTES = 2 << 30
MAX_BASELINES = 512

ServerKey = tuple[object, ...]
StartServer = Callable[[], Awaitable[LspClient]]


class ServerNotReady(Exception):
    """Raised when no language server is available now; the message is shown to the model."""


@dataclass(frozen=True, slots=True)
class DiagnosticsBaseline:
    """A file's last proved errors and the text they refer to, to tell new errors from old ones."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


@dataclass(slots=True)
class ServerSlot:
    """The state kept for one language server of one project across restarts of its process."""

    name: str
    start: StartServer
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    owners: set[object] = field(default_factory=set)
    baselines: OrderedDict[str, DiagnosticsBaseline] = field(default_factory=OrderedDict)
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each open file, its modification time and size when last sent to the server."""
    client: LspClient | None = None
    starting: asyncio.Task[LspClient] | None = None
    start_requested: float | None = None
    """When its process was last asked to start; None if never."""
    began: float = 0.0
    ends: int = 0
    """How often the server exited shortly after its start."""
    again_at: float = 0.0
    fault: str = ""
    used: float = 0.0

    def set_baseline(self, uri: str, baseline: DiagnosticsBaseline) -> None:
        """Record the newest proved errors of a file as its baseline."""
        self.baselines[uri] = baseline
        self.baselines.move_to_end(uri)
        while len(self.baselines) > MAX_BASELINES:
            self.baselines.popitem(last=False)


class ServerPool:
    """All language servers of this process, by project. Call its methods only on its event loop."""

    def __init__(
        self,
        *,
        most: int = MAX_SERVERS,
        memory_bytes: int = MAX_SERVER_MEMORY_BYTES,
        idle_seconds: float = IDLE_SERVER_SECONDS,
    ) -> None:
        self.slots: dict[ServerKey, ServerSlot] = {}
        self._most = most
        self._memory = memory_bytes
        self._idle = idle_seconds
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    def slot(self, key: ServerKey, name: str, start: StartServer, owner: object) -> ServerSlot:
        """The slot of a server and project, created if needed; shared by all owners with the same key."""
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = ServerSlot(name, start)
        slot.owners.add(owner)
        slot.used = time.monotonic()
        return slot

    async def client(self, slot: ServerSlot, deadline: float) -> LspClient:
        """A running client for a slot, started if necessary.

        Raises `ServerNotReady` if it is not ready in time or the pool is closed.
        """
        if self._closed:
            # A caller whose server was stopped at process exit retries here.
            raise ServerNotReady("it was stopped")
        slot.used = time.monotonic()
        if slot.client is not None and slot.client.alive:
            return slot.client
        if slot.starting is None:
            self._record_exit(slot)
            pause = slot.again_at - time.monotonic()
            if pause > max(deadline - time.monotonic(), 0.0):
                parked = (
                    "disabled for some minutes" if slot.ends >= len(RESTART_DELAYS) else "restarting soon"
                )
                raise ServerNotReady(f"{parked}: {slot.fault}")
            slot.start_requested = time.monotonic()
            slot.starting = asyncio.create_task(self._start_server(slot, max(pause, 0.0)))
        starting = slot.starting
        await asyncio.wait([starting], timeout=max(deadline - time.monotonic(), 0.0))
        if not starting.done():
            raise ServerNotReady("still starting")
        if starting.cancelled():
            raise ServerNotReady("it was stopped")
        try:
            return starting.result()
        except (ServerFailure, HostError) as failure:
            raise ServerNotReady(slot.fault or str(failure)) from failure

    async def release_owner(self, owner: object) -> None:
        """Remove an owner from all slots and stop the servers that have no other owner."""
        for key, slot in list(self.slots.items()):
            slot.owners.discard(owner)
            if not slot.owners:
                self.slots.pop(key, None)
                await self._stop_server(slot)

    async def close(self) -> None:
        """Stop all language servers and refuse to start new ones."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
        slots = list(self.slots.values())
        self.slots.clear()
        await asyncio.gather(*(self._stop_server(slot) for slot in slots))

    async def tidy(self) -> None:
        """Stop idle servers, then the least recently used until the rest is within the memory limit."""
        now = time.monotonic()
        for slot in self._running_slots():
            if now - slot.used > self._idle:
                await self._stop_server(slot)
        running = sorted(self._running_slots(), key=lambda slot: slot.used)
        sizes = {id(slot): slot.client.process.memory_bytes() for slot in running if slot.client}
        total = sum(sizes.values())
        for slot in running:
            if total <= self._memory:
                return
            total -= sizes.get(id(slot), 0)
            await self._stop_server(slot)

    def _running_slots(self) -> list[ServerSlot]:
        return [slot for slot in self.slots.values() if slot.client is not None and slot.client.alive]

    async def _start_server(self, slot: ServerSlot, pause: float) -> LspClient:
        try:
            await asyncio.sleep(pause)
            await self._stop_servers_to_make_room(slot)
            slot.began = time.monotonic()
            slot.client = await slot.start()
            slot.stamps.clear()
            if self._keeper is None:
                self._keeper = asyncio.create_task(self._stop_idle_servers_periodically())
            return slot.client
        except (ServerFailure, HostError) as failure:
            slot.fault = str(failure) or type(failure).__name__
            self._delay_restart(slot)
            raise
        finally:
            slot.starting = None

    def _record_exit(self, slot: ServerSlot) -> None:
        """Record that a server exited and schedule its restart, with a longer delay each time."""
        client, slot.client = slot.client, None
        if client is not None and client.fault:
            if time.monotonic() - slot.began > SERVER_STABLE_SECONDS:
                slot.ends = 0
            slot.fault = client.fault
            self._delay_restart(slot)

    def _delay_restart(self, slot: ServerSlot) -> None:
        slot.again_at = time.monotonic() + (*RESTART_DELAYS, CRASHED_SERVER_OFF_SECONDS)[slot.ends]
        slot.ends = min(slot.ends + 1, len(RESTART_DELAYS))

    async def _stop_servers_to_make_room(self, slot: ServerSlot) -> None:
        others = sorted(
            (each for each in self._running_slots() if each is not slot), key=lambda each: each.used
        )
        for other in others[: max(len(others) + 1 - self._most, 0)]:
            await self._stop_server(other)

    async def _stop_server(self, slot: ServerSlot) -> None:
        if slot.starting is not None:
            starting = slot.starting
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, ServerFailure, HostError):
                await starting
        client, slot.client = slot.client, None
        if client is not None:
            await client.stop()

    async def _stop_idle_servers_periodically(self) -> None:
        while True:
            await asyncio.sleep(POOL_TIDY_SECONDS)
            await self.tidy()


T = TypeVar("T")
THREAD_CLOSE_SECONDS = 15.0


class LanguageThread:
    """The thread with the event loop of all language servers; started on first use, stopped at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner = 0
        self._pool: ServerPool | None = None

    @property
    def pool(self) -> ServerPool:
        self._ensure_event_loop()
        assert self._pool is not None
        return self._pool

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run a coroutine on the thread's event loop; returns a concurrent future."""
        return asyncio.run_coroutine_threadsafe(work, self._ensure_event_loop())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the thread and await its result from any event loop.

        The coroutine is cancelled if the caller is cancelled.
        """
        done, token = anyio.Event(), anyio.lowlevel.current_token()
        # Not `from_thread`: it would block the servers' loop until the caller's loop has run the callback.
        native: Any = getattr(token, "native_token", token)
        soon = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
        future = self.submit(work)

        def wake(_: object) -> None:
            # The caller's event loop may be closed already.
            with contextlib.suppress(RuntimeError):
                soon(done.set)

        future.add_done_callback(wake)
        try:
            await done.wait()
        finally:
            if not future.done():
                future.cancel()
        return future.result()

    def close(self) -> None:
        """Stop all language servers of this process."""
        if self._owner == os.getpid() and self._loop is not None and self._pool is not None:
            try:
                asyncio.run_coroutine_threadsafe(self._pool.close(), self._loop).result(
                    THREAD_CLOSE_SECONDS
                )
            except concurrent.futures.TimeoutError:
                return  # their supervisors kill them

    def _ensure_event_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._owner != os.getpid():
                # After a fork the thread exists only in the parent.
                self._owner = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._pool = ServerPool()
                threading.Thread(
                    target=self._loop.run_forever, name="handtools-language", daemon=True
                ).start()
                atexit.register(self.close)
            return self._loop


LANGUAGE_THREAD = LanguageThread()
