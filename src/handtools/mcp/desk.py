"""The desk: where the requests of one client's connection, or of one token, become calls of a toolbox."""

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio.abc import TaskGroup

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.errors import HandtoolsError
from handtools.core.result import Result
from handtools.mcp import asking
from handtools.mcp.claims import Claims
from handtools.mcp.following import Follower
from handtools.mcp.identity import Identity, identify
from handtools.mcp.metrics import Metrics
from handtools.mcp.sampling import lent_by
from handtools.mcp.translate import DETAILS, LIST_MS, Json, answer, complete, failure, tools
from handtools.runtime.rules import Rule
from handtools.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

Asks = Literal["client", "person"]
"""Who answers what a rule asks: the client that called, or a person at this machine (`handtools approve`)."""

SESSION = "handtools/session"
"""The key in `_meta` under which a client names its session: for remembered answers, and for undo."""
NOBODY = "Nobody is there to ask; the policy answers for them."


@dataclass(slots=True)
class _Flight:
    """A call that goes on without whoever asked for it."""

    done: anyio.Event = field(default_factory=anyio.Event)
    result: Result[Any] | None = None


@dataclass
class Desk:
    """A toolbox as MCP sees it."""

    toolbox: Toolbox
    agent: str
    """Who calls; empty leaves it to the name that the client gives itself."""
    session: str
    """Where calls belong when the client names no session."""
    scope: str = ""
    """Within which request ids are unique; empty where connections come and go."""
    asks: Asks = "client"
    claims: Claims | None = None
    """Where other processes serve the same workspace to the same clients."""
    metrics: Metrics = field(default_factory=Metrics)
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _group: TaskGroup | None = None

    def __post_init__(self) -> None:
        # Here, where a token's desk gets its tools, and nowhere else: all that it can reach is its own.
        if self.agent:
            self.toolbox = self.toolbox.owned_by(self.agent)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Desk"]:
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
        return complete({"tools": tools(self.toolbox)}, keep_ms=LIST_MS)

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self.attended)

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
                with lent_by(ctx):
                    result = await self._run(ctx, call, chosen=chosen)
            result = await self._settle(ctx, call_id, result)
            status = result.status
            if result.request is not None:
                return self._waiting(ctx, params, result.request)
            return answer(result, call_id, details=(ctx.meta or {}).get(DETAILS) is True)
        except HandtoolsError as problem:
            return failure(str(problem), call_id)
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
            flight = self._flights[call.id] = _Flight()
            self._group.start_soon(self._fly, call, flight, box)
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

    async def _fly(self, call: Call, flight: _Flight, box: Toolbox | None) -> None:
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
        scope = self.scope or _header(ctx, "mcp-session-id")
        key = _header(ctx, "idempotency-key")
        found: Identity = identify(meta, ctx.request_id, scope, params.name, args, key=key)
        call_id = self.own(found.call_id)
        session = str(meta.get(SESSION) or _header(ctx, "mcp-session-id") or self.session)
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
        reply = _given_reply(params)
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
        if self.asks == "client" and asking.can_ask(ctx.session.client_capabilities):
            return await _elicited(ctx, approval) if ctx.session.can_send_request else None
        unattended = self.toolbox.policy.unattended
        return None if unattended == "ask" else Reply(unattended == "allow", message=NOBODY)

    def _waiting(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams", approval: Approval
    ) -> Json:
        """The question itself where the protocol can carry it back; else words.

        Words, too, when it was carried back unanswered: a client that can show no form closes each, and would be
        asked until it gives up on the call.
        """
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        current = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        closed = bool(params.input_responses) and _given_reply(params) is None
        if (
            current
            and not closed
            and self.asks == "client"
            and asking.can_ask(ctx.session.client_capabilities)
        ):
            return asking.input_required(approval)
        return failure(asking.still_waiting(approval), approval.call_id)


def _given_reply(params: "CallToolRequestParams") -> Reply | None:
    """What the person said to the question that an earlier answer carried."""
    given = (params.input_responses or {}).get(asking.KEY)
    to = (params.request_state or "").partition(".")[2]
    return asking.reply(getattr(given, "action", None), getattr(given, "content", None), to=to)


async def _elicited(ctx: "ServerRequestContext[Any, Any]", approval: Approval) -> Reply | None:
    """Ask in the middle of the call, as older protocols do; no lock is held while the person thinks."""
    from mcp.shared.exceptions import MCPError

    try:
        said = await ctx.session.elicit_form(asking.question(approval), asking.form(), ctx.request_id)
    except MCPError:
        return None
    return asking.reply(said.action, said.content, to=approval.fingerprint)


def _header(ctx: "ServerRequestContext[Any, Any]", name: str) -> str:
    headers = getattr(ctx.request, "headers", None) or {}
    return str(headers.get(name) or "")


def _client_name(ctx: "ServerRequestContext[Any, Any]") -> str:
    client = ctx.session.client_params
    return client.client_info.name if client is not None else ""
