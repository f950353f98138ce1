"""How a host uses the logs of its workspaces: create them, append to them, recover workspaces from them."""

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
    store_checkpoint,
    store_fork_base,
    store_new_changes,
)
from handtools.fleet.workspace_slots import WorkspaceSlot, WorkspaceSlots
from handtools.fleet.workspaces import WorkspaceStore
from handtools.toolbox import Toolbox

logger = logging.getLogger("handtools")
Durability = Literal["durable", "fast"]
"""Whether a call returns after its changes are stored in the log (`durable`) or before (`fast`)."""
_COLLECTION_LOOK_SECONDS = 3600.0


class LogShipping:
    """The logs of a host's workspaces. Use it from one event loop only."""

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

    async def create_log(self, name: str, head: LogHead) -> bool:
        """Create the log of a workspace; False if it may already exist, from an earlier attempt."""
        self._start_daily_garbage_collection()
        template = self._store.templates
        if not template.has_template(head.template):
            await to_thread.run_sync(self.log.fetch_template, head.template, template)
        else:
            await to_thread.run_sync(self.log.put_template, template.get_template(head.template))
        if self._host_name and name.partition("-")[0] != self._host_name:
            # The name starts with another host: a fork is created on its parent's host, which may have moved.
            await to_thread.run_sync(self.log.assign_to_host, name, self._host_name)
        return await to_thread.run_sync(self.log.create_log, name, head)

    async def create_fork_logs(self, slot: WorkspaceSlot, names: Sequence[str]) -> list[str]:
        """Create the logs of forks. Returns the names of the new ones; an earlier attempt made the others."""
        record, done = self._store.get_record(slot.name), slot.shipped
        await to_thread.run_sync(
            lambda: store_fork_base(
                self.log, self._store, slot.name, shipped=done, writer=self._incarnation
            )
        )
        head, new = LogHead(record.template, record.tenant, slot.name, done.number), []
        for each in names:
            try:
                if await self.create_log(each, head):
                    new.append(each)
            except SegmentTaken:
                known = await to_thread.run_sync(self.log.read_head, each)
                if known is None or replace(known, segment=head.segment) != head:
                    raise
        return new

    async def recover_workspace(self, name: str, tenant: str) -> None:
        """Recover a tenant's workspace from its log. Raises `WorkspaceMoved` if another host has it."""
        self._start_daily_garbage_collection()
        head = await to_thread.run_sync(self.log.read_head, name)
        if head is None or (tenant and head.tenant != tenant):
            return  # a tenant who guesses a name must neither cause work nor learn that it exists
        host = await to_thread.run_sync(self.log.host_moved_to, name) if self._host_name else ""
        if host and host != self._host_name:
            raise self._slots.moved_error(name, host)
        recovered = await to_thread.run_sync(
            lambda: recover_workspace(self._store, self.log, name, head, writer=self._incarnation)
        )
        if recovered is not None:
            self._slots.add_workspace(recovered.record).shipped = recovered.shipped
            self._increment_counter("recovered_workspaces")

    @asynccontextmanager
    async def log_changes_of_block(self, slot: WorkspaceSlot, toolbox: Toolbox) -> AsyncIterator[None]:
        """Let one call at a time change a workspace, and store its changes in the log.

        With `durable`, the block ends only when they are stored.
        """
        async with slot.changing:
            try:
                yield
            finally:
                slot.unstored_since = slot.unstored_since or time.monotonic()
                if self._durability == "durable":
                    await asyncio.shield(self.store_new_changes(slot, toolbox))
        if self._durability == "fast":
            task = asyncio.create_task(self._store_new_changes_later(slot))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def store_new_changes(self, slot: WorkspaceSlot, toolbox: Toolbox) -> None:
        """Store new changes of a workspace in its log."""
        async with slot.shipping:
            began = time.monotonic()
            try:
                await to_thread.run_sync(self._store_changes_and_checkpoint, slot, toolbox)
                slot.unstored_since = None
                if self._metrics is not None:
                    self._metrics.record_store_time(time.monotonic() - began)
            except StorageFault:
                self._increment_counter("store_failures")
                raise
            except SegmentTaken:
                # Another host has taken over the workspace: give up the copy on this host.
                self._slots.by_name.pop(slot.name, None)
                slot.lost = True
                raise UnknownOutcome(
                    f"Another host took over workspace {slot.name} while the call was running here.",
                    hint="Check the workspace's current state before you repeat the call.",
                ) from None

    async def aclose(self) -> None:
        """Wait until all deferred changes are stored."""
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.wait([self._collecting])
            self._collecting = None
        if self._later:
            await asyncio.gather(*self._later, return_exceptions=True)

    async def _store_new_changes_later(self, slot: WorkspaceSlot) -> None:
        try:
            async with self._slots.use_toolbox(slot) as box, slot.changing:
                await self.store_new_changes(slot, box)
        except HandtoolsError as problem:
            if not slot.moved_to:  # a moved workspace was already stored
                logger.warning("Can't store workspace %s: %s", slot.name, problem)

    def _store_changes_and_checkpoint(self, slot: WorkspaceSlot, toolbox: Toolbox) -> None:
        journal = toolbox.workspace.journal
        slot.shipped = store_new_changes(
            self.log,
            self._store,
            slot.name,
            journal=journal,
            shipped=slot.shipped,
            writer=self._incarnation,
            is_writing=slot.job_state == "running",
        )
        if is_checkpoint_due(slot.shipped):
            slot.shipped = store_checkpoint(
                self.log,
                self._store,
                slot.name,
                journal=journal,
                shipped=slot.shipped,
                writer=self._incarnation,
            )

    def _start_daily_garbage_collection(self) -> None:
        """Start the task that deletes logs of removed workspaces daily; one host does it for the fleet."""
        if self._collecting is None:
            self._collecting = asyncio.create_task(self._collect_garbage_daily())

    async def _collect_garbage_daily(self) -> None:
        while True:
            try:
                await to_thread.run_sync(self.log.collect_daily_garbage, abandon_on_cancel=True)
            except HandtoolsError as problem:
                logger.warning("Can't delete the logs of removed workspaces now: %s", problem)
            await asyncio.sleep(_COLLECTION_LOOK_SECONDS)

    def _increment_counter(self, name: str) -> None:
        if self._metrics is not None:
            self._metrics.add_to_counter(name)
