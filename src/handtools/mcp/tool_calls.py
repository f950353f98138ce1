"""MCP's `tools/list` and `tools/call` for one connection or token: run calls, get approvals, send progress.

The toolbox may be on another machine. The journal is used directly only if it is on this machine.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Literal, Self, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.errors import HandtoolsError, HostError
from handtools.core.events import Event, Progressed, Settled
from handtools.core.result import Result
from handtools.mcp import elicitation_and_sampling
from handtools.mcp.elicitation_and_sampling import set_sampling_request
from handtools.mcp.idempotency import DerivedCallId, ReplicaCallLocks, derive_call_id
from handtools.mcp.served_toolbox import ServedToolbox
from handtools.mcp.tool_and_result_json import (
    DETAILS_META_KEY,
    LIST_TTL_MS,
    Json,
    call_result,
    failure_result,
    mark_result_complete,
    tool_list,
)
from handtools.mcp.tool_request import ToolRequest
from handtools.runtime.approval.gate import unattended_reply
from handtools.runtime.approval.questions import ask_until_settled
from handtools.runtime.journal import Journal
from handtools.runtime.policy.rules import Rule
from handtools.text.encoding import without_surrogates
from handtools.text.prometheus import TextMetricRegistry
from handtools.text.truncation import clip_text
from handtools.toolbox import Toolbox


class CallMetrics:
    """Metrics for the HTTP server's /metrics: finished calls, their duration, refused requests, running calls."""

    def __init__(self) -> None:
        self._began = time.time()
        self._registry = registry = TextMetricRegistry()
        self._calls = registry.create_counter(
            "handtools_calls_total", "Finished calls.", ("tool", "status")
        )
        self._seconds = registry.create_counter(
            "handtools_call_seconds_total", "Duration of calls.", ("tool",)
        )
        self._refused = registry.create_counter("handtools_refused_total", "Refused requests.", ("reason",))
        self._running = registry.create_gauge("handtools_running", "Running calls.")
        self._up_seconds = registry.create_gauge("handtools_up_seconds", "Time since the server started.")
        self.running = 0

    def called(self, tool: str, status: str, seconds: float) -> None:
        """Count a finished call by tool and status, and add its duration in seconds."""
        self._calls.inc(1, {"tool": tool, "status": status})
        self._seconds.inc(seconds, {"tool": tool})

    def refused(self, reason: str) -> None:
        """Count a refused request."""
        self._refused.inc(1, {"reason": reason})

    def text(self) -> str:
        """The metrics in Prometheus text format."""
        self._running.set(self.running)
        self._up_seconds.set(time.time() - self._began)
        return self._registry.text()


ReportProgress = Callable[[float, str], Awaitable[None]]
"""Function that sends a progress notification: number and message."""

MAX_UNSENT_PROGRESS = 256
"""Maximum queued progress messages per call. Further ones are dropped, so a slow client can't delay the call."""
PROGRESS_BYTES = 2_000
PROGRESS_LINES = 40
LAST_PROGRESS_SECONDS = 2.0
"""Maximum seconds for which a result is delayed so that the last progress message is sent first."""
PAUSE_BEFORE_RESULT_SECONDS = 0.01
"""Pause in seconds between the last progress message and the result.

The TypeScript SDK drops progress that arrives together with the result.
"""


class ProgressRelay:
    """Sends the progress events of running calls to their MCP clients as notifications."""

    def __init__(self, toolbox: ServedToolbox) -> None:
        self._toolbox = toolbox
        self._followed: dict[str, MemoryObjectSendStream[str]] = {}
        self._loop: Any = None

    async def follow(
        self, call_id: str, run: Callable[[], Awaitable[Result[Any]]], report: ReportProgress
    ) -> Result[Any]:
        """Run a call, send its progress with `report`, and return the result after all progress is sent."""
        if self._loop is None:
            self._loop = anyio.lowlevel.current_token()
            self._toolbox.listen(self._handle_event)
        send, receive = anyio.create_memory_object_stream[str](MAX_UNSENT_PROGRESS)
        self._followed[call_id] = send
        told, count = anyio.Event(), [0]
        results: list[Result[Any]] = []
        errors: list[HandtoolsError] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_relay_progress, receive, report, told, count)
                try:
                    results.append(await run())
                except HandtoolsError as failure:  # the task group would wrap it in an ExceptionGroup
                    errors.append(failure)
                    told.set()
                # The `Settled` event closes the stream after the last progress message.
                with anyio.move_on_after(LAST_PROGRESS_SECONDS):
                    await told.wait()
                if count[0]:
                    await anyio.sleep(PAUSE_BEFORE_RESULT_SECONDS)
                group.cancel_scope.cancel()
        finally:
            self._followed.pop(call_id, None)
            send.close()
        if errors:
            raise errors[0]
        return results[0]

    def _handle_event(self, event: Event) -> None:
        """Handle an event on the announcer's thread: queue progress, close the queue when the call ends."""
        if isinstance(event, Progressed) and event.call_id in self._followed:
            anyio.from_thread.run_sync(self._queue_progress, event.call_id, event.text, token=self._loop)
        elif isinstance(event, Settled) and event.call.id in self._followed:
            anyio.from_thread.run_sync(self._close_queue, event.call.id, token=self._loop)

    def _queue_progress(self, call_id: str, text: str) -> None:
        stream = self._followed.get(call_id)
        if stream is not None and stream.statistics().current_buffer_used < MAX_UNSENT_PROGRESS:
            stream.send_nowait(text)

    def _close_queue(self, call_id: str) -> None:
        if (stream := self._followed.pop(call_id, None)) is not None:
            stream.close()


async def _relay_progress(
    receive: MemoryObjectReceiveStream[str], report: ReportProgress, told: anyio.Event, count: list[int]
) -> None:
    async with receive:
        async for text in receive:
            count[0] += 1
            shown = clip_text(text, max_lines=PROGRESS_LINES, max_bytes=PROGRESS_BYTES, keep="tail").text
            await report(float(count[0]), without_surrogates(shown))
    told.set()


LOOK_AHEAD_DELAY_SECONDS = 0.2
"""Delay before preparing for the first command, so that a call sent with the handshake goes first."""
ApprovalsAnsweredBy = Literal["client", "person"]
"""Where approvals come from: the calling MCP client, or the user of this machine (`handtools approve`)."""

SESSION_META_KEY = "handtools/session"
"""Key in `_meta` for the client's session name, used for remembered approvals and undo."""
WATCHED_WAIT_SECONDS = 600.0
"""Seconds that a call waits for an answer from `watch` or `view` before it is returned as pending."""


ToolboxT = TypeVar("ToolboxT", bound=ServedToolbox)


@dataclass
class ConnectionTools(Generic[ToolboxT]):
    """Answers `tools/list` and `tools/call` of one MCP connection or token with a toolbox."""

    toolbox: ToolboxT
    agent: str
    """Agent name recorded for calls. If empty, the client's name from the handshake is used."""
    session: str
    """Session id recorded for calls when the client names none."""
    scope: str = ""
    """Name of the connection within which request ids are unique; empty for HTTP, which has none."""
    asks: ApprovalsAnsweredBy = "client"
    locks: ReplicaCallLocks | None = None
    """Locks by call id, if several server processes serve the same workspace; None for a single process."""
    metrics: CallMetrics = field(default_factory=CallMetrics)
    _group: TaskGroup | None = None

    def __post_init__(self) -> None:
        # This is the only place where a token gets its toolbox, which is restricted to the token's own calls.
        if self.agent and isinstance(self.toolbox, Toolbox):
            self.toolbox = self.toolbox.owned_by(self.agent)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Serve calls until the block ends, then cancel running calls and record them as cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._look_ahead)
            try:
                yield self
            finally:
                group.cancel_scope.cancel()
                self._group = None
        await self.toolbox.aclose()

    async def _look_ahead(self) -> None:
        await anyio.sleep(LOOK_AHEAD_DELAY_SECONDS)
        await to_thread.run_sync(self.toolbox.look_ahead, abandon_on_cancel=True)

    @property
    def journal(self) -> Journal | None:
        """The workspace's journal; None if the workspace is on another machine."""
        return self.toolbox.workspace.journal if isinstance(self.toolbox, Toolbox) else None

    @cached_property
    def attended_toolbox(self) -> ToolboxT:
        """The toolbox with a policy that leaves calls pending when they need approval.

        Whether a user can answer is decided later, for each request.
        """
        policy = self.toolbox.policy
        if policy.unattended == "ask":
            return self.toolbox
        return self.toolbox.under(replace(policy, unattended="ask"))

    def narrow(self, wide: ToolboxT, rules: Iterable[Rule]) -> None:
        """Replace the toolbox with `wide`, restricted by additional policy rules."""
        more = tuple(rules)
        self.toolbox = wide.under(wide.policy.with_rules(more)) if more else wide
        for made in ("attended_toolbox", "_progress_relay"):
            self.__dict__.pop(made, None)

    @cached_property
    def listed(self) -> Json:
        """The result of `tools/list`, computed only once because the policy does not change."""
        return mark_result_complete({"tools": tool_list(self.toolbox)}, keep_ms=LIST_TTL_MS)

    @cached_property
    def _tool_names(self) -> Collection[str]:
        box = self.toolbox
        return box.tools.keys() if isinstance(box, Toolbox) else {each.name for each in box.definitions()}

    @cached_property
    def _progress_relay(self) -> ProgressRelay:
        return ProgressRelay(self.attended_toolbox)

    async def list_tools(self, _ctx: object, _params: object) -> Json:
        """Answer `tools/list` with the definitions of the tools that the policy offers."""
        return self.listed

    async def call_tool(self, request: ToolRequest) -> Json:
        """Answer `tools/call`: run it, get approvals, return the result. Errors become text."""
        began = time.perf_counter()
        self.metrics.running += 1
        call_id, status = "", "error"
        try:
            if request.request_state is not None:
                call_id = self.journal_call_id(request.request_state.partition(".")[0])
                result = await self._resume_answered_call(request, call_id)
            else:
                call, chosen = self._call_from_request(request)
                call_id = call.id
                with set_sampling_request(request):
                    result = await self._run_with_progress(request, call, chosen=chosen)
            result = await self._resume_while_pending(request, call_id, result)
            status = result.status
            if result.request is not None:
                return self._pending_response(request, result.request)
            return call_result(result, call_id, details=request.meta.get(DETAILS_META_KEY) is True)
        except HandtoolsError as problem:
            return failure_result(str(problem), call_id)
        finally:
            self.metrics.running -= 1
            self.count(request.tool, status, time.perf_counter() - began)

    def count(self, tool: str, status: str, seconds: float) -> None:
        """Count a finished call in the metrics."""
        # Count all unknown names under one label, because clients can send any number of different names.
        self.metrics.called(tool if tool in self._tool_names else "unknown", status, seconds)

    async def run(self, call: Call, box: ToolboxT | None = None) -> Result[Any]:
        """Run a call that continues even if its client disconnects; requesting its id again returns the result.

        `box` is used instead of the connection's toolbox.
        """
        if self._group is None:
            return await self._run_under_lock(call, box)
        future_result: asyncio.Future[Result[Any]] = asyncio.get_running_loop().create_future()
        self._group.start_soon(self._run_detached, call, box, future_result)
        return await asyncio.shield(future_result)

    async def _run_detached(
        self, call: Call, box: ToolboxT | None, future_result: asyncio.Future[Result[Any]]
    ) -> None:
        self.metrics.running += 1
        try:
            future_result.set_result(await self._run_under_lock(call, box))
        except HandtoolsError as problem:  # raise it in the waiting request; here it would stop the server
            future_result.set_exception(problem)
        finally:
            self.metrics.running -= 1
            future_result.cancel()  # wakes the waiting request if the server stops

    async def _run_under_lock(self, call: Call, box: ToolboxT | None = None) -> Result[Any]:
        """Run a call under the lock of its id, so that another replica finds the recorded result."""
        chosen = box or self.attended_toolbox
        if self.locks is None:
            return await chosen.call(call)
        async with self.locks.hold(call.id):
            result = await chosen.call(call)
            if self.journal is not None:
                # Reading the call writes queued records: another replica must find it once the lock is released.
                self.journal.calls.recall(call.id)
            return result

    def journal_call_id(self, call_id: str) -> str:
        """The id under which the journal stores a client's call; it keeps the calls of different tokens apart."""
        return call_id if self.journal is None else self.journal.own_id(call_id)

    def _call_from_request(self, request: ToolRequest) -> tuple[Call, bool]:
        tool, args, meta = request.tool, request.arguments, request.meta
        http_session = request.header("mcp-session-id")
        derived_id: DerivedCallId = derive_call_id(
            meta,
            request.request_id,
            self.scope or http_session,
            tool,
            args,
            key=request.header("idempotency-key"),
        )
        call_id = self.journal_call_id(derived_id.call_id)
        session = str(meta.get(SESSION_META_KEY) or http_session or self.session)
        agent = self.agent or request.client_name
        return Call(tool=tool, args=args, id=call_id, session=session, agent=agent), derived_id.chosen

    async def _run_with_progress(self, request: ToolRequest, call: Call, *, chosen: bool) -> Result[Any]:
        run = partial(self.run, call) if chosen else partial(self._run_under_lock, call)
        if "progressToken" not in request.meta:
            return await run()
        if self.journal is not None and self.journal.calls.recall(call.id) is not None:
            return await run()  # the call has ended: there will be no more progress
        return await self._progress_relay.follow(call.id, run, request.report_progress)

    async def _resume_answered_call(self, request: ToolRequest, call_id: str) -> Result[Any]:
        """Resume the pending call whose approval request the client answers by repeating its request.

        Raises `HandtoolsError` if the call is unknown.
        """
        if self.journal is not None and not self.journal.calls.has(call_id):
            raise HandtoolsError("This call is not waiting for approval. Call the tool again.")
        reply = _reply_in_request(request) if self.asks == "client" else None
        return await self.attended_toolbox.call(_same_call(request, call_id), reply=reply)

    async def _resume_while_pending(
        self, request: ToolRequest, call_id: str, result: Result[Any]
    ) -> Result[Any]:
        """While a result is pending, get a reply from the client or the policy, and resume the call."""
        result = await ask_until_settled(
            result, partial(self._reply_to_approval, request), self.attended_toolbox.resume
        )
        if result.request is not None:
            # The call is still pending, or another process answered and finished it.
            result = await self.attended_toolbox.call(_same_call(request, call_id))
        return result

    async def _reply_to_approval(self, request: ToolRequest, approval: Approval) -> Reply | None:
        if self.asks == "client" and elicitation_and_sampling.can_elicit(request.capabilities):
            if request.send_to_client is not None:
                return await self._first_reply(request, approval)
            if not _form_was_closed(request):
                return None
        elif (reply := unattended_reply(self.toolbox.policy)) is not None:
            return reply
        with anyio.move_on_after(WATCHED_WAIT_SECONDS):
            return await self.attended_toolbox.answer_from_elsewhere(approval.call_id, only_if_watched=True)
        return None

    async def _first_reply(self, request: ToolRequest, approval: Approval) -> Reply | None:
        """Ask the client's user and any open `watch` or `view`, and return the first reply."""
        replies: list[Reply | None] = []

        async def ask_client() -> None:
            replies.append(await elicitation_and_sampling.elicit_reply(request, approval))
            group.cancel_scope.cancel()

        async def ask_watchers() -> None:
            with suppress(HostError):  # if this fails, only the client's user can answer
                replies.append(await self.attended_toolbox.answer_from_elsewhere(approval.call_id))
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(ask_client)
            group.start_soon(ask_watchers)
        return replies[0]

    def _pending_response(self, request: ToolRequest, approval: Approval) -> Json:
        """The response for a pending call: an approval form if the client can show one, otherwise a text.

        It is also a text if the client returned the form unanswered: some clients can't show forms and close each
        one, so they would be asked again and again until they give up on the call.
        """
        if (
            request.is_current_protocol
            and not _form_was_closed(request)
            and self.asks == "client"
            and elicitation_and_sampling.can_elicit(request.capabilities)
        ):
            return elicitation_and_sampling.input_required_result(approval)
        return failure_result(elicitation_and_sampling.pending_call_text(approval), approval.call_id)


def _same_call(request: ToolRequest, call_id: str) -> Call:
    """The call that a request repeats; the toolbox finds its session and agent by the id."""
    return Call(tool=request.tool, args=request.arguments, id=call_id)


def _form_was_closed(request: ToolRequest) -> bool:
    """Whether the client already got the approval form and returned it unanswered."""
    return bool(request.params.get("inputResponses")) and _reply_in_request(request) is None


def _reply_in_request(request: ToolRequest) -> Reply | None:
    """The reply to an approval form in a repeated `tools/call` request; None if there is none."""
    form = request.input_response(elicitation_and_sampling.APPROVAL_KEY)
    to = (request.request_state or "").partition(".")[2]
    return None if form is None else elicitation_and_sampling.reply_from_form(form, to=to)
