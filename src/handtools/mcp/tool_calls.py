"""`tools/list` and `tools/call` of one connection or token: run, asked about, progress relayed.

Counted in metrics. ADR 71.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.errors import HandtoolsError
from handtools.core.events import Event, Progressed, Settled
from handtools.core.result import Result
from handtools.mcp import elicitation_and_sampling
from handtools.mcp.elicitation_and_sampling import sampling_from
from handtools.mcp.idempotency import CallIdentity, ReplicaLocks, identify_call
from handtools.mcp.protocol_json import (
    DETAILS_KEY,
    LIST_TTL_MS,
    Json,
    call_result,
    complete_result,
    failure_result,
    tool_list,
)
from handtools.runtime.policy.rules import Rule
from handtools.text.encoding import without_surrogates
from handtools.text.truncation import clip
from handtools.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams


@dataclass(slots=True)
class CallMetrics:
    """Counts since the start; one per server."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    running: int = 0
    began: float = field(default_factory=time.time)

    def called(self, tool: str, status: str, seconds: float) -> None:
        """Count a call that ended."""
        self.calls[tool, status] += 1
        self.seconds[tool] = self.seconds.get(tool, 0.0) + seconds

    def text(self) -> str:
        """All of it, one sample per line."""
        calls = [
            f'handtools_calls_total{{tool="{tool}",status="{status}"}} {count}'
            for (tool, status), count in sorted(self.calls.items())
        ]
        seconds = [
            f'handtools_call_seconds_total{{tool="{tool}"}} {taken:.6f}'
            for tool, taken in sorted(self.seconds.items())
        ]
        refused = [
            f'handtools_refused_total{{reason="{reason}"}} {count}'
            for reason, count in sorted(self.refused.items())
        ]
        return "\n".join(
            [
                *("# TYPE handtools_calls_total counter", *calls),
                *("# TYPE handtools_call_seconds_total counter", *seconds),
                *("# TYPE handtools_refused_total counter", *refused),
                *("# TYPE handtools_running gauge", f"handtools_running {self.running}"),
                *(
                    "# TYPE handtools_up_seconds gauge",
                    f"handtools_up_seconds {time.time() - self.began:.1f}",
                ),
                "",
            ]
        )


ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""The SDK's progress notification: how far, out of how much, and words."""

MOST_UNSENT_PROGRESS = 256
"""Progress beyond this many untold pieces is dropped: a slow client does not slow the call."""
PROGRESS_BYTES = 2_000
PROGRESS_LINES = 40
LAST_PROGRESS_SECONDS = 2.0
"""How long a result waits for the last of the progress to be told."""
PROGRESS_GAP_SECONDS = 0.01
"""Between the last progress and the result: the TypeScript SDK drops progress that it reads with the result."""


class ProgressRelay:
    """Hands on progress to whoever follows a call; listens only once somebody does."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._followed: dict[str, MemoryObjectSendStream[str]] = {}
        self._loop: Any = None

    async def follow(
        self, call_id: str, run: Callable[[], Awaitable[Result[Any]]], report: ReportProgress
    ) -> Result[Any]:
        """Run a call and report its progress; returns when all of it was sent."""
        if self._loop is None:
            self._loop = anyio.lowlevel.current_token()
            self._toolbox.listen(self._hear)
        send, receive = anyio.create_memory_object_stream[str](MOST_UNSENT_PROGRESS)
        self._followed[call_id] = send
        told, count = anyio.Event(), [0]
        outcome: list[Result[Any]] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_relay_progress, receive, report, told, count)
                outcome.append(await run())
                # The end of the call closes the stream, behind the last of its progress.
                with anyio.move_on_after(LAST_PROGRESS_SECONDS):
                    await told.wait()
                if count[0]:
                    await anyio.sleep(PROGRESS_GAP_SECONDS)
                group.cancel_scope.cancel()
        finally:
            self._followed.pop(call_id, None)
            send.close()
        return outcome[0]

    def _hear(self, event: Event) -> None:
        """Runs on the announcer's thread."""
        if isinstance(event, Progressed) and event.call_id in self._followed:
            anyio.from_thread.run_sync(self._put, event.call_id, event.text, token=self._loop)
        elif isinstance(event, Settled) and event.call.id in self._followed:
            anyio.from_thread.run_sync(self._end, event.call.id, token=self._loop)

    def _put(self, call_id: str, text: str) -> None:
        stream = self._followed.get(call_id)
        if stream is not None and stream.statistics().current_buffer_used < MOST_UNSENT_PROGRESS:
            stream.send_nowait(text)

    def _end(self, call_id: str) -> None:
        if (stream := self._followed.pop(call_id, None)) is not None:
            stream.close()


async def _relay_progress(
    receive: MemoryObjectReceiveStream[str], report: ReportProgress, told: anyio.Event, count: list[int]
) -> None:
    async with receive:
        async for text in receive:
            count[0] += 1
            shown = clip(text, max_lines=PROGRESS_LINES, max_bytes=PROGRESS_BYTES, keep="tail").text
            await report(float(count[0]), None, without_surrogates(shown))
    told.set()


AnsweredBy = Literal["client", "person"]
"""Who answers what a rule asks: the client that called, or a person at this machine (`handtools approve`)."""

SESSION_KEY = "handtools/session"
"""The key in `_meta` under which a client names its session: for remembered answers, and for undo."""
NOBODY_TO_ASK = "Nobody is there to ask; the policy answers for them."


@dataclass(slots=True)
class _InFlightCall:
    """A call that goes on without whoever asked for it."""

    done: anyio.Event = field(default_factory=anyio.Event)
    result: Result[Any] | None = None


@dataclass
class ConnectionTools:
    """A toolbox as MCP sees it."""

    toolbox: Toolbox
    agent: str
    """Who calls; empty leaves it to the name that the client gives itself."""
    session: str
    """Where calls belong when the client names no session."""
    scope: str = ""
    """Within which request ids are unique; empty where connections come and go."""
    asks: AnsweredBy = "client"
    claims: ReplicaLocks | None = None
    """Where other processes serve the same workspace to the same clients."""
    metrics: CallMetrics = field(default_factory=CallMetrics)
    _flights: dict[str, _InFlightCall] = field(default_factory=dict)
    _group: TaskGroup | None = None

    def __post_init__(self) -> None:
        # Here, where a token's desk gets its tools, and nowhere else: all that it can reach is its own.
        if self.agent:
            self.toolbox = self.toolbox.owned_by(self.agent)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ConnectionTools"]:
        """Take requests until the block ends; calls that still run then are cancelled, and recorded so."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield self
            finally:
                group.cancel_scope.cancel()
                self._group = None
        await self.toolbox.aclose()

    @cached_property
    def attended(self) -> Toolbox:
        """The tools under a policy that leaves every question open: whether anyone can be asked shows later."""
        policy = self.toolbox.policy
        if policy.unattended == "ask":
            return self.toolbox
        return self.toolbox.under(replace(policy, unattended="ask"))

    def narrow(self, wide: Toolbox, rules: Iterable[Rule]) -> None:
        """Go on with the same tools under more rules."""
        more = tuple(rules)
        self.toolbox = wide.under(wide.policy.with_rules(more)) if more else wide
        for made in ("attended", "_follower"):
            self.__dict__.pop(made, None)

    @cached_property
    def listed(self) -> Json:
        """The answer to `tools/list`: the policy is fixed, so it is made once."""
        return complete_result({"tools": tool_list(self.toolbox)}, keep_ms=LIST_TTL_MS)

    @cached_property
    def _follower(self) -> ProgressRelay:
        return ProgressRelay(self.attended)

    async def list_tools(self, _ctx: object, _params: object) -> Json:
        """Answer `tools/list`."""
        return self.listed

    async def call_tool(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams"
    ) -> Json:
        """Answer `tools/call`: whatever goes wrong is said in words that the model can read."""
        began = time.perf_counter()
        self.metrics.running += 1
        call_id, status = "", "error"
        try:
            if params.request_state is not None:
                call_id = self.own(params.request_state.partition(".")[0])
                result = await self._answered(params, call_id)
            else:
                call, chosen = self._call(ctx, params)
                call_id = call.id
                with sampling_from(ctx):
                    result = await self._run(ctx, call, chosen=chosen)
            result = await self._settle(ctx, call_id, result)
            status = result.status
            if result.request is not None:
                return self._waiting(ctx, params, result.request)
            return call_result(result, call_id, details=(ctx.meta or {}).get(DETAILS_KEY) is True)
        except HandtoolsError as problem:
            return failure_result(str(problem), call_id)
        finally:
            self.metrics.running -= 1
            # A name that no tool has is the client's word, and there is no end of those.
            name = params.name if params.name in self.toolbox.tools else "unknown"
            self.metrics.called(name, status, time.perf_counter() - began)

    async def run(self, call: Call, box: Toolbox | None = None) -> Result[Any]:
        """Run a call that goes on when whoever asked goes away: the same id later gets the same result."""
        flight = self._flights.get(call.id)
        if flight is None:
            if self._group is None:
                return await self._once(call, box)
            flight = self._flights[call.id] = _InFlightCall()
            self._group.start_soon(self._run_in_flight, call, flight, box)
        await flight.done.wait()
        return flight.result or await self._once(call, box)

    async def resume(self, call_id: str, reply: Reply, box: Toolbox | None = None) -> Result[Any]:
        """Go on with a call that waits; answered twice, it goes on once."""
        chosen = box or self.attended
        if self.claims is None:
            return await chosen.resume(call_id, reply)
        async with self.claims.hold(call_id):
            return await chosen.resume(call_id, reply)

    async def _once(self, call: Call, box: Toolbox | None = None) -> Result[Any]:
        """Run a call that another process may be asked for, too: whoever comes second finds what was recorded."""
        chosen = box or self.attended
        if self.claims is None:
            return await chosen.call(call)
        async with self.claims.hold(call.id):
            result = await chosen.call(call)
            # What only looks is recorded a moment later, but the next one comes when we let go.
            self.toolbox.workspace.journal.calls.recall(call.id)
            return result

    async def _run_in_flight(self, call: Call, flight: _InFlightCall, box: Toolbox | None) -> None:
        self.metrics.running += 1
        try:
            flight.result = await self._once(call, box)
        finally:
            self.metrics.running -= 1
            self._flights.pop(call.id, None)
            flight.done.set()

    def own(self, call_id: str) -> str:
        """The id under which a call that the client names so is kept."""
        return self.toolbox.workspace.journal.own_id(call_id)

    def _call(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams"
    ) -> tuple[Call, bool]:
        meta: Mapping[str, Any] = ctx.meta or {}
        args = params.arguments or {}
        scope = self.scope or _http_header(ctx, "mcp-session-id")
        key = _http_header(ctx, "idempotency-key")
        found: CallIdentity = identify_call(meta, ctx.request_id, scope, params.name, args, key=key)
        call_id = self.own(found.call_id)
        session = str(meta.get(SESSION_KEY) or _http_header(ctx, "mcp-session-id") or self.session)
        agent = self.agent or _client_name(ctx)
        return Call(tool=params.name, args=args, id=call_id, session=session, agent=agent), found.chosen

    async def _run(self, ctx: "ServerRequestContext[Any, Any]", call: Call, *, chosen: bool) -> Result[Any]:
        run = partial(self.run, call) if chosen else partial(self._once, call)
        if "progress_token" not in (ctx.meta or {}):
            return await run()
        if self.toolbox.workspace.journal.calls.recall(call.id) is not None:
            return await run()  # it has ended: nothing more will be heard of it
        return await self._follower.follow(call.id, run, ctx.session.report_progress)

    async def _answered(self, params: "CallToolRequestParams", call_id: str) -> Result[Any]:
        """Go on with a call whose question comes back answered. The state is the client's word: it is checked."""
        kept = self.toolbox.workspace.journal.calls.suspended(call_id)
        if kept is not None:
            if kept.call.tool != params.name or dict(kept.call.args) != (params.arguments or {}):
                raise HandtoolsError("The answer belongs to another call. Nothing was run.")
        elif self.toolbox.workspace.journal.calls.recall(call_id) is None:
            raise HandtoolsError("No call of that name waits for an answer. Call the tool again.")
        reply = _reply_in_params(params)
        if reply is None or kept is None or self.asks != "client":
            # Left open, answered elsewhere, or not the client's to answer: how it stands now.
            same = Call(tool=params.name, args=params.arguments or {}, id=call_id)
            return await self.attended.call(kept.call if kept else same)
        return await self.resume(call_id, reply)

    async def _settle(
        self, ctx: "ServerRequestContext[Any, Any]", call_id: str, result: Result[Any]
    ) -> Result[Any]:
        """Get pending questions answered where that can be done now."""
        while result.request is not None:
            reply = await self._reply(ctx, result.request)
            if reply is None:
                break
            result = await self.resume(call_id, reply)
        return result

    async def _reply(self, ctx: "ServerRequestContext[Any, Any]", approval: Approval) -> Reply | None:
        if self.asks == "client" and elicitation_and_sampling.can_elicit(ctx.session.client_capabilities):
            return await _elicit_reply(ctx, approval) if ctx.session.can_send_request else None
        unattended = self.toolbox.policy.unattended
        return None if unattended == "ask" else Reply(unattended == "allow", message=NOBODY_TO_ASK)

    def _waiting(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams", approval: Approval
    ) -> Json:
        """The question itself where the protocol can carry it back; else words.

        Words, too, when it was carried back unanswered: a client that can show no form closes each, and would be
        asked until it gives up on the call.
        """
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        current = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        closed = bool(params.input_responses) and _reply_in_params(params) is None
        if (
            current
            and not closed
            and self.asks == "client"
            and elicitation_and_sampling.can_elicit(ctx.session.client_capabilities)
        ):
            return elicitation_and_sampling.input_required(approval)
        return failure_result(elicitation_and_sampling.pending_text(approval), approval.call_id)


def _reply_in_params(params: "CallToolRequestParams") -> Reply | None:
    """What the person said to the question that an earlier answer carried."""
    given = (params.input_responses or {}).get(elicitation_and_sampling.APPROVAL_KEY)
    to = (params.request_state or "").partition(".")[2]
    return elicitation_and_sampling.reply_from_form(
        getattr(given, "action", None), getattr(given, "content", None), to=to
    )


async def _elicit_reply(ctx: "ServerRequestContext[Any, Any]", approval: Approval) -> Reply | None:
    """Ask in the middle of the call, as older protocols do; no lock is held while the person thinks."""
    from mcp.shared.exceptions import MCPError

    try:
        said = await ctx.session.elicit_form(
            elicitation_and_sampling.approval_question(approval),
            elicitation_and_sampling.approval_form(),
            ctx.request_id,
        )
    except MCPError:
        return None
    return elicitation_and_sampling.reply_from_form(said.action, said.content, to=approval.fingerprint)


def _http_header(ctx: "ServerRequestContext[Any, Any]", name: str) -> str:
    headers = getattr(ctx.request, "headers", None) or {}
    return str(headers.get(name) or "")


def _client_name(ctx: "ServerRequestContext[Any, Any]") -> str:
    client = ctx.session.client_params
    return client.client_info.name if client is not None else ""
