"""The slots of a host: which workspaces it has, which of them are in use, and when idle ones are closed."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from anyio import to_thread

from handtools.core.errors import Busy, HandtoolsError, HostError, NotFound, TooLarge
from handtools.fleet.fair_call_queue import BUSY_HINT, TurnLimits
from handtools.fleet.workspace_recovery import ShippedPosition
from handtools.fleet.workspaces import WorkspaceRecord, WorkspaceStore
from handtools.host.commands.local_commands import LocalCommands
from handtools.toolbox import Toolbox

logger = logging.getLogger("handtools")
ENDED_JOB_PATIENCE = 10
_IDLE_LOOK_SECONDS = 1.0


class WorkspaceMoved(HostError):
    """Error: another host of the fleet has the workspace now, so nothing was done here."""

    def __init__(self, message: str, host: str, incarnation: str) -> None:
        super().__init__(message)
        self.host = host
        self.incarnation = incarnation
        """The incarnation (run) of the host that raised this; all calls that it ran are in the log."""
        self.sent_to = ""
        """An earlier incarnation that got the same request, with unknown outcome; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """The limits of one host."""

    slots: int = 2000
    """Maximum number of workspaces."""
    open: int = 128
    """Maximum number of open workspaces; above it, the least recently used ones are closed."""
    idle_seconds: float = 60.0
    """Seconds that an unused workspace stays open."""
    tenant_slots: int | None = None
    turns: TurnLimits = field(default_factory=TurnLimits)


@dataclass(slots=True)
class WorkspaceSlot:
    """One workspace of the host. It has a toolbox while it is open."""

    name: str
    tenant: str
    toolbox: Toolbox | None = None
    narrowed_toolboxes: dict[str, Toolbox] = field(default_factory=dict)
    users: int = 0
    used: float = field(default_factory=time.monotonic)
    measured: float = 0.0
    over_quota: TooLarge | None = None
    shipped: ShippedPosition = field(default_factory=ShippedPosition)
    lost: bool = False
    """Whether another host has taken over the workspace."""
    moved_to: str = ""
    """The host that the workspace was moved to; empty if it was not."""
    unstored_since: float | None = None
    """Time of the first change that is not yet stored in its log."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    shipping: asyncio.Lock = field(default_factory=asyncio.Lock)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the workspace is not in use."""

    @property
    def job_state(self) -> Literal["none", "ended", "running"]:
        """Whether a background job is running in the workspace, or has ended since it was opened."""
        commands = None if self.toolbox is None else self.toolbox.workspace.commands
        return commands.job_state if isinstance(commands, LocalCommands) else "none"


class WorkspaceSlots:
    """The workspaces of a host. Toolboxes are opened when used, and closed when idle or too many are open."""

    def __init__(
        self,
        store: WorkspaceStore,
        limits: HostLimits,
        *,
        incarnation: str,
        open_toolbox: Callable[[str], Toolbox],
        before_close: Callable[[WorkspaceSlot, Toolbox], Awaitable[None]],
    ) -> None:
        self._store, self._limits = store, limits
        self._incarnation = incarnation
        self._open_toolbox, self._before_close = open_toolbox, before_close
        self.by_name: dict[str, WorkspaceSlot] = {}
        self._idle_task: asyncio.Task[None] | None = None

    def add_workspace(self, record: WorkspaceRecord) -> WorkspaceSlot:
        """Assign a slot to a workspace."""
        slot = self.by_name[record.id] = WorkspaceSlot(record.id, record.tenant)
        slot.free.set()
        return slot

    def get_slot(self, name: str, tenant: str) -> WorkspaceSlot:
        """The slot of a tenant's workspace. Raises `NotFound`."""
        slot = self.by_name.get(name)
        # Don't reveal that another tenant's workspace exists.
        if slot is None or (tenant and slot.tenant != tenant):
            raise NotFound(f"Workspace {name} not found on this host.", hint="Check its name and host.")
        return slot

    def check_free_slots(self, tenant: str, count: int) -> None:
        """Raise `Busy` unless there is room for `count` more workspaces."""
        if len(self.by_name) + count > self._limits.slots:
            raise Busy(f"All {self._limits.slots} slots of this host are taken.", hint=BUSY_HINT)
        most = self._limits.tenant_slots
        held = sum(not tenant or slot.tenant == tenant for slot in self.by_name.values())
        if most is not None and held + count > most:
            raise Busy(f"This tenant can have at most {most} workspaces on this host.", hint="Remove one.")

    def moved_error(self, name: str, host: str) -> WorkspaceMoved:
        """The error that tells a client which host has the workspace now."""
        return WorkspaceMoved(
            f"Workspace {name} was moved. Send requests to host {host}.", host, self._incarnation
        )

    def open_slots(self) -> list[WorkspaceSlot]:
        """Slots with a toolbox or a mount. New workspaces are mounted but have no toolbox yet."""
        return [self.by_name[name] for name in self._store.open_workspace_names() if name in self.by_name]

    @asynccontextmanager
    async def use_toolbox(self, slot: WorkspaceSlot) -> AsyncIterator[Toolbox]:
        """The toolbox of a workspace, which stays open within the block."""
        if slot.toolbox is None or slot.lock.locked():
            async with slot.lock:
                box = slot.toolbox or await self._open_toolbox_of_slot(slot)
                slot.users += 1
        else:
            box = slot.toolbox
            slot.users += 1
        slot.free.clear()
        try:
            yield box
        finally:
            slot.users -= 1
            slot.used = time.monotonic()
            if not slot.users:
                slot.free.set()
                if slot.lost:
                    await self._close_toolbox(slot)

    @asynccontextmanager
    async def use_exclusively(self, slot: WorkspaceSlot) -> AsyncIterator[None]:
        """Wait until a workspace is unused, and block others from using it; its toolbox is closed."""
        async with slot.lock:
            while slot.users:
                await slot.free.wait()
            self._check_not_moved(slot)
            await self._close_toolbox(slot)
            yield

    async def close_excess_workspaces(self) -> None:
        """Close the least recently used workspaces if too many are open."""
        await self._close_least_recently_used(self._limits.open)

    async def aclose(self) -> None:
        """Close every workspace after its running calls end."""
        if self._idle_task is not None:
            self._idle_task.cancel()
            await asyncio.wait([self._idle_task])
            self._idle_task = None
        for slot in list(self.by_name.values()):
            async with slot.lock:
                while slot.users:
                    await slot.free.wait()
                await self._close_workspace(slot)

    async def _open_toolbox_of_slot(self, slot: WorkspaceSlot) -> Toolbox:
        self._check_not_moved(slot)
        await self._close_least_recently_used(self._limits.open - 1)
        slot.toolbox = await to_thread.run_sync(self._open_toolbox, slot.name)
        return slot.toolbox

    def _check_not_moved(self, slot: WorkspaceSlot) -> None:
        if slot.moved_to:
            raise self.moved_error(slot.name, slot.moved_to)
        if slot.name not in self.by_name:
            raise NotFound(f"Workspace {slot.name} not found on this host.", hint="Check name and host.")

    async def _close_toolbox(self, slot: WorkspaceSlot) -> None:
        """Close an unused toolbox, after storing the changes of background jobs."""
        if slot.toolbox is not None and not slot.lost:
            await self._before_close(slot, slot.toolbox)
        box, slot.toolbox = slot.toolbox, None
        slot.narrowed_toolboxes.clear()
        if box is not None:
            await box.aclose()

    async def _close_least_recently_used(self, most: int) -> None:
        if self._idle_task is None:
            self._idle_task = asyncio.create_task(self._close_idle_periodically())
        opened = self.open_slots()
        spare = len(opened) - most
        for slot in sorted(opened, key=lambda each: each.used)[: max(0, spare)]:
            await self._close_if_unused(slot)

    async def _close_if_unused(self, slot: WorkspaceSlot) -> None:
        if slot.users or slot.lock.locked() or slot.job_state == "running":
            return
        async with slot.lock:
            if not slot.users and self.by_name.get(slot.name) is slot:
                await self._close_workspace(slot)

    async def _close_workspace(self, slot: WorkspaceSlot) -> None:
        """Close an unused workspace. It stays open if its changes can't be stored."""
        try:
            await self._close_toolbox(slot)
            await to_thread.run_sync(self._store.close, slot.name)
        except (HandtoolsError, OSError) as problem:
            logger.warning("Can't close workspace %s: %s", slot.name, problem)

    async def _close_idle_periodically(self) -> None:
        """Close idle workspaces periodically."""
        while True:
            await asyncio.sleep(min(_IDLE_LOOK_SECONDS, self._limits.idle_seconds))
            for slot in self.open_slots():
                # Closing a workspace discards the output of ended jobs, so leave more time to read it.
                patience = ENDED_JOB_PATIENCE if slot.job_state == "ended" else 1
                unused = time.monotonic() - slot.used
                if unused > self._limits.idle_seconds * patience:
                    await self._close_if_unused(slot)
