"""A host: many workspaces in one process, with slots, turns, deadlines and quotas."""

import asyncio
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyio import to_thread

from handtools import __version__
from handtools.core.approval import Reply
from handtools.core.call import Call, CancelToken, CancelTokens
from handtools.core.errors import Busy, TooLarge, ToolError, UnknownOutcome, UsageError
from handtools.core.events import EventListener
from handtools.core.result import Result
from handtools.core.tool import AnyTool
from handtools.fleet.fair_call_queue import FairCallQueue
from handtools.fleet.fork_merge import ForkMerge, merge_fork, promote_fork
from handtools.fleet.host_status import HostedWorkspace, HostStatus, update_metrics_from_status
from handtools.fleet.journal_archive import JOURNAL_ARCHIVE_NAME, pack_journal, read_archive_part
from handtools.fleet.log_shipping import Durability, LogShipping
from handtools.fleet.metrics import HostMetrics
from handtools.fleet.tree_diff import TreeDifference
from handtools.fleet.workspace_log import LogHead, LogStore
from handtools.fleet.workspace_slots import HostLimits, WorkspaceSlot, WorkspaceSlots
from handtools.fleet.workspaces import WORKSPACE_NAME, WorkspaceStore
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.sandbox.processes.memory_and_disk_monitor import resident_memory_bytes
from handtools.mcp.remote_toolbox import narrowed_toolbox
from handtools.runtime.executor import result_of_error
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, ToolsByName, local_workspace

QUOTA_SECONDS = 2.0
"""Before a call that changes something, disk usage is measured again if it is older than this."""
REDUCING_TOOLS = frozenset({"bash", "undo"})
"""Tools that are allowed in a workspace over its quota, because they can free space."""
_JOB_LOOK_SECONDS = 0.1


class WorkspaceHost:
    """The workspaces of one folder and the calls in them. Use it from one event loop only."""

    def __init__(
        self,
        store: WorkspaceStore,
        *,
        limits: HostLimits | None = None,
        tools: Sequence[AnyTool | str] = CODING,
        policy: Policy | None = None,
        runner: str = "",
        log: LogStore | None = None,
        durability: Durability = "durable",
        name: str = "",
        metrics: HostMetrics | None = None,
    ) -> None:
        self.store = store
        self.name = name
        """The host's name in the fleet; the names of workspaces created here start with it."""
        self._metrics = metrics
        self.limits = limits or HostLimits()
        self.incarnation = secrets.token_hex(8)
        """Random id of this run of the host. A client that knows another id talked to an earlier process."""
        self._tools, self._policy, self._runner = tuple(tools), policy or Policy(), runner
        self._tools_by_name = ToolsByName(tools)
        self._turns = FairCallQueue(self.limits.turns)
        self._slots = WorkspaceSlots(
            store,
            self.limits,
            incarnation=self.incarnation,
            open_toolbox=self._open_toolbox,
            before_close=self._store_new_changes,
        )
        self._logs: LogShipping | None = None
        if log is not None:
            self._logs = LogShipping(
                store,
                log,
                self._slots,
                durability=durability,
                host_name=name,
                incarnation=self.incarnation,
                metrics=metrics,
            )
        store.collect_garbage()  # a killed process may have left unfinished workspaces and layers
        for known in store.workspace_names():
            if log is None:
                self._slots.add_workspace(store.get_record(known))
            else:
                # Workspaces are recovered from the log. No client got a result for changes that it lacks.
                store.remove(known)
        self._cancels = CancelTokens()
        """Tokens of running and waiting calls, by workspace and call id."""
        self._recovering: dict[str, asyncio.Lock] = {}
        self._draining = False

    async def add_template(self, kind: str, source: str, commit: str = "", folder: str = "") -> str:
        """Create a template from a `folder`, `tarball`, `git` commit or `image`, and return its digest.

        If the host has logs, the template is also stored with them.
        """
        templates = self.store.templates
        makers = {
            "folder": lambda: templates.add_folder(source),
            "tarball": lambda: templates.add_tarball(source),
            "git": lambda: templates.add_git_commit(source, commit or "HEAD"),
            "image": lambda: templates.add_image(source, folder=folder),
        }
        if kind not in makers:
            raise UsageError(f"The kind of a template is one of {', '.join(makers)}, not {kind!r}.")
        made = await to_thread.run_sync(makers[kind])
        if self._logs is not None:
            await to_thread.run_sync(self._logs.log.put_template, made)
        return made.digest

    async def create(self, template: str, *, name: str = "", tenant: str = "") -> str:
        """Create a workspace from a template and return its name. Raises `Busy` if no slot is free.

        Idempotent: the name of an existing workspace with the same template and tenant is returned.
        """
        if (there := self._slots.by_name.get(name)) is not None:
            known = self.store.get_record(name)
            if (known.template, known.tenant, known.parent) == (template, tenant, ""):
                return there.name
        self._check_free_slots(tenant, 1)
        name = name or secrets.token_hex(8)
        if self._logs is not None and not await self._logs.create_log(name, LogHead(template, tenant)):
            # The log exists: this request was sent before, to a host that was killed. Recover the
            # workspace, because calls may have run in it since.
            return (await self._find_or_recover_slot(name, tenant)).name
        made = await to_thread.run_sync(lambda: self.store.create(template, name=name, tenant=tenant))
        self._slots.add_workspace(made)
        await self._slots.close_excess_workspaces()
        return name

    async def fork(
        self, name: str, count: int = 1, *, tenant: str = "", names: Sequence[str] = ()
    ) -> list[str]:
        """Fork a workspace after its running calls end. Returns the names of the forks.

        Idempotent: if `names` are already forks of it, they are returned.
        """
        slot = await self._find_or_recover_slot(name, tenant)
        if names and all(
            each in self._slots.by_name and self.store.get_record(each).parent == name for each in names
        ):
            return list(names)
        self._check_free_slots(tenant, len(names) or count)  # before generating `count` names
        names = list(names) or [secrets.token_hex(8) for _ in range(count)]
        async with self._slots.use_exclusively(slot):
            new = names if self._logs is None else await self._logs.create_fork_logs(slot, names)
            made = await to_thread.run_sync(lambda: self.store.fork(name, names=new)) if new else []
            for record in made:
                self._slots.add_workspace(record)
        for each in names:
            await self._find_or_recover_slot(each, tenant)
        await self._slots.close_excess_workspaces()
        return names

    async def diff(self, name: str, *, tenant: str = "") -> list[TreeDifference]:
        """The differences between a workspace and its initial state."""
        async with self._slots.use_toolbox(await self._find_or_recover_slot(name, tenant)):
            return await to_thread.run_sync(self.store.diff, name)

    async def merge_or_promote_fork(self, fork: str, *, tenant: str = "", whole: bool = False) -> ForkMerge:
        """Merge a fork into its parent.

        With `whole`, the fork replaces the parent, which fails if the parent has changed since the fork.
        """
        slot = await self._find_or_recover_slot(fork, tenant)
        parent = await self._find_or_recover_slot(self.store.get_record(fork).parent, tenant)
        bring = promote_fork if whole else merge_fork
        async with self._slots.use_toolbox(slot), self._slots.use_toolbox(parent) as box, parent.changing:
            done = await bring(self.store, fork, box)
            await self._store_new_changes(parent, box)
            return done

    async def journal_archive_part(self, name: str, offset: int, *, tenant: str = "") -> tuple[bytes, int]:
        """A part of a tar archive of a workspace's journal, and the total size of the archive.

        Offset 0 creates the archive, after running calls end; other offsets read the same archive.
        """
        slot = await self._find_or_recover_slot(name, tenant)
        archive = self.store.state_folder(name).parent / JOURNAL_ARCHIVE_NAME
        if not offset:
            async with self._slots.use_exclusively(slot):
                await to_thread.run_sync(pack_journal, self.store.state_folder(name), archive)
        return await to_thread.run_sync(read_archive_part, archive, offset)

    async def remove(self, name: str, *, tenant: str = "") -> None:
        """Delete a workspace and its journal after its running calls end."""
        slot = await self._find_or_recover_slot(name, tenant)
        async with self._slots.use_exclusively(slot):
            if self._logs is not None:
                await to_thread.run_sync(self._logs.log.mark_workspace_removed, name)
            del self._slots.by_name[name]
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
        """Run a tool call in a workspace. Refusals by the host are also returned as results.

        The call's deadline includes the time that it waits for its turn. `sent_to` is the incarnation (run
        of a host) that the same call was sent to before. If that host is gone and a call that may have had
        effects is not in the log, its outcome is unknown. Then it is not run, unless its metadata contain
        `retryable`.
        """
        began = time.monotonic()
        try:
            with self._cancels.registered((name, call.id), cancel) as token:
                slot = await self._find_or_recover_slot(name, tenant)
                async with (
                    self._hold_turn(slot, call, token),
                    self._slots.use_toolbox(slot) as box,
                    self._log_changes_after_block(slot, box, call.tool),
                ):
                    if self._is_changing_tool(call.tool):
                        await self._refuse_if_outcome_unknown(box, call, sent_to)
                        await self._check_quota(slot, call.tool)
                    if call.deadline is not None:
                        left = max(0.001, call.deadline - (time.monotonic() - began))
                        call = replace(call, deadline=left)
                    chosen = _toolbox_under_policy(slot, box, policy)
                    result = await chosen.call(call, reply=reply, cancel=token, listener=listener)
        except ToolError as refused:
            result = result_of_error(refused)
        if self._metrics is not None:
            self._metrics.count_finished_call(call.tool, result, time.monotonic() - began)
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
        """Answer the approval request of a pending call and return the call's result."""
        slot = await self._find_or_recover_slot(name, tenant)
        async with self._slots.use_toolbox(slot) as box, self._log_changes_after_block(slot, box, None):
            chosen = _toolbox_under_policy(slot, box, policy)
            return await chosen.resume(call_id, reply)

    @asynccontextmanager
    async def use_toolbox(
        self, name: str, *, tenant: str = "", policy: dict[str, Any] | None = None
    ) -> AsyncIterator[Toolbox]:
        """The toolbox of a workspace, for requests that don't queue: approvals, definitions, decisions."""
        slot = await self._find_or_recover_slot(name, tenant)
        async with self._slots.use_toolbox(slot) as box:
            yield _toolbox_under_policy(slot, box, policy)

    def cancel(self, name: str, call_id: str, *, tenant: str = "") -> bool:
        """Cancel a running or waiting call; False if there is no such call here."""
        self._slots.get_slot(name, tenant)
        return self._cancels.cancel((name, call_id))

    def workspace_names(self, *, tenant: str = "") -> list[str]:
        """The names of a tenant's workspaces; of all workspaces if `tenant` is empty."""
        return sorted(
            slot.name for slot in self._slots.by_name.values() if not tenant or slot.tenant == tenant
        )

    def list_workspaces(self) -> list[HostedWorkspace]:
        """All workspaces on this host."""
        return [
            HostedWorkspace(
                slot.name,
                slot.tenant,
                self.store.get_record(slot.name).parent,
                slot.toolbox is not None,
                slot.job_state == "running",
            )
            for slot in sorted(self._slots.by_name.values(), key=lambda each: each.name)
        ]

    def status(self) -> HostStatus:
        """The current status of the host."""
        slots, disk = self._slots.by_name.values(), shutil.disk_usage(self.store.folder)
        unstored = [slot.unstored_since for slot in slots if slot.unstored_since is not None]
        return HostStatus(
            workspaces=len(slots),
            open=len(self._slots.open_slots()),
            running=self._turns.running,
            waiting=self._turns.waiting,
            shed=self._turns.shed,
            draining=self._draining,
            slots=self.limits.slots,
            tenants=dict(Counter(slot.tenant for slot in slots)),
            memory_bytes=resident_memory_bytes(os.getpid()),
            disk_free_bytes=disk.free,
            disk_bytes=disk.total,
            has_log=self._logs is not None,
            unstored_seconds=max(0.0, time.monotonic() - min(unstored)) if unstored else 0.0,
            version=__version__,
        )

    def sample_metrics(self) -> None:
        """Update the sampled metrics."""
        if self._metrics is not None:
            update_metrics_from_status(
                self._metrics, self.status(), self._logs.log.stored_bytes if self._logs else 0
            )

    async def refuse_new_workspaces(self) -> None:
        """Accept no new workspaces. Calls in existing ones continue."""
        self._draining = True

    async def hand_over_workspace(self, name: str, to: str, *, job_seconds: float = 0.0) -> None:
        """Move a workspace to another host, after its running calls end and its log is complete.

        A running background job has `job_seconds` to finish before it is killed. Later requests here raise
        `WorkspaceMoved` with the other host's name.
        """
        if self._logs is None:
            raise UsageError("Can't move workspaces of a host without a log. Start hosts with a `log_url`.")
        if not self.name or to == self.name:
            raise UsageError(f"Can't move workspace {name} to host {to!r} from host {self.name!r}.")
        slot = await self._find_or_recover_slot(name, "")
        end = time.monotonic() + job_seconds
        while slot.job_state == "running" and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(_JOB_LOOK_SECONDS)
        async with self._slots.use_exclusively(slot):
            await to_thread.run_sync(self._logs.log.assign_to_host, name, to)
            slot.moved_to = to
            self._slots.by_name.pop(name, None)
            await to_thread.run_sync(self.store.remove, name)
        if self._metrics is not None:
            self._metrics.add_to_counter("moved_workspaces")

    async def recover_handed_over_workspace(self, name: str) -> None:
        """Recover a workspace that another host has handed over."""
        await self._find_or_recover_slot(name, "")

    async def aclose(self) -> None:
        """Close every workspace after its running calls end. The workspaces stay on disk."""
        if self._logs is not None:
            await self._logs.aclose()
        await self._slots.aclose()

    async def _find_or_recover_slot(self, name: str, tenant: str) -> WorkspaceSlot:
        """The slot of a workspace. A workspace that is not on this host is first recovered from its log."""
        slots, logs = self._slots, self._logs
        if name not in slots.by_name and logs is not None and WORKSPACE_NAME.fullmatch(name):
            async with self._recovering.setdefault(name, asyncio.Lock()):
                if name not in slots.by_name:
                    await logs.recover_workspace(name, tenant)
            self._recovering.pop(name, None)
        return slots.get_slot(name, tenant)

    @asynccontextmanager
    async def _log_changes_after_block(
        self, slot: WorkspaceSlot, toolbox: Toolbox, tool: str | None
    ) -> AsyncIterator[None]:
        """Wrap a call that may change the workspace: if there are logs, its changes are stored afterwards."""
        if self._logs is None or (tool is not None and not self._is_changing_tool(tool)):
            yield
            return
        async with self._logs.log_changes_of_block(slot, toolbox):
            yield

    async def _store_new_changes(self, slot: WorkspaceSlot, toolbox: Toolbox) -> None:
        """Store new changes of a workspace in its log, if it has one."""
        if self._logs is not None:
            await self._logs.store_new_changes(slot, toolbox)

    async def _refuse_if_outcome_unknown(self, toolbox: Toolbox, call: Call, sent_to: str) -> None:
        if not sent_to or sent_to == self.incarnation or call.metadata.get("retryable"):
            return
        journal, began = toolbox.workspace.journal, time.time()
        if await to_thread.run_sync(journal.calls.has, call.id):
            return
        unknown = UnknownOutcome(
            "The host that ran this call was lost, and the log does not contain the call.",
            hint="The workspace is as the last logged call left it. Effects outside it are unknown.",
        )
        # Record the error as the result of this call id, so that the call can never run.
        await to_thread.run_sync(journal.calls.record, call, result_of_error(unknown), began)
        raise unknown

    @asynccontextmanager
    async def _hold_turn(self, slot: WorkspaceSlot, call: Call, token: CancelToken) -> AsyncIterator[None]:
        began = time.monotonic()
        async with self._turns.hold_turn(slot.tenant, slot.name, call.deadline, token):
            if self._metrics is not None:
                self._metrics.record_queue_wait(time.monotonic() - began)
            yield

    def _check_free_slots(self, tenant: str, count: int) -> None:
        if self._draining:
            raise Busy("This host is being drained.", hint="Use another host.")
        self._slots.check_free_slots(tenant, count)

    def _open_toolbox(self, name: str) -> Toolbox:
        root = self.store.open(name)
        workspace = local_workspace(root, state=self.store.state_folder(name), runner=self._runner)
        if isinstance(workspace.commands, LocalCommands):
            workspace.commands.mounts_left = self.store.mounts_left
        return Toolbox(self._tools, workspace=workspace, policy=self._policy)

    def _is_changing_tool(self, tool: str) -> bool:
        found = self._tools_by_name.get(tool)
        return found is not None and not found.reads_only

    async def _check_quota(self, slot: WorkspaceSlot, tool: str) -> None:
        if time.monotonic() - slot.measured > QUOTA_SECONDS:
            slot.over_quota = None
            try:
                await to_thread.run_sync(self.store.check_quota, slot.name)
            except TooLarge as over:
                slot.over_quota = over
            slot.measured = time.monotonic()
        if slot.over_quota is not None and tool not in REDUCING_TOOLS:
            raise slot.over_quota


def _toolbox_under_policy(slot: WorkspaceSlot, toolbox: Toolbox, policy: dict[str, Any] | None) -> Toolbox:
    """The toolbox under the policy sent with a request, if any."""
    return toolbox if policy is None else narrowed_toolbox(toolbox, policy, slot.narrowed_toolboxes)


def open_host_folder(
    folder: str | Path, *, limits: HostLimits | None = None, runner: str = ""
) -> WorkspaceHost:
    """Open a host for the workspaces in a folder, which need not exist yet."""
    return WorkspaceHost(WorkspaceStore(folder), limits=limits, runner=runner)
