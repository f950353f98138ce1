"""A host: many workspaces in one process, with slots, turns, deadlines and quotas. ADR 238, 247."""

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from anyio import to_thread

from handtools import __version__
from handtools.core.approval import Reply
from handtools.core.call import Call, CancelToken, derived_call_id
from handtools.core.errors import (
    Busy,
    HandtoolsError,
    HostError,
    NotFound,
    StorageFault,
    TooLarge,
    ToolError,
    UnknownOutcome,
    UsageError,
)
from handtools.core.events import EventListener
from handtools.core.result import Result
from handtools.core.tool import AnyTool
from handtools.fleet.fair_call_queue import BUSY_HINT, CallTurns, TurnLimits
from handtools.fleet.fork_merge import ForkMerge, merge_fork, promote_fork
from handtools.fleet.metrics import HostMetrics
from handtools.fleet.tree_diff import TreeDifference
from handtools.fleet.workspace_log import LogHead, LogStore, SegmentTaken
from handtools.fleet.workspace_recovery import (
    ShippedPosition,
    is_checkpoint_due,
    recover_workspace,
    ship_workspace,
    store_checkpoint,
    store_fork_base,
)
from handtools.fleet.workspaces import WORKSPACE_NAME, WorkspaceRecord, WorkspaceStore
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.sandbox.processes.memory_and_disk_monitor import resident_memory_bytes
from handtools.mcp.remote import MOST_NARROWED_TOOLBOXES, intersect_policies, policy_from_json
from handtools.runtime.executor import result_of_error
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

logger = logging.getLogger("handtools")
QUOTA_SECONDS = 2.0
"""How old a measured usage may be when a call is about to change something."""
REDUCING_TOOLS = frozenset({"bash", "undo"})
"""Tools that a workspace over its quota may still use: with them it becomes smaller."""
ENDED_JOB_PATIENCE = 10
_IDLE_LOOK_SECONDS = 1.0
_JOB_LOOK_SECONDS = 0.1
JOURNAL_PART_BYTES = 16 << 20
_JOURNAL_ARCHIVE_NAME = "journal.tar.gz"
_JOURNAL_PARTS = ("journal.sqlite", "journal.sqlite-wal", "blobs", "outputs")
Durability = Literal["durable", "fast"]
"""Whether a call that changes something is answered when its record is stored, or already before."""


class WorkspaceMoved(HostError):
    """Another host of the fleet has the workspace now; nothing was done here."""

    def __init__(self, message: str, host: str, incarnation: str) -> None:
        super().__init__(message)
        self.host = host
        self.incarnation = incarnation
        """The start of the host that says so: all that ran in it is in the workspace's log."""
        self.sent_to = ""
        """An earlier start to which the same was sent, of which nobody knows what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """How much one host holds."""

    slots: int = 2000
    """Workspaces."""
    open: int = 128
    """Workspaces whose files or journals are open; those that were used least lately are closed."""
    idle_seconds: float = 60.0
    """How long a workspace stays open that nobody uses."""
    tenant_slots: int | None = None
    turns: TurnLimits = field(default_factory=TurnLimits)


@dataclass(slots=True)
class _Slot:
    """One workspace of the host; its toolbox is there while it is open."""

    name: str
    tenant: str
    box: Toolbox | None = None
    narrowed: dict[str, Toolbox] = field(default_factory=dict)
    users: int = 0
    used: float = field(default_factory=time.monotonic)
    measured: float = 0.0
    over_quota: TooLarge | None = None
    shipped: ShippedPosition = field(default_factory=ShippedPosition)
    lost: bool = False
    """Whether another host has taken it over."""
    moved_to: str = ""
    """The host that it was handed over to."""
    unstored_since: float | None = None
    """Since when something has changed that its log does not have."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    shipping: asyncio.Lock = field(default_factory=asyncio.Lock)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while nobody uses it."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """What a host is doing."""

    workspaces: int
    open: int
    running: int
    waiting: int
    shed: int
    """Calls that were refused as `busy` since the start."""
    draining: bool
    slots: int = 0
    tenants: dict[str, int] = field(default_factory=dict)
    """How many workspaces each tenant has; those without one under the empty name."""
    memory_bytes: int = 0
    """Of the host's process; 0 where the system does not tell."""
    disk_free_bytes: int = 0
    disk_bytes: int = 0
    has_log: bool = False
    """Whether workspaces are stored elsewhere, so that they can be moved."""
    unstored_seconds: float = 0.0
    """How old the oldest change is that its log does not have."""
    version: str = ""
    """Of handtools on the host."""


@dataclass(frozen=True, slots=True)
class HostedWorkspace:
    """A workspace in the list of a host."""

    name: str
    tenant: str
    parent: str
    is_open: bool
    has_running_job: bool


class WorkspaceHost:
    """The workspaces of one folder, and the calls in them. Everything is called in one event loop."""

    def __init__(
        self,
        store: WorkspaceStore,
        *,
        limits: HostLimits | None = None,
        tools: Sequence[AnyTool] = CODING,
        policy: Policy | None = None,
        runner: str = "",
        log: LogStore | None = None,
        durability: Durability = "durable",
        name: str = "",
        metrics: HostMetrics | None = None,
    ) -> None:
        self.store = store
        self.name = name
        """What it is called in its fleet; names of workspaces begin with it."""
        self._metrics = metrics
        self._log, self._durability = log, durability
        self.limits = limits or HostLimits()
        self.incarnation = secrets.token_hex(8)
        """Changes with each start: who knows another one spoke to a process that is gone."""
        self._tools, self._policy, self._runner = tuple(tools), policy or Policy(), runner
        self._turns = CallTurns(self.limits.turns)
        self._slots: dict[str, _Slot] = {}
        store.collect_garbage()  # what a process that was killed had begun to make
        for known in store.names():
            if log is None:
                self._placed(store.get(known))
            else:
                # The log is what is true: what came no further than this disk was never promised to anyone.
                store.remove(known)
        self._cancels: dict[tuple[str, str], list[CancelToken]] = {}
        """Tokens of the calls that run or wait, by workspace and call id."""
        self._recovering: dict[str, asyncio.Lock] = {}
        self._shipping: set[asyncio.Task[None]] = set()
        self._idle_task: asyncio.Task[None] | None = None
        self._draining = False

    async def add_template(self, kind: str, source: str, commit: str = "", folder: str = "") -> str:
        """Make a template of a `folder`, `tarball`, `git` commit or `image` here, and store it with the logs."""
        templates = self.store.templates
        makers = {
            "folder": lambda: templates.add_folder(source),
            "tarball": lambda: templates.add_tarball(source),
            "git": lambda: templates.add_git_commit(source, commit or "HEAD"),
            "image": lambda: templates.add_image(source, folder=folder),
        }
        if kind not in makers:
            raise UsageError(f"A template is made of {', '.join(makers)}, not of {kind!r}.")
        made = await to_thread.run_sync(makers[kind])
        if self._log is not None:
            await to_thread.run_sync(self._log.put_template, made)
        return made.digest

    async def create(self, template: str, *, name: str = "", tenant: str = "") -> str:
        """Make a workspace of a template; returns its name. Raises `Busy` when no slot is free.

        A name that is there already, of the same template and tenant, is returned: who asks again gets the same.
        """
        if (there := self._slots.get(name)) is not None:
            known = self.store.get(name)
            if (known.template, known.tenant, known.parent) == (template, tenant, ""):
                return there.name
        self._check_room(tenant, 1)
        name = name or secrets.token_hex(8)
        if self._log is not None and not await self._begin_log(name, LogHead(template, tenant)):
            # Asked again after this host, or another, was killed: calls may have run in it since.
            return (await self._found(name, tenant)).name
        made = await to_thread.run_sync(lambda: self.store.create(template, name=name, tenant=tenant))
        self._placed(made)
        await self._close_least_used(self.limits.open)
        return name

    async def fork(
        self, name: str, count: int = 1, *, tenant: str = "", names: Sequence[str] = ()
    ) -> list[str]:
        """Make workspaces that begin as this one is now, when its running calls have ended; returns their names.

        Names that are forks of it already are returned: who asks again gets the same.
        """
        slot = await self._found(name, tenant)
        if names and all(each in self._slots and self.store.get(each).parent == name for each in names):
            return list(names)
        self._check_room(tenant, len(names) or count)  # before a name is made for each
        names = list(names) or [secrets.token_hex(8) for _ in range(count)]
        async with self._alone(slot):
            new = names if self._log is None else await self._begin_forks(slot, names, self._log)
            made = await to_thread.run_sync(lambda: self.store.fork(name, names=new)) if new else []
            for record in made:
                self._placed(record)
        for each in names:
            await self._found(each, tenant)
        await self._close_least_used(self.limits.open)
        return names

    async def _begin_forks(self, slot: _Slot, names: Sequence[str], log: LogStore) -> list[str]:
        """Begin the logs of forks; those of them that were not begun before, by whom was killed since."""
        record, done = self.store.get(slot.name), slot.shipped
        await to_thread.run_sync(
            lambda: store_fork_base(log, self.store, slot.name, done=done, writer=self.incarnation)
        )
        head, new = LogHead(record.template, record.tenant, slot.name, done.number), []
        for each in names:
            try:
                if await self._begin_log(each, head):
                    new.append(each)
            except SegmentTaken:
                known = await to_thread.run_sync(log.head, each)
                if known is None or replace(known, segment=head.segment) != head:
                    raise
        return new

    async def diff(self, name: str, *, tenant: str = "") -> list[TreeDifference]:
        """What is different in a workspace from what it began with."""
        async with self._using(await self._found(name, tenant)):
            return await to_thread.run_sync(self.store.diff, name)

    async def merge(self, fork: str, *, tenant: str = "", whole: bool = False) -> ForkMerge:
        """Bring what a fork did into its parent; `whole` promotes it, which refuses if the parent went on."""
        slot = await self._found(fork, tenant)
        parent = await self._found(self.store.get(fork).parent, tenant)
        bring = promote_fork if whole else merge_fork
        async with self._using(slot), self._using(parent) as box, parent.changing:
            done = await bring(self.store, fork, box)
            await self._ship(parent, box)
            return done

    async def journal_archive(self, name: str, offset: int, *, tenant: str = "") -> tuple[bytes, int]:
        """A part of a tar archive of a workspace's journal, and the size of all of it.

        With offset 0 it is made anew, when running calls have ended.
        """
        slot = await self._found(name, tenant)
        archive = self.store.state(name).parent / _JOURNAL_ARCHIVE_NAME
        if not offset:
            async with self._alone(slot):
                await to_thread.run_sync(_archive_journal, self.store.state(name), archive)
        return await to_thread.run_sync(_read_part, archive, offset)

    async def remove(self, name: str, *, tenant: str = "") -> None:
        """Delete a workspace with its journal, when its running calls have ended."""
        slot = await self._found(name, tenant)
        async with self._alone(slot):
            if self._log is not None:
                await to_thread.run_sync(self._log.end, name)
            del self._slots[name]
            await to_thread.run_sync(self.store.remove, name)

    async def call(
        self,
        name: str,
        call: Call,
        *,
        tenant: str = "",
        policy: dict[str, Any] | None = None,
        reply: Reply | None = None,
        cancel: CancelToken | None = None,
        listener: EventListener | None = None,
        sent_to: str = "",
    ) -> Result[Any]:
        """Run a tool call in a workspace; what the host refuses comes back as a result, too.

        A call's deadline counts from here: waiting for a turn is part of it. `sent_to` is the incarnation to which
        the same call was sent before: if that is gone without a record of a call that may have had an effect, the
        outcome is unknown and it is not run, unless its metadata say `retryable`.
        """
        began, token, key = time.monotonic(), cancel or CancelToken(), (name, call.id)
        self._cancels.setdefault(key, []).append(token)
        try:
            slot = await self._found(name, tenant)
            async with (
                self._turn(slot, call, token),
                self._using(slot) as box,
                self._changing(slot, box, call.tool),
            ):
                if self._changes(call.tool):
                    await self._check_outcome(box, call, sent_to)
                    await self._check_quota(slot, call.tool)
                if call.deadline is not None:
                    left = max(0.001, call.deadline - (time.monotonic() - began))
                    call = replace(call, deadline=left)
                chosen = box if policy is None else self._narrowed(slot, box, policy)
                result = await chosen.call(call, reply=reply, cancel=token, listener=listener)
        except ToolError as refused:
            result = result_of_error(refused)
        finally:
            self._cancels[key].remove(token)
            if not self._cancels[key]:
                del self._cancels[key]
        if self._metrics is not None:
            self._metrics.call_ended(call.tool, result, time.monotonic() - began)
        return result

    async def resume(
        self,
        name: str,
        call_id: str,
        reply: Reply,
        *,
        tenant: str = "",
        policy: dict[str, Any] | None = None,
    ) -> Result[Any]:
        """Answer the question of a pending call; returns the call's result."""
        slot = await self._found(name, tenant)
        async with self._using(slot) as box, self._changing(slot, box, None):
            chosen = box if policy is None else self._narrowed(slot, box, policy)
            return await chosen.resume(call_id, reply)

    @asynccontextmanager
    async def toolbox(
        self, name: str, *, tenant: str = "", policy: dict[str, Any] | None = None
    ) -> AsyncIterator[Toolbox]:
        """The toolbox of a workspace, for what needs no turn: questions, definitions, decisions."""
        slot = await self._found(name, tenant)
        async with self._using(slot) as box:
            yield box if policy is None else self._narrowed(slot, box, policy)

    def cancel(self, name: str, call_id: str, *, tenant: str = "") -> bool:
        """Cancel a call that runs or waits for its turn; False when it does neither here."""
        self._slot(name, tenant)
        tokens = self._cancels.get((name, call_id), ())
        for token in tokens:
            token.cancel()
        return bool(tokens)

    def names(self, *, tenant: str = "") -> list[str]:
        """The workspaces of a tenant; all of them without one."""
        return sorted(slot.name for slot in self._slots.values() if not tenant or slot.tenant == tenant)

    def workspaces(self) -> list[HostedWorkspace]:
        """All workspaces that are here."""
        return [
            HostedWorkspace(
                slot.name,
                slot.tenant,
                self.store.get(slot.name).parent,
                slot.box is not None,
                _job_state(slot.box) == "running",
            )
            for slot in sorted(self._slots.values(), key=lambda each: each.name)
        ]

    def status(self) -> HostStatus:
        """What the host is doing now."""
        slots, disk = self._slots.values(), shutil.disk_usage(self.store.folder)
        unstored = [slot.unstored_since for slot in slots if slot.unstored_since is not None]
        return HostStatus(
            workspaces=len(self._slots),
            open=len(self._open_slots()),
            running=self._turns.running,
            waiting=self._turns.waiting,
            shed=self._turns.shed,
            draining=self._draining,
            slots=self.limits.slots,
            tenants=dict(Counter(slot.tenant for slot in slots)),
            memory_bytes=resident_memory_bytes(os.getpid()),
            disk_free_bytes=disk.free,
            disk_bytes=disk.total,
            has_log=self._log is not None,
            unstored_seconds=max(0.0, time.monotonic() - min(unstored)) if unstored else 0.0,
            version=__version__,
        )

    def sample_metrics(self) -> None:
        """Bring those metrics up to date that are looked at from time to time."""
        if self._metrics is None:
            return
        now = self.status()
        sums = {"busy": now.shed, "stored_bytes": self._log.stored_bytes if self._log else 0}
        gauges = {
            "slots": now.slots,
            "workspaces": now.workspaces,
            "open_workspaces": now.open,
            "running_calls": now.running,
            "waiting_calls": now.waiting,
            "memory_bytes": now.memory_bytes,
            "disk_free_bytes": now.disk_free_bytes,
            "unstored_seconds": now.unstored_seconds,
            "draining": now.draining,
        }
        self._metrics.sample(sums, gauges)

    async def drain(self) -> None:
        """Take no new workspaces; calls in those that are here go on."""
        self._draining = True

    async def hand_over(self, name: str, to: str, *, job_seconds: float = 0.0) -> None:
        """Let another host go on with a workspace, when its running calls have ended and all of it is stored.

        A job that runs is waited for so long, and ended then. Who asks here later is told the other host's name.
        """
        log = self._log
        if log is None:
            raise UsageError(
                "This host has no log: its workspaces can't be moved. Start hosts with a `log_url`."
            )
        if not self.name or to == self.name:
            raise UsageError(f"Workspace {name} can't be handed over to {to!r} from {self.name!r}.")
        slot = await self._found(name, "")
        end = time.monotonic() + job_seconds
        while _job_state(slot.box) == "running" and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(_JOB_LOOK_SECONDS)
        async with self._alone(slot):
            await to_thread.run_sync(log.place, name, to)
            slot.moved_to = to
            self._slots.pop(name, None)
            await to_thread.run_sync(self.store.remove, name)
        self._count("moved_workspaces")

    async def adopt(self, name: str) -> None:
        """Put a workspace together here that another host has handed over."""
        await self._found(name, "")

    async def aclose(self) -> None:
        """Close every workspace, when its running calls have ended; they stay on disk."""
        if self._idle_task is not None:
            self._idle_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._idle_task
            self._idle_task = None
        if self._shipping:
            await asyncio.gather(*self._shipping, return_exceptions=True)
        for slot in list(self._slots.values()):
            async with slot.lock:
                while slot.users:
                    await slot.free.wait()
                await self._close_slot(slot)

    def _slot(self, name: str, tenant: str) -> _Slot:
        slot = self._slots.get(name)
        # Another tenant's workspace is not there, as far as anyone can tell.
        if slot is None or (tenant and slot.tenant != tenant):
            raise NotFound(f"There is no workspace {name} here.", hint="Ask where it is.")
        return slot

    async def _found(self, name: str, tenant: str) -> _Slot:
        """The slot of a workspace, which is put together from its log if it is not here."""
        if name not in self._slots and self._log is not None and WORKSPACE_NAME.fullmatch(name):
            async with self._recovering.setdefault(name, asyncio.Lock()):
                if name not in self._slots:
                    await self._recover(name, self._log, tenant)
            self._recovering.pop(name, None)
        return self._slot(name, tenant)

    async def _recover(self, name: str, log: LogStore, tenant: str) -> None:
        """Put a workspace together from its log; raises `WorkspaceMoved` when another host has it."""
        head = await to_thread.run_sync(log.head, name)
        if head is None or (tenant and head.tenant != tenant):
            return  # nobody has the host work on a workspace by guessing another tenant's names, or learns of it
        host = await to_thread.run_sync(log.placed_on, name) if self.name else ""
        if host and host != self.name:
            raise self._moved(name, host)
        recovered = await to_thread.run_sync(
            lambda: recover_workspace(self.store, log, name, writer=self.incarnation)
        )
        if recovered is not None:
            self._placed(recovered.record).shipped = recovered.shipped
            self._count("recovered_workspaces")

    async def _begin_log(self, name: str, head: LogHead) -> bool:
        """Begin the log of a workspace; False if that may have been done before."""
        log = self._log
        assert log is not None, "only a host with a log begins one"
        template = self.store.templates
        if not template.has(head.template):
            await to_thread.run_sync(log.fetch_template, head.template, template)
        else:
            await to_thread.run_sync(log.put_template, template.get(head.template))
        if self.name and name.partition("-")[0] != self.name:
            # A fork is on its parent's host, which need not be the one in its name any more.
            await to_thread.run_sync(log.place, name, self.name)
        return await to_thread.run_sync(log.begin, name, head)

    @asynccontextmanager
    async def _changing(self, slot: _Slot, box: Toolbox, tool: str | None) -> AsyncIterator[None]:
        """What changes a workspace that has a log goes one after another, and is stored before it is told."""
        if self._log is None or (tool is not None and not self._changes(tool)):
            yield
            return
        async with slot.changing:
            try:
                yield
            finally:
                slot.unstored_since = slot.unstored_since or time.monotonic()
                if self._durability == "durable":
                    await asyncio.shield(self._ship(slot, box))
        if self._durability == "fast":
            task = asyncio.create_task(self._ship_later(slot))
            self._shipping.add(task)
            task.add_done_callback(self._shipping.discard)

    async def _ship_later(self, slot: _Slot) -> None:
        try:
            async with self._using(slot) as box, slot.changing:
                await self._ship(slot, box)
        except HandtoolsError as problem:
            if not slot.moved_to:  # else it was stored before
                logger.warning("Workspace %s is not stored: %s", slot.name, problem)

    async def _ship(self, slot: _Slot, box: Toolbox) -> None:
        """Store what the log of a workspace does not have yet."""
        if self._log is None:
            return
        async with slot.shipping:
            began = time.monotonic()
            try:
                await to_thread.run_sync(self._store_gained, slot, box, self._log)
                slot.unstored_since = None
                if self._metrics is not None:
                    self._metrics.stored(time.monotonic() - began)
            except StorageFault:
                self._count("store_failures")
                raise
            except SegmentTaken:
                # It is another host's now; what is here is of no use to anyone.
                self._slots.pop(slot.name, None)
                slot.lost = True
                raise UnknownOutcome(
                    f"Workspace {slot.name} was taken over by another host while the call ran here.",
                    hint="Look at what is there before you do it again.",
                ) from None

    def _store_gained(self, slot: _Slot, box: Toolbox, log: LogStore) -> None:
        journal = box.workspace.journal
        slot.shipped = ship_workspace(
            log,
            self.store,
            slot.name,
            journal=journal,
            done=slot.shipped,
            writer=self.incarnation,
            is_writing=_job_state(box) == "running",
        )
        if is_checkpoint_due(slot.shipped):
            slot.shipped = store_checkpoint(
                log, self.store, slot.name, journal=journal, done=slot.shipped, writer=self.incarnation
            )

    async def _check_outcome(self, box: Toolbox, call: Call, sent_to: str) -> None:
        if not sent_to or sent_to == self.incarnation or call.metadata.get("retryable"):
            return
        journal, began = box.workspace.journal, time.time()
        if await to_thread.run_sync(journal.calls.has, call.id):
            return
        unknown = UnknownOutcome(
            "The host that this call was sent to is gone, and no record of the call is left.",
            hint="The workspace is as the last recorded call left it; what happened outside of it is unknown.",
        )
        # The last word about this id, so that it never runs after all.
        await to_thread.run_sync(journal.calls.record, call, result_of_error(unknown), began)
        raise unknown

    def _placed(self, record: WorkspaceRecord) -> _Slot:
        slot = self._slots[record.id] = _Slot(record.id, record.tenant)
        slot.free.set()
        return slot

    @asynccontextmanager
    async def _turn(self, slot: _Slot, call: Call, token: CancelToken) -> AsyncIterator[None]:
        began = time.monotonic()
        async with self._turns.turn(slot.tenant, slot.name, call.deadline, token):
            if self._metrics is not None:
                self._metrics.waited(time.monotonic() - began)
            yield

    def _count(self, name: str) -> None:
        if self._metrics is not None:
            self._metrics.add(name)

    def _moved(self, name: str, host: str) -> WorkspaceMoved:
        return WorkspaceMoved(f"Workspace {name} is on host {host} now: ask there.", host, self.incarnation)

    def _check_here(self, slot: _Slot) -> None:
        if slot.moved_to:
            raise self._moved(slot.name, slot.moved_to)
        if slot.name not in self._slots:
            raise NotFound(f"There is no workspace {slot.name} here.", hint="Ask where it is.")

    def _check_room(self, tenant: str, count: int) -> None:
        if self._draining:
            raise Busy("This host is being drained.", hint="Ask another host.")
        if len(self._slots) + count > self.limits.slots:
            raise Busy(f"All {self.limits.slots} slots of this host are taken.", hint=BUSY_HINT)
        most = self.limits.tenant_slots
        held = sum(not tenant or slot.tenant == tenant for slot in self._slots.values())
        if most is not None and held + count > most:
            raise Busy(f"This tenant has {most} workspaces here, which is all.", hint="Remove one.")

    @asynccontextmanager
    async def _using(self, slot: _Slot) -> AsyncIterator[Toolbox]:
        """The toolbox of a workspace, which stays open meanwhile."""
        if slot.box is None or slot.lock.locked():
            async with slot.lock:
                box = slot.box or await self._opened(slot)
                slot.users += 1
        else:
            box = slot.box
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
                    await self._close_box(slot)

    async def _opened(self, slot: _Slot) -> Toolbox:
        self._check_here(slot)
        await self._close_least_used(self.limits.open - 1)
        slot.box = await to_thread.run_sync(self._open, slot.name)
        return slot.box

    def _open(self, name: str) -> Toolbox:
        root = self.store.open(name)
        workspace = local_workspace(root, state=self.store.state(name), runner=self._runner)
        if isinstance(workspace.commands, LocalCommands):
            workspace.commands.mounts_left = self.store.mounts_left
        return Toolbox(self._tools, workspace=workspace, policy=self._policy)

    @asynccontextmanager
    async def _alone(self, slot: _Slot) -> AsyncIterator[None]:
        """Nobody uses the workspace meanwhile, and its toolbox is closed."""
        async with slot.lock:
            while slot.users:
                await slot.free.wait()
            self._check_here(slot)
            await self._close_box(slot)
            yield

    async def _close_box(self, slot: _Slot) -> None:
        """Close a toolbox that nobody uses; what a job left is stored before."""
        if slot.box is not None and not slot.lost:
            await self._ship(slot, slot.box)
        box, slot.box = slot.box, None
        slot.narrowed.clear()
        if box is not None:
            await box.aclose()

    async def _close_least_used(self, most: int) -> None:
        if self._idle_task is None:
            self._idle_task = asyncio.create_task(self._close_idle())
        open_slots = self._open_slots()
        spare = len(open_slots) - most
        for slot in sorted(open_slots, key=lambda each: each.used)[: max(0, spare)]:
            await self._close_if_unused(slot)

    def _open_slots(self) -> list[_Slot]:
        """Those with a toolbox or a mount: what is made ahead has no toolbox yet."""
        return [self._slots[name] for name in self.store.open_names() if name in self._slots]

    async def _close_if_unused(self, slot: _Slot) -> None:
        if slot.users or slot.lock.locked() or _job_state(slot.box) == "running":
            return
        async with slot.lock:
            if not slot.users and self._slots.get(slot.name) is slot:
                await self._close_slot(slot)

    async def _close_slot(self, slot: _Slot) -> None:
        """Close a workspace that nobody uses; it stays open while what it holds can't be stored."""
        try:
            await self._close_box(slot)
            await to_thread.run_sync(self.store.close, slot.name)
        except (HandtoolsError, OSError) as problem:
            logger.warning("Workspace %s can't be closed: %s", slot.name, problem)

    async def _close_idle(self) -> None:
        """Close workspaces that nobody uses, from time to time."""
        while True:
            await asyncio.sleep(min(_IDLE_LOOK_SECONDS, self.limits.idle_seconds))
            for slot in self._open_slots():
                # What an ended job printed is gone when its workspace is closed: it is left time to be asked for.
                patience = ENDED_JOB_PATIENCE if _job_state(slot.box) == "ended" else 1
                unused = time.monotonic() - slot.used
                if unused > self.limits.idle_seconds * patience:
                    await self._close_if_unused(slot)

    def _changes(self, tool: str) -> bool:
        return any(each.name == tool and not each.reads_only for each in self._tools)

    async def _check_quota(self, slot: _Slot, tool: str) -> None:
        if time.monotonic() - slot.measured > QUOTA_SECONDS:
            slot.over_quota = None
            try:
                await to_thread.run_sync(self.store.check_quota, slot.name)
            except TooLarge as over:
                slot.over_quota = over
            slot.measured = time.monotonic()
        if slot.over_quota is not None and tool not in REDUCING_TOOLS:
            raise slot.over_quota

    def _narrowed(self, slot: _Slot, box: Toolbox, policy: dict[str, Any]) -> Toolbox:
        """The toolbox under a policy that came with a call, which can only take away."""
        key = derived_call_id("policy", policy)
        if key not in slot.narrowed:
            while len(slot.narrowed) >= MOST_NARROWED_TOOLBOXES:
                del slot.narrowed[next(iter(slot.narrowed))]
            more = policy_from_json(policy)
            slot.narrowed[key] = box.under(intersect_policies(box.policy, more, box.tools.values()))
        return slot.narrowed[key]


def _archive_journal(state: Path, archive: Path) -> None:
    """Pack the record of calls and what it refers to; scratch folders, locks and caches stay."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for name in _JOURNAL_PARTS:
            if (state / name).exists():
                packed.add(state / name, name)


def _read_part(file: Path, offset: int) -> tuple[bytes, int]:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(JOURNAL_PART_BYTES), os.fstat(opened.fileno()).st_size


def _job_state(box: Toolbox | None) -> Literal["none", "ended", "running"]:
    commands = None if box is None else box.workspace.commands
    return commands.job_state if isinstance(commands, LocalCommands) else "none"


def open_host_folder(
    folder: str | Path, *, limits: HostLimits | None = None, runner: str = ""
) -> WorkspaceHost:
    """Open the workspaces of a folder as a host."""
    return WorkspaceHost(WorkspaceStore(folder), limits=limits, runner=runner)
