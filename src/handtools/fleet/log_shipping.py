"""What a host does with the logs of its workspaces: begin them, add to them, take workspaces over by them.

ADR 240, 242, 285.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from anyio import to_thread

from handtools.core.errors import HandtoolsError, StorageFault, UnknownOutcome
from handtools.fleet.metrics import HostMetrics
from handtools.fleet.workspace_log import LogHead, LogStore, SegmentTaken
from handtools.fleet.workspace_recovery import (
    is_checkpoint_due,
    recover_workspace,
    ship_workspace,
    store_checkpoint,
    store_fork_base,
)
from handtools.fleet.workspace_slots import WorkspaceSlot, WorkspaceSlots
from handtools.fleet.workspaces import WorkspaceStore
from handtools.toolbox import Toolbox

logger = logging.getLogger("handtools")
Durability = Literal["durable", "fast"]
"""Whether a call that changes something is answered when its record is stored, or already before."""
_COLLECTION_LOOK_SECONDS = 3600.0


class LogShipping:
    """The logs of a host's workspaces. Everything is called in one event loop."""

    def __init__(
        self,
        store: WorkspaceStore,
        log: LogStore,
        slots: WorkspaceSlots,
        *,
        durability: Durability,
        host_name: str,
        incarnation: str,
        metrics: HostMetrics | None,
    ) -> None:
        self.log = log
        self._store, self._slots = store, slots
        self._durability, self._host_name, self._incarnation = durability, host_name, incarnation
        self._metrics = metrics
        self._later: set[asyncio.Task[None]] = set()
        self._collecting: asyncio.Task[None] | None = None

    async def begin(self, name: str, head: LogHead) -> bool:
        """Begin the log of a workspace; False if that may have been done before."""
        self._collect_daily()
        template = self._store.templates
        if not template.has(head.template):
            await to_thread.run_sync(self.log.fetch_template, head.template, template)
        else:
            await to_thread.run_sync(self.log.put_template, template.get(head.template))
        if self._host_name and name.partition("-")[0] != self._host_name:
            # A fork is on its parent's host, which need not be the one in its name any more.
            await to_thread.run_sync(self.log.place, name, self._host_name)
        return await to_thread.run_sync(self.log.begin, name, head)

    async def begin_forks(self, slot: WorkspaceSlot, names: Sequence[str]) -> list[str]:
        """Begin the logs of forks; those of them that were not begun before, by whom was killed since."""
        record, done = self._store.get(slot.name), slot.shipped
        await to_thread.run_sync(
            lambda: store_fork_base(self.log, self._store, slot.name, done=done, writer=self._incarnation)
        )
        head, new = LogHead(record.template, record.tenant, slot.name, done.number), []
        for each in names:
            try:
                if await self.begin(each, head):
                    new.append(each)
            except SegmentTaken:
                known = await to_thread.run_sync(self.log.head, each)
                if known is None or replace(known, segment=head.segment) != head:
                    raise
        return new

    async def recover(self, name: str, tenant: str) -> None:
        """Put a tenant's workspace together from its log; raises `WorkspaceMoved` when another host has it."""
        self._collect_daily()
        head = await to_thread.run_sync(self.log.head, name)
        if head is None or (tenant and head.tenant != tenant):
            return  # nobody has the host work on a workspace by guessing another tenant's names, or learns of it
        host = await to_thread.run_sync(self.log.placed_on, name) if self._host_name else ""
        if host and host != self._host_name:
            raise self._slots.moved(name, host)
        recovered = await to_thread.run_sync(
            lambda: recover_workspace(self._store, self.log, name, head, writer=self._incarnation)
        )
        if recovered is not None:
            self._slots.add(recovered.record).shipped = recovered.shipped
            self._count("recovered_workspaces")

    @asynccontextmanager
    async def changing(self, slot: WorkspaceSlot, box: Toolbox) -> AsyncIterator[None]:
        """What changes a workspace goes one after another, and is stored before it is told."""
        async with slot.changing:
            try:
                yield
            finally:
                slot.unstored_since = slot.unstored_since or time.monotonic()
                if self._durability == "durable":
                    await asyncio.shield(self.ship(slot, box))
        if self._durability == "fast":
            task = asyncio.create_task(self._ship_later(slot))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def ship(self, slot: WorkspaceSlot, box: Toolbox) -> None:
        """Store what the log of a workspace does not have yet."""
        async with slot.shipping:
            began = time.monotonic()
            try:
                await to_thread.run_sync(self._store_gained, slot, box)
                slot.unstored_since = None
                if self._metrics is not None:
                    self._metrics.stored(time.monotonic() - began)
            except StorageFault:
                self._count("store_failures")
                raise
            except SegmentTaken:
                # It is another host's now; what is here is of no use to anyone.
                self._slots.by_name.pop(slot.name, None)
                slot.lost = True
                raise UnknownOutcome(
                    f"Workspace {slot.name} was taken over by another host while the call ran here.",
                    hint="Look at what is there before you do it again.",
                ) from None

    async def aclose(self) -> None:
        """Wait until all is stored that was to be stored later."""
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.wait([self._collecting])
            self._collecting = None
        if self._later:
            await asyncio.gather(*self._later, return_exceptions=True)

    async def _ship_later(self, slot: WorkspaceSlot) -> None:
        try:
            async with self._slots.using(slot) as box, slot.changing:
                await self.ship(slot, box)
        except HandtoolsError as problem:
            if not slot.moved_to:  # else it was stored before
                logger.warning("Workspace %s is not stored: %s", slot.name, problem)

    def _store_gained(self, slot: WorkspaceSlot, box: Toolbox) -> None:
        journal = box.workspace.journal
        slot.shipped = ship_workspace(
            self.log,
            self._store,
            slot.name,
            journal=journal,
            done=slot.shipped,
            writer=self._incarnation,
            is_writing=slot.job_state == "running",
        )
        if is_checkpoint_due(slot.shipped):
            slot.shipped = store_checkpoint(
                self.log,
                self._store,
                slot.name,
                journal=journal,
                done=slot.shipped,
                writer=self._incarnation,
            )

    def _collect_daily(self) -> None:
        """Have logs of removed workspaces deleted once a day, by whichever host of the fleet looks first."""
        if self._collecting is None:
            self._collecting = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        while True:
            try:
                await to_thread.run_sync(self.log.collect_daily_garbage, abandon_on_cancel=True)
            except HandtoolsError as problem:
                logger.warning("Logs of removed workspaces can't be deleted now: %s", problem)
            await asyncio.sleep(_COLLECTION_LOOK_SECONDS)

    def _count(self, name: str) -> None:
        if self._metrics is not None:
            self._metrics.add(name)
