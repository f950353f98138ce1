"""The executor: runs a tool call, from its arguments to the recorded result, with locks, timeouts and dry runs."""

import errno
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio import to_thread
from pydantic import BaseModel

from handtools.core.approval import Approval, Approver, Reply
from handtools.core.call import Call, CancelToken, caller_cancelled_error
from handtools.core.callbacks import Callbacks
from handtools.core.changes import merge_recorded_changes
from handtools.core.effects import Effect
from handtools.core.errors import (
    Busy,
    Cancelled,
    Denied,
    HandtoolsError,
    HostError,
    NotFound,
    Repeated,
    Stale,
    TimedOut,
    ToolError,
    UnknownTool,
    UsageError,
)
from handtools.core.events import Settled, Started
from handtools.core.result import CallFailure, CallUsage, Result, Text, result_from_json
from handtools.core.tool import AnyTool
from handtools.runtime.after_call import (
    MAX_RESULT_TEXT_BYTES,
    after_change,
    limit_output_text,
    with_guidance,
)
from handtools.runtime.approval.gate import ApprovalGate, ApprovalPending, settle_reply
from handtools.runtime.approval.questions import claim_reply, wait_while_answered
from handtools.runtime.arguments import TOOL_ALIASES, validate_arguments
from handtools.runtime.call_locks import CallLocks
from handtools.runtime.call_run import CallRun
from handtools.runtime.call_tracing import traced_call
from handtools.runtime.event_delivery import EventAnnouncer
from handtools.runtime.guards.callbacks import only_own_cancellation
from handtools.runtime.guards.files import (
    LOCK_TIMEOUT_SECONDS,
)
from handtools.runtime.journal import CallRecord
from handtools.runtime.journaled_transactions import recover_transactions, settle_unfinished
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Decision
from handtools.runtime.workspace import Workspace
from handtools.text.paths import similar_names
from handtools.text.token_estimate import estimate_tokens

_TOO_MANY_FILES = "Ask the user to raise the limit (`ulimit -n`) or to stop programs with many open files."
_NO_ROOM = "Ask the user to free disk space."
_FAILING_DISK = "Ask the user to check this machine's disk."
MACHINE_REFUSALS = {
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.ENOMEM: "Ask the user to free memory.",
    errno.EIO: _FAILING_DISK,
    errno.EROFS: _FAILING_DISK,
    errno.EINTR: "The call was interrupted.",
}
"""Advice by errno, for OS errors that come from the state of the machine and not from a bug."""
NOTE_AFTER_FAILURES = 3
STOP_AFTER_FAILURES = 6
FAULTS_OF_OTHER_WRITERS = frozenset({Busy.code, Stale.code})
"""Failures that are not counted, because the same call may succeed when the other writer is done."""
MAX_COUNTED_FAILING_CALLS = 512


class RepeatGuard:
    """Counts how often each session and agent fails with the same call in a row, to stop endless repetition."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, int] = OrderedDict()

    def check(self, call: Call) -> None:
        """Raise `Repeated` if the same call has failed `STOP_AFTER_FAILURES` times in a row."""
        if not self._failures:
            return
        failed = self._failures.get(_repeat_key(call), 0)
        if failed >= STOP_AFTER_FAILURES:
            raise Repeated(
                f"This same call has failed {failed} times; it was not run again.",
                hint="Change the arguments, or check the current state first.",
            )

    def settle(self, call: Call, *, ok: bool) -> str:
        """Count the outcome of a call; return a note for the model after repeated failures, otherwise empty."""
        if ok and not self._failures:
            return ""
        key = _repeat_key(call)
        if ok:
            self._failures.pop(key, None)
            return ""
        failed = self._failures.pop(key, 0) + 1
        self._failures[key] = failed
        while len(self._failures) > MAX_COUNTED_FAILING_CALLS:
            self._failures.popitem(last=False)
        return (
            f"\n(The same call has now failed {failed} times in a row.)"
            if failed >= NOTE_AFTER_FAILURES
            else ""
        )


def _repeat_key(call: Call) -> str:
    args = json.dumps(dict(call.args), sort_keys=True, default=str)
    return f"{call.session_key}\0{call.agent}\0{call.tool}\0{hash(args)}"


logger = logging.getLogger("handtools")


@dataclass(slots=True)
class _Running:
    """A call running in this process; a second call with the same id waits for its result."""

    done: anyio.Event | None = None
    """Set when the call ends; created by the first waiter."""
    result: Result[Any] | None = None

    async def wait_for_result(self) -> Result[Any] | None:
        """Wait for the call and return its result, or None if it raised an error instead."""
        if self.done is None:
            self.done = anyio.Event()
        await self.done.wait()
        return self.result


@dataclass(slots=True, kw_only=True)
class Executor:
    """Runs calls of a fixed set of tools on one workspace, under one policy."""

    tools: Mapping[str, AnyTool]
    workspace: Workspace
    policy: Policy
    approver: Approver | None
    callbacks: Callbacks
    announcer: EventAnnouncer
    clock: Callable[[], datetime]
    timeout: float
    """Default time limit of a call, in seconds."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names under which tools are offered to the model, by tool name."""
    _call_locks: CallLocks = field(default_factory=CallLocks)
    _repeats: RepeatGuard = field(default_factory=RepeatGuard)
    _running: dict[str, _Running] = field(default_factory=dict)
    _recovered: bool = False

    async def call(
        self,
        call: Call,
        cancel: CancelToken | None = None,
        *,
        fresh: bool = False,
        reply: Reply | None = None,
    ) -> Result[Any]:
        """Run a call, or return the recorded result of a call with the same id; `fresh` skips that lookup.

        `reply` answers the approval request that the call is waiting for, or the first one it makes.
        """
        call = self.workspace.journal.owned(call)
        ended = await self._result_of_running(call.id)
        if ended is not None and not (reply and ended.status == "pending"):
            return ended
        if reply is not None and not fresh and await self._is_awaiting_approval(call):
            return await self.resume(call.id, reply, cancel)
        return await self._run_or_recall(
            call, cancel or CancelToken(), frozenset(), fresh=fresh, reply=reply
        )

    async def _result_of_running(self, call_id: str) -> Result[Any] | None:
        """Wait for a call in this process and return its result; None if it isn't running or raised an error."""
        while (running := self._running.get(call_id)) is not None:
            if (ended := await running.wait_for_result()) is not None:
                return ended
        return None

    async def _is_awaiting_approval(self, call: Call) -> bool:
        kept = await to_thread.run_sync(self.workspace.journal.calls.suspended, call.id)
        return kept is not None and not self._is_reused(call)

    async def resume(self, call_id: str, reply: Reply, cancel: CancelToken | None = None) -> Result[Any]:
        """Reply to a pending call. If approved, the call runs again from the start with that effect allowed."""
        journal = self.workspace.journal
        if (ended := await self._result_of_running(call_id)) is not None:
            return ended
        pending, claim = await to_thread.run_sync(claim_reply, journal, call_id, reply)
        if pending is None:
            if (recorded := await self._recorded_result(call_id)) is not None:
                return recorded
            raise UsageError(f"No call {call_id!r} is waiting for an answer.")
        if claim is None:
            # The reply is for an outdated approval request; return the current one.
            return _pending_result(pending.approval)
        if claim.kind != "run":
            # Another reply came first, or another process resumes the call: wait until it has the result.
            await wait_while_answered(journal, call_id)
            asked = await to_thread.run_sync(journal.calls.suspended, call_id)
            recorded = await self._recorded_result(call_id)
            # If the other process died, the call is still pending.
            return recorded if recorded and not asked else _pending_result((asked or pending).approval)
        # The call may already run in this process, resumed by an earlier reply.
        if (ended := await self._result_of_running(call_id)) is not None:
            return ended
        try:
            settle_reply(journal, pending.call, pending.approval, claim.reply)
        except Denied as no:
            return await self._end_pending_call(pending.call, no)
        granted = pending.granted | {pending.approval.fingerprint}
        return await self._run_or_recall(pending.call, cancel or CancelToken(), granted)

    def is_settled(self, call_id: str) -> bool:
        """Whether a call has a final recorded result: it is not pending and would not run again if repeated."""
        value = self.workspace.journal.calls.recall(call_id)
        return (
            value is not None and value["status"] != "pending" and not _runs_again(result_from_json(value))
        )

    async def withdraw(self, call_id: str, reason: str) -> bool:
        """Withdraw the approval request of a pending call and end the call; return False if it is not pending."""
        kept = await to_thread.run_sync(self.workspace.journal.calls.suspended, call_id)
        if kept is None or call_id in self._running:
            return False
        await self._end_pending_call(
            kept.call, Cancelled("The approval request was withdrawn; nothing was done.", hint=reason)
        )
        return True

    async def _end_pending_call(self, call: Call, error: ToolError) -> Result[Any]:
        """Record an error as the result of a pending call, without running it."""
        from handtools.runtime.guards.commands import drop_held_command

        await to_thread.run_sync(drop_held_command, self.workspace, call.id)
        return await self._record_and_announce(self._new_run(call), result_of_error(error), at_once=True)

    async def dry_run(self, call: Call) -> Decision:
        """Run a call up to its first effect other than an allowed read; raises `DryRunStopped` there.

        If there is no such effect, the tool completes and the decision is "allow".
        """
        gate = DryRunGate(call, self.policy, None, self.workspace.journal, lambda _: None)
        tool = self._tool(call.tool)
        params = validate_arguments(tool, call.args)
        await tool.run(self._run_of_gate(gate), params)
        return Decision("allow", "no effect", "The call only reads what is allowed.")

    async def _run_or_recall(
        self,
        call: Call,
        cancel: CancelToken,
        granted: frozenset[str],
        *,
        fresh: bool = False,
        reply: Reply | None = None,
    ) -> Result[Any]:
        running = self._running[call.id] = _Running()
        try:
            recorded = None if fresh else await self._recorded_result(call.id)
            if recorded is not None and self._is_reused(call):
                return _fault_result(
                    "invalid_input", f"The id {call.id!r} belongs to another call.", "Use a new id."
                )
            if recorded is None or (recorded.status == "pending" and granted) or _runs_again(recorded):
                running.result = await self._run(call, cancel, granted, reply)
            else:
                running.result = recorded
            return running.result
        except HostError as failure:
            return _host_fault_result(failure)
        finally:
            if running.done is not None:
                running.done.set()
            del self._running[call.id]

    async def _recorded_result(self, call_id: str) -> Result[Any] | None:
        # Reading an indexed row in WAL mode never blocks, so no thread is needed.
        value = self.workspace.journal.calls.recall(call_id)
        if value is None:
            return None
        logged = self.workspace.journal.calls.find(call_id)
        tool = self.tools.get(logged.tool) if logged else None
        return result_from_json(value, tool.details if tool else None)

    def _is_reused(self, call: Call) -> bool:
        """Whether a call with the same id, but another tool or other arguments, is recorded already."""
        logged = self.workspace.journal.calls.find(call.id)
        if logged is None or not logged.args:
            return False
        return (logged.tool, logged.args) != (call.tool, json.loads(json.dumps(dict(call.args))))

    def _new_run(
        self, call: Call, granted: frozenset[str] = frozenset(), reply: Reply | None = None
    ) -> CallRun:
        announce, journal = self.announcer.announce, self.workspace.journal
        gate = ApprovalGate(call, self.policy, self.approver, journal, announce, granted, reply=reply)
        return self._run_of_gate(gate)

    def _run_of_gate(self, gate: ApprovalGate) -> CallRun:
        return CallRun(gate, self.workspace, callbacks=self.callbacks, clock=self.clock)

    async def _run(
        self, call: Call, cancel: CancelToken, granted: frozenset[str], reply: Reply | None
    ) -> Result[Any]:
        self.announcer.announce(Started(call))
        run = self._new_run(call, granted, reply)
        self.workspace.journal.own_running.begin(call, cancel.cancel)
        try:
            with traced_call(call) as span:
                try:
                    result = await self._run_with_timeout(run, cancel)
                except anyio.get_cancelled_exc_class():
                    with anyio.CancelScope(shield=True):
                        await self._record_and_announce(run, result_of_error(caller_cancelled_error()))
                    raise
                # Shielded, so that completed work is recorded even if the call is cancelled now.
                with anyio.CancelScope(shield=True):
                    result = await self._record_and_announce(run, result)
                span.settle(result)
        finally:
            self.workspace.journal.own_running.end(call.id)
        return result

    async def _run_with_timeout(self, run: CallRun, cancel: CancelToken) -> Result[Any]:
        """Run the tool with timeout and cancellation; errors become results."""
        call = run.call
        try:
            cancel.check()
            if not self._recovered or self.workspace.journal.entries.unsettled:
                await self._settle_open_transactions()
            tool = self._tool(call.tool)
            params = validate_arguments(tool, call.args)
            self._repeats.check(call)
            seconds = self.timeout if call.deadline is None else call.deadline
            end = time.monotonic() + seconds
            with anyio.move_on_after(seconds) as scope:
                unlink = _cancel_scope_on(cancel, scope)
                try:
                    with only_own_cancellation():
                        return await self._in_turn(run, tool, params, end)
                finally:
                    unlink()
            cancel.check()
            said = f"The call took longer than {seconds:g} s and was stopped."
            raise TimedOut(said, hint="Do less in one call.")
        except ApprovalPending as out:
            await to_thread.run_sync(
                self.workspace.journal.calls.suspend, call, out.approval, run.gate.used
            )
            text = "\n".join(filter(None, (out.so_far, _approval_pending_text(out.approval))))
            return Result(text, None, status="pending", request=out.approval)
        except ToolError as failure:
            return result_of_error(failure)
        except HostError as failure:
            return _host_fault_result(failure)
        except OSError as refusal:
            if refusal.errno not in MACHINE_REFUSALS:
                return _bug_result(call, refusal)
            logger.warning("The system refused call %s: %s", call.id, refusal)
            return _refusal_result(call, refusal)
        except Exception as bug:  # noqa: BLE001 - one of four, listed in tests/shape: the process must survive
            return _bug_result(call, bug)

    async def _settle_open_transactions(self) -> None:
        recover = settle_unfinished if self._recovered else recover_transactions
        self._recovered = True
        try:
            sentences = await recover(self.workspace)
        except BaseException:
            self._recovered = recover is settle_unfinished
            raise
        for sentence in sentences:
            logger.warning("%s", sentence)
        if self.workspace.journal.healed:
            logger.warning("%s", self.workspace.journal.healed)

    def offered(self) -> list[AnyTool]:
        """List the tools that the policy allows and that the machine and the callbacks support."""
        return [tool for tool in self.tools.values() if self.offers(tool)]

    def offers(self, tool: AnyTool) -> bool:
        """Whether the policy allows a tool, and the machine and the callbacks support it."""
        return (
            self.policy.offers(tool)
            and self.workspace.can_run_tool(tool)
            and self.callbacks.has(tool.needs)
        )

    def _tool(self, name: str) -> AnyTool:
        tool = self.tools.get(name)
        if tool is not None and self.offers(tool):
            return tool
        offered = {tool.name: self.names.get(tool.name, tool.name) for tool in self.offered()}
        meant = [shown for ours, shown in offered.items() if name.lower() in TOOL_ALIASES.get(ours, ())]
        close = meant or similar_names(name, list(offered.values()), most=3)
        hint = (
            f"Did you mean {', '.join(close)}?"
            if close
            else f"Tools: {', '.join(offered.values()) or 'none'}."
        )
        raise UnknownTool(f"There is no tool `{name}`.", hint=hint)

    async def _in_turn(self, run: CallRun, tool: AnyTool, params: BaseModel, end: float) -> Result[Any]:
        """Run the tool with its paths locked: shared for reads, exclusive across processes for changes."""
        named = list(tool.paths(params))
        if not named:
            return await self._run_tool(run, tool, params, end)
        if tool.reads_only:
            async with self._call_locks.turn(named, exclusive=False):
                return await self._run_tool(run, tool, params, end)
        located = await self._located_paths(named)
        locks = self.workspace.locks.hold(sorted(located), timeout=LOCK_TIMEOUT_SECONDS)
        async with self._call_locks.turn(located.union(named), exclusive=True), locks:
            run.files.held = frozenset(located)
            return await self._run_tool(run, tool, params, end)

    async def _run_tool(self, run: CallRun, tool: AnyTool, params: BaseModel, end: float) -> Result[Any]:
        try:
            result = await tool.run(run, params)
        except NotFound as missing:
            raise await run.files.with_near_names(missing, tool.paths(params)) from None
        return await with_guidance(await after_change(result, run.files, end), run.files)

    async def _located_paths(self, paths: list[str]) -> set[str]:
        locate = self.workspace.files.locate
        # Without a thread if possible: threads could change the order in which calls lock a file.
        if self.workspace.files.is_fast_to_read:
            return {locate(path) for path in paths}
        return await to_thread.run_sync(lambda: {locate(path) for path in paths})

    async def _record_and_announce(
        self, run: CallRun, result: Result[Any], *, at_once: bool = False
    ) -> Result[Any]:
        """Limit the result's text, record it and announce it; `at_once` means that it must not be queued."""
        is_by_others = result.fault is not None and result.fault.code in FAULTS_OF_OTHER_WRITERS
        if result.status != "pending" and not is_by_others:
            note = self._repeats.settle(run.call, ok=result.ok)
            if note:
                result = result.with_fields(content=(*result.content, Text(note)))
        if run.files.recorded_changes:
            result = result.with_fields(changes=merge_recorded_changes(run.files.recorded_changes))
        later = not at_once and self._may_record_later(run, result)
        # Queueing a record is fast, so no thread is needed.
        if later and len(result.text) <= MAX_RESULT_TEXT_BYTES:
            settled = self._record(run, result, later=True)
        else:
            settled = await to_thread.run_sync(partial(self._record, run, result, later=later))
        self.announcer.announce(Settled(run.call, settled))
        return settled

    def _record(self, run: CallRun, result: Result[Any], *, later: bool) -> Result[Any]:
        """Limit the result's text and record it; with `later`, only queue it to be recorded."""
        call, journal = run.call, self.workspace.journal
        bounded = limit_output_text(result, call, self.workspace.output_store)
        text = bounded.text
        settled = bounded.with_fields(usage=CallUsage(run.seconds, estimate_tokens(text), len(text)))
        strictest = run.gate.strictest
        verdict, rule = (strictest.verdict, strictest.rule) if strictest else ("", "")
        record = CallRecord(call, settled, run.started, time.time(), run.files.known_nodes, verdict, rule)
        if later:
            journal.record_later(record)
            return settled
        try:
            journal.record(record)
        except HostError as failure:
            logger.warning("Call %s is not in the log: %s", call.id, failure)
        return settled

    def _may_record_later(self, run: CallRun, result: Result[Any]) -> bool:
        """Whether the call may be recorded later, because losing it in a crash only means reading again.

        False for calls with changes, approvals or web visits.
        """
        tool = self.tools.get(run.call.tool)
        if tool is None or run.files.recorded_changes or run.gate.granted:
            return False
        return tool.effects <= {"read"} and result.status != "pending"


def result_of_error(error: ToolError) -> Result[Any]:
    """Return the result for a tool error."""
    status: Any = error.status
    call_failure = CallFailure(error.code, error.message, error.hint)
    return Result(str(error), None, status=status, fault=call_failure)


def _runs_again(recorded_result: Result[Any]) -> bool:
    """Whether a call with this recorded result may run again: it was cancelled and changed nothing.

    An agent run that was cancelled and is resumed later sends the same call again.
    """
    return recorded_result.status == "cancelled" and recorded_result.changes is None


def _pending_result(approval: Approval) -> Result[Any]:
    return Result(_approval_pending_text(approval), None, status="pending", request=approval)


def _approval_pending_text(approval: Approval) -> str:
    why = f" Reason: {approval.rule}" if approval.rule else ""
    return f"Needs the user's approval: {approval.title}.{why} Continue with other work in the meantime."


def _fault_result(code: str, message: str, hint: str) -> Result[Any]:
    return Result(f"{message} {hint}", None, status="error", fault=CallFailure(code, message, hint))


def _bug_result(call: Call, bug: Exception) -> Result[Any]:
    logger.error("The tool %s failed on call %s", call.tool, call.id, exc_info=bug)
    return _fault_result(
        "internal", f"`{call.tool}` failed: {type(bug).__name__}: {bug}", "Try another way."
    )


def _refusal_result(call: Call, refusal: OSError) -> Result[Any]:
    """The result of a call that failed with one of the OS errors in `MACHINE_REFUSALS`."""
    advice = MACHINE_REFUSALS[refusal.errno or 0]
    return _fault_result(
        "storage",
        f"`{call.tool}` failed: {refusal.strerror}.",
        f"{advice} Before you retry, check whether the call already changed something.",
    )


def _host_fault_result(error: HostError) -> Result[Any]:
    logger.warning("%s", error)
    return _fault_result("host", str(error), "Ask the user to run `handtools doctor` on this machine.")


def _cancel_scope_on(cancel: CancelToken, scope: anyio.CancelScope) -> Callable[[], None]:
    """Cancel the scope when the token is cancelled in any thread; returns a function to unlink them."""
    home, loop = threading.get_ident(), anyio.lowlevel.current_token()

    def stop() -> None:
        if threading.get_ident() == home:
            scope.cancel()
        else:
            anyio.from_thread.run_sync(scope.cancel, token=loop)

    return cancel.on_cancel(stop)


class DryRunStopped(HandtoolsError):
    """Raised in a dry run to stop the tool at the first effect; contains the decision on it."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(str(decision))
        self.decision = decision


@dataclass(slots=True)
class DryRunGate(ApprovalGate):
    """Gate for dry runs: admits allowed reads and stops at any other effect."""

    def judge(self, effect: Effect) -> Decision:
        """Return the real gate's decision on an allowed read; raises `DryRunStopped` for any other effect."""
        decision = self.policy.decide(effect, self.call.tool)
        if decision.verdict == "ask" and self.remembers(self.question(effect, decision)):
            reason = f"The user approved it and chose to remember that. Otherwise: {decision.reason}"
            decision = Decision("allow", "remembered", reason, decision.target)
        if effect.kind != "read" or decision.verdict != "allow":
            raise DryRunStopped(decision)
        return decision

    async def admit(self, effect: Effect, *, question: str = "") -> None:
        """Raise `DryRunStopped` unless the effect is an allowed read; with a `question`, its verdict is "ask"."""
        try:
            self.judge(effect)
        except DryRunStopped as found:
            if question and found.decision.verdict == "allow":
                raise DryRunStopped(Decision("ask", "review", question, found.decision.target)) from None
            raise


async def decide_hypothetical_call(executor: Executor, call: Call) -> Decision:
    """Return the policy's decision on a hypothetical call; changes and records nothing, never asks or raises."""
    call = executor.workspace.journal.owned(call)
    try:
        return await executor.dry_run(call)
    except DryRunStopped as found:
        return found.decision
    except Denied as no:
        return Decision("deny", no.code, str(no))
    except HandtoolsError as failure:
        return Decision("deny", "not a valid call", str(failure))
