"""The executor: the life of one call, from its id to its recorded result."""

import json
import logging
import threading
import time
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
from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.core.cancel import CancelToken, taken_back
from handtools.core.changes import together
from handtools.core.content import Text
from handtools.core.context import Context
from handtools.core.errors import Denied, HostError, TimedOut, ToolError, UnknownTool, UsageError
from handtools.core.events import Progressed, Settled, Started
from handtools.core.result import Fault, Result, Usage
from handtools.core.tool import AnyTool
from handtools.core.wire import result_from_json
from handtools.runtime.after_change import after_change
from handtools.runtime.announcing import Announcer
from handtools.runtime.approval import Gate, Suspended, settle
from handtools.runtime.cancelling import only_the_callers
from handtools.runtime.deciding import Decision
from handtools.runtime.guard import LOCK_SECONDS, GuardedFiles
from handtools.runtime.guard_callbacks import guarded
from handtools.runtime.guard_commands import GuardedCommands, let_go
from handtools.runtime.guard_language import GuardedLanguage
from handtools.runtime.guard_search import GuardedSearch
from handtools.runtime.guard_skills import GuardedSkills
from handtools.runtime.guard_web import GuardedWeb
from handtools.runtime.guidance import guided
from handtools.runtime.journal import Note, Occupied
from handtools.runtime.landing import recover
from handtools.runtime.overflow import OUTPUT_BYTES, bound
from handtools.runtime.policy import Policy
from handtools.runtime.repeating import RepeatGuard
from handtools.runtime.scheduler import Scheduler
from handtools.runtime.tracing import traced
from handtools.runtime.undoing import GuardedHistory
from handtools.runtime.validating import validate
from handtools.runtime.workspace import Workspace
from handtools.text.paths import near
from handtools.text.tokens import estimate

log = logging.getLogger("handtools")


@dataclass(slots=True)
class _Running:
    """A call that has begun in this process: the same id again waits for the same result."""

    done: anyio.Event | None = None
    """Made by the first who waits."""
    result: Result[Any] | None = None

    async def ended(self) -> Result[Any] | None:
        """What came of it, once it is over; None when it has no result."""
        if self.done is None:
            self.done = anyio.Event()
        await self.done.wait()
        return self.result


@dataclass(slots=True, kw_only=True)
class Executor:
    """Runs calls of a fixed set of tools on one workspace."""

    tools: Mapping[str, AnyTool]
    workspace: Workspace
    policy: Policy
    approver: Approver | None
    callbacks: Callbacks
    announcer: Announcer
    clock: Callable[[], datetime]
    timeout: float
    """Seconds a call may take when it brings no deadline of its own."""
    _scheduler: Scheduler = field(default_factory=Scheduler)
    _repeats: RepeatGuard = field(default_factory=RepeatGuard)
    _running: dict[str, _Running] = field(default_factory=dict)
    _recovered: bool = False

    async def call(
        self, call: Call, cancel: CancelToken | None = None, *, fresh: bool = False
    ) -> Result[Any]:
        """Run a call, or give back what was recorded under its id; nothing is under a `fresh` one."""
        call = self.workspace.journal.owned(call)
        if (running := self._running.get(call.id)) is not None:
            ended = await running.ended()
            if ended is not None:
                return ended
        return await self._first(call, cancel or CancelToken(), frozenset(), fresh=fresh)

    async def resume(self, call_id: str, reply: Reply, cancel: CancelToken | None = None) -> Result[Any]:
        """Answer a pending call: it runs again from the start, with a grant for exactly what was asked."""
        kept = await to_thread.run_sync(self.workspace.journal.calls.suspended, call_id)
        if kept is None:
            recorded = await self._recorded(call_id)
            if recorded is not None:
                return recorded
            raise UsageError(f"No call {call_id!r} is waiting for an answer.")
        asked = kept.approval
        if reply.fingerprint != asked.fingerprint and (reply.fingerprint or asked.again):
            # The answer is to a question that is no longer the one: what is asked now is still to be seen.
            return Result(_waiting(kept.approval), None, status="pending", request=kept.approval)
        try:
            settle(self.workspace.journal, kept.call, kept.approval, reply)
        except Denied as no:
            await to_thread.run_sync(let_go, self.workspace, kept.call.id)
            return await self._settle(kept.call, _failed(no), None, time.time(), 0.0)
        granted = kept.granted | {kept.approval.fingerprint}
        return await self._first(kept.call, cancel or CancelToken(), granted)

    async def rehearse(self, call: Call, files: GuardedFiles) -> Decision:
        """Run a call over files that stop at the first effect; coming to the end means it has none."""
        tool = self._tool(call.tool)
        params = validate(tool, call.args)
        await tool.run(self._context(call, files), params)
        return Decision("allow", "no effect", "The call only looks at what is allowed.")

    async def _first(
        self, call: Call, cancel: CancelToken, granted: frozenset[str], *, fresh: bool = False
    ) -> Result[Any]:
        running = self._running[call.id] = _Running()
        try:
            recorded = None if fresh else await self._recorded(call.id)
            if recorded is not None and self._is_reused(call):
                return _fault(
                    "invalid_input", f"The id {call.id!r} is of another call.", "Give this one its own id."
                )
            if recorded is not None and not (recorded.status == "pending" and granted):
                running.result = recorded
            else:
                running.result = await self._run(call, cancel, granted)
            return running.result
        except HostError as failure:
            return _host_fault(failure)
        finally:
            if running.done is not None:
                running.done.set()
            del self._running[call.id]

    async def _recorded(self, call_id: str) -> Result[Any] | None:
        # A look at an indexed row in WAL mode waits for nobody: not worth a thread.
        value = self.workspace.journal.calls.recall(call_id)
        if value is None:
            return None
        logged = self.workspace.journal.calls.find(call_id)
        tool = self.tools.get(logged.tool) if logged else None
        return result_from_json(value, tool.details if tool else None)

    def _is_reused(self, call: Call) -> bool:
        """Whether the recorded call of this id was made with other words; one that was forgotten has none left."""
        logged = self.workspace.journal.calls.find(call.id)
        if logged is None or not logged.args:
            return False
        return (logged.tool, logged.args) != (call.tool, json.loads(json.dumps(dict(call.args))))

    async def _run(self, call: Call, cancel: CancelToken, granted: frozenset[str]) -> Result[Any]:
        started, clock = time.time(), time.perf_counter()
        self.announcer.announce(Started(call))
        gate = Gate(
            call, self.policy, self.approver, self.workspace.journal, self.announcer.announce, granted
        )
        files = GuardedFiles(call, self.workspace, gate, self.announcer.announce)
        with traced(call) as span:
            try:
                result = await self._guarded(call, files, cancel)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    result = _failed(taken_back())
                    await self._settle(call, result, files, started, clock)
                raise
            settled = await self._settle(call, result, files, started, clock)
            span.settle(settled)
        return settled

    async def _guarded(self, call: Call, files: GuardedFiles, cancel: CancelToken) -> Result[Any]:
        """Run the tool; every failure that is not the host program's own becomes a result."""
        try:
            cancel.check()
            if not self._recovered:
                await self._recover()
            tool = self._tool(call.tool)
            params = validate(tool, call.args)
            self._repeats.check(call)
            seconds = self.timeout if call.deadline is None else call.deadline
            end = time.monotonic() + seconds
            with anyio.move_on_after(seconds) as scope:
                unlink = _link(cancel, scope)
                try:
                    with only_the_callers():
                        return await self._in_turn(tool, params, files, end)
                finally:
                    unlink()
            cancel.check()
            said = f"The call took longer than {seconds:g} s and was stopped."
            raise TimedOut(said, hint="Do less in one call.")
        except Suspended as out:
            await to_thread.run_sync(
                self.workspace.journal.calls.suspend, call, out.approval, files.gate.used
            )
            return Result(_waiting(out.approval), None, status="pending", request=out.approval)
        except ToolError as failure:
            return _failed(failure)
        except HostError as failure:
            log.warning("%s", failure)
            return _fault(
                "host", str(failure), "Tell the person: this machine needs a look (`handtools doctor`)."
            )
        except (
            Exception
        ) as bug:  # one of three, listed in tests/shape: one bad call must not take the process down
            log.exception("The tool %s failed on call %s", call.tool, call.id)
            return _fault(
                "internal", f"`{call.tool}` failed: {type(bug).__name__}: {bug}", "Try another way."
            )

    async def _recover(self) -> None:
        self._recovered = True
        for sentence in await recover(self.workspace):
            log.warning("%s", sentence)
        if self.workspace.journal.healed:
            log.warning("%s", self.workspace.journal.healed)

    def offered(self) -> list[AnyTool]:
        """The tools that the policy lists, the machine can serve and the program around us supplies."""
        return [tool for tool in self.tools.values() if self._offers(tool)]

    def _offers(self, tool: AnyTool) -> bool:
        return self.policy.offers(tool) and self.workspace.serves(tool) and self.callbacks.has(tool.needs)

    def _tool(self, name: str) -> AnyTool:
        tool = self.tools.get(name)
        if tool is not None and self._offers(tool):
            return tool
        offered = [tool.name for tool in self.offered()]
        close = near(name, offered, most=3)
        hint = f"Did you mean {', '.join(close)}?" if close else f"Offered: {', '.join(offered) or 'none'}."
        raise UnknownTool(f"No tool `{name}` is offered.", hint=hint)

    async def _in_turn(
        self, tool: AnyTool, params: BaseModel, files: GuardedFiles, end: float
    ) -> Result[Any]:
        """Run with the paths the call is about held: shared to read; alone, across processes, to change."""
        named = list(tool.paths(params))
        if not named:
            return await self._work(tool, params, files, end)
        if tool.reads_only:
            async with self._scheduler.turn(named, exclusive=False):
                return await self._work(tool, params, files, end)
        located = await self._located(named)
        locks = self.workspace.locks.hold(sorted(located), timeout=LOCK_SECONDS)
        async with self._scheduler.turn(located.union(named), exclusive=True), locks:
            files.held = frozenset(located)
            return await self._work(tool, params, files, end)

    async def _work(self, tool: AnyTool, params: BaseModel, files: GuardedFiles, end: float) -> Result[Any]:
        result = await tool.run(self._context(files.call, files), params)
        return await guided(await after_change(result, files, end), files)

    async def _located(self, paths: list[str]) -> set[str]:
        locate = self.workspace.files.locate
        if self.workspace.files.quick:
            return {locate(path) for path in paths}
        return await to_thread.run_sync(lambda: {locate(path) for path in paths})

    def _context(self, call: Call, files: GuardedFiles) -> Context:
        def progress(text: str) -> None:
            self.announcer.announce(Progressed(call.id, text, len(text.encode())))

        history = GuardedHistory(self.workspace, files)
        return Context(
            call=call,
            files=files,
            commands=GuardedCommands(call, self.workspace, files, self.announcer.announce),
            history=history,
            search=GuardedSearch(self.workspace, files.gate),
            syntax=self.workspace.syntax,
            media=self.workspace.media,
            language=GuardedLanguage(self.workspace, files.gate),
            skills=GuardedSkills(self.workspace, files.gate),
            web=GuardedWeb(call, self.workspace.web, files.gate, self.announcer.announce),
            callbacks=guarded(self.callbacks, files),
            progress=progress,
            clock=self.clock,
        )

    async def _settle(
        self, call: Call, result: Result[Any], files: GuardedFiles | None, started: float, clock: float
    ) -> Result[Any]:
        if result.status != "pending":
            note = self._repeats.settle(call, ok=result.ok)
            if note:
                result = result.settled(content=(*result.content, Text(note)))
        if files and files.landed:
            result = result.settled(changes=together(files.landed))
        seconds = time.perf_counter() - clock if clock else 0.0
        record = partial(self._record, call, result, files, started, seconds)
        try:
            at_once = self.workspace.files.quick and len(result.text) <= OUTPUT_BYTES
            settled = record(wait=False) if at_once else await to_thread.run_sync(record)
        except Occupied:
            settled = await to_thread.run_sync(record)
        self.announcer.announce(Settled(call, settled))
        return settled

    def _record(
        self,
        call: Call,
        result: Result[Any],
        files: GuardedFiles | None,
        started: float,
        seconds: float,
        *,
        wait: bool = True,
    ) -> Result[Any]:
        """Bound the result and write it down; without `wait` only if nobody is in the way."""
        bounded = bound(result, call, self.workspace.outputs)
        text = bounded.text
        settled = bounded.settled(usage=Usage(seconds, estimate(text), len(text)))
        journal = self.workspace.journal
        if files and self._may_wait(call, settled, files):
            journal.later(Note(call, settled, started, time.time(), files.sights))
            return settled
        try:
            with journal.together(wait=wait):
                journal.calls.record(call, settled, started)
                if files:
                    files.remember()
        except Occupied:
            raise
        except HostError as failure:
            log.warning("Call %s is not in the log: %s", call.id, failure)
        return settled

    def _may_wait(self, call: Call, result: Result[Any], files: GuardedFiles) -> bool:
        """Whether losing the record would only mean to look again.

        What a person answered is kept at once, and so is what was fetched: it left the machine.
        """
        tool = self.tools.get(call.tool)
        looked = tool is not None and tool.effects <= {"read"} and not files.landed
        return looked and result.status != "pending" and not files.gate.granted


def _failed(failure: ToolError) -> Result[Any]:
    status: Any = failure.status
    fault = Fault(failure.code, failure.message, failure.hint)
    return Result(str(failure), None, status=status, fault=fault)


def _waiting(approval: Approval) -> str:
    return f"Waiting for approval: {approval.title}. A person must answer; go on with something else."


def _fault(code: str, message: str, hint: str) -> Result[Any]:
    return Result(f"{message} {hint}", None, status="error", fault=Fault(code, message, hint))


def _host_fault(failure: HostError) -> Result[Any]:
    log.warning("%s", failure)
    return _fault("host", str(failure), "Tell the person: this machine needs a look (`handtools doctor`).")


def _link(cancel: CancelToken, scope: anyio.CancelScope) -> Callable[[], None]:
    """Cancel the scope when the token is cancelled, from whichever thread that is; returns what unlinks them."""
    home, loop = threading.get_ident(), anyio.lowlevel.current_token()

    def stop() -> None:
        if threading.get_ident() == home:
            scope.cancel()
        else:
            anyio.from_thread.run_sync(scope.cancel, token=loop)

    return cancel.on_cancel(stop)
