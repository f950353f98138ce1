"""Tool calls on another machine over MCP's HTTP: `RemoteToolbox` is the client, `RemoteMethods` the server.

A policy sent with a call can only narrow the policy of its token, never widen it.
"""

import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, get_args

import anyio
import anyio.from_thread
import anyio.lowlevel
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from handtools.core.approval import Approval, Approver, RememberScope, Reply, approval_to_json
from handtools.core.call import Call, CancelToken, CancelTokens, call_to_json, derived_call_id
from handtools.core.effects import EffectKind
from handtools.core.errors import HandtoolsError, HostError, UsageError
from handtools.core.events import ApprovalAsked, Changed, EventListener, Settled, Started
from handtools.core.result import Result, result_from_json, result_to_json
from handtools.core.tool import AnyTool, SchemaDialect, schema_with_tool_names, with_tool_names
from handtools.mcp.idempotency import SAFE_CALL_ID_PATTERN
from handtools.mcp.tool_and_result_json import Json, plain_json
from handtools.mcp.tool_calls import ConnectionTools
from handtools.runtime.approval.questions import ask_until_settled
from handtools.runtime.event_delivery import EventAnnouncer
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Decision, Verdict
from handtools.toolbox import Toolbox, ToolDefinition, check_tool_names

if TYPE_CHECKING:
    import httpx2


def policy_to_json(policy: Policy) -> dict[str, Any]:
    """Convert a policy to JSON for a remote call."""
    written: dict[str, Any] = TypeAdapter(Policy).dump_python(policy, mode="json")
    return written


def policy_from_json(value: Any) -> Policy:
    """Parse a policy that a remote client sent; raises `UsageError` if it is invalid."""
    try:
        return TypeAdapter(Policy).validate_python(value)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(map(str, first["loc"]))
        where = f"`{place}` of the policy" if place else "The policy"
        raise UsageError(f"{where} is invalid: {first['msg']}.") from problem


def intersect_policies(policy: Policy, other_policy: Policy, tools: Iterable[AnyTool]) -> Policy:
    """The policy that allows only what both policies allow.

    No rule weakens the other policy's default: if one policy's rule allows an effect for which the other's default
    requires approval, approval is needed. Raises `UsageError` if `other_policy` names an unknown tool.
    """
    tools = list(tools)
    check_tool_names(other_policy, [tool.name for tool in tools])
    strict = (rule for rule in (*policy.rules, *other_policy.rules) if rule.verdict != "allow")
    rules = (replace(rule, only_tightens=True) for rule in strict)
    defaults = {
        kind: verdict
        for kind in get_args(EffectKind)
        if (verdict := _stricter_verdict(policy.default_verdict(kind), other_policy.default_verdict(kind)))
        in {policy.defaults.get(kind), other_policy.defaults.get(kind)}
    }
    return replace(
        policy,
        rules=tuple(dict.fromkeys(rules)),
        defaults=defaults,
        block=(*policy.block, *(tool.name for tool in tools if not other_policy.offers(tool))),
        excluded=(*policy.excluded, *other_policy.excluded),
        hosts=tuple(host for host in policy.hosts if host in other_policy.hosts),
        ports=tuple(port for port in policy.ports if port in other_policy.ports),
        unattended=_stricter_verdict(policy.unattended, other_policy.unattended),
    )


def _stricter_verdict(one: Verdict, other: Verdict) -> Verdict:
    return max(one, other, key=VERDICT_STRENGTH.__getitem__)


METHOD_PREFIX = "handtools/"
REFUSED_REQUEST_CODE = -32600
MAX_NARROWED_TOOLBOXES = 64
"""Maximum number of cached toolboxes for policies sent with remote calls."""


class RemoteParams(BaseModel):
    """Parameters of all remote methods in one model. Each method uses the fields it needs."""

    model_config = ConfigDict(extra="ignore")

    tool: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    id: str = ""
    session: str = ""
    turn: str = ""
    parent: str = ""
    deadline: float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    allow: bool = False
    remember: str = "once"
    message: str = ""
    fingerprint: str = ""
    """Fingerprint of the approval request to answer; empty means whichever is pending."""
    policy: dict[str, Any] | None = None
    """A policy that narrows the token's policy for this call."""

    @property
    def reply(self) -> Reply:
        """The reply to an approval request."""
        remember: Any = self.remember if self.remember in get_args(RememberScope) else "once"
        return Reply(self.allow, remember, self.message, self.fingerprint)


ToolboxMethod = Callable[[Toolbox, RemoteParams], Awaitable[Json]]


async def withdraw(toolbox: Toolbox, params: RemoteParams) -> Json:
    """Withdraw the approval request of a call without running it; return whether the call was pending."""
    return {"withdrawn": await toolbox.withdraw(params.id, params.message)}


async def waiting(toolbox: Toolbox, _params: RemoteParams) -> Json:
    """List the pending approvals."""
    return {"waiting": [plain_json(approval_to_json(approval)) for approval in await toolbox.waiting()]}


async def why(toolbox: Toolbox, params: RemoteParams) -> Json:
    """Return the policy rule that applies to a call, without running it."""
    decision: Json = plain_json(asdict(await toolbox.why(params.tool, params.args)))
    return decision


async def definitions(toolbox: Toolbox, _params: RemoteParams) -> Json:
    """Return the tool definitions in every schema dialect."""
    return {
        "definitions": {
            name: [asdict(one) for one in toolbox.definitions(name)] for name in get_args(SchemaDialect)
        }
    }


TOOLBOX_METHODS: Mapping[str, ToolboxMethod] = {
    method.__name__: method for method in (withdraw, waiting, why, definitions)
}
"""The methods that `RemoteMethods` shares with a fleet's host, by name."""


def narrowed_toolbox(
    toolbox: Toolbox, policy: dict[str, Any], cached_toolboxes: dict[str, Toolbox]
) -> Toolbox:
    """The toolbox under a policy that a client sent, which can only narrow the toolbox's own policy."""
    key = derived_call_id("policy", policy)
    if key not in cached_toolboxes:
        while len(cached_toolboxes) >= MAX_NARROWED_TOOLBOXES:
            del cached_toolboxes[next(iter(cached_toolboxes))]
        more = policy_from_json(policy)
        cached_toolboxes[key] = toolbox.under(
            intersect_policies(toolbox.policy, more, toolbox.tools.values())
        )
    return cached_toolboxes[key]


class RemoteMethods:
    """The server side of `RemoteToolbox`: JSON-RPC methods `handtools/call`, `handtools/resume` etc."""

    def __init__(self, connection_tools: ConnectionTools[Toolbox]) -> None:
        self._connection_tools = connection_tools
        self._narrowed: dict[str, Toolbox] = {}

    def methods(self) -> dict[str, Callable[[object, RemoteParams], Awaitable[Json]]]:
        """The handlers by JSON-RPC method name, such as `handtools/call`."""
        own: dict[str, ToolboxMethod] = {
            method.__name__: method for method in (self.call, self.resume, self.cancel)
        }
        return {
            f"{METHOD_PREFIX}{name}": partial(self._answer, method)
            for name, method in {**own, **TOOLBOX_METHODS}.items()
        }

    async def _answer(self, method: ToolboxMethod, _ctx: object, params: RemoteParams) -> Json:
        """Run a method with the toolbox and the stored call id that a request refers to."""
        fit = (
            params.id if SAFE_CALL_ID_PATTERN.fullmatch(params.id) else derived_call_id("named", params.id)
        )
        params.id, toolbox = (
            self._connection_tools.journal_call_id(fit),
            self._connection_tools.attended_toolbox,
        )
        try:
            if params.policy is not None:
                toolbox = narrowed_toolbox(toolbox, params.policy, self._narrowed)
            return await method(toolbox, params)
        except HandtoolsError as problem:
            raise _refused_error(str(problem)) from problem

    async def call(self, toolbox: Toolbox, params: RemoteParams) -> Json:
        """Run a tool call and return its result.

        A lost connection does not stop the call; requesting the same id later returns its result.
        """
        began, status = time.perf_counter(), "error"
        try:
            call = Call(
                tool=params.tool,
                args=params.args,
                id=params.id,
                session=params.session or self._connection_tools.session,
                turn=params.turn,
                agent=self._connection_tools.agent,
                parent=params.parent,
                deadline=params.deadline,
                metadata=params.metadata,
                env=params.env,
            )
            result = await self._connection_tools.run(call, toolbox)
            status = result.status
        finally:
            self._connection_tools.count(params.tool, status, time.perf_counter() - began)
        return _result_json(result)

    async def resume(self, toolbox: Toolbox, params: RemoteParams) -> Json:
        """Answer the approval of a pending call and return the call's result.

        Refused unless the token allows its client to answer.
        """
        if self._connection_tools.asks != "client":
            raise UsageError("This token can't approve calls. The user must run `handtools approve`.")
        return _result_json(await toolbox.resume(params.id, params.reply))

    async def cancel(self, toolbox: Toolbox, params: RemoteParams) -> Json:
        """Cancel a running call by id; return whether one was running."""
        return {"cancelled": toolbox.cancel(params.id)}


def _result_json(result: Result[Any]) -> Json:
    value: Json = plain_json(result_to_json(result))
    return {"result": value}


def _refused_error(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code=REFUSED_REQUEST_CODE, message=message)


MAX_REMOTE_ATTEMPTS = 6
FIRST_RETRY_PAUSE_SECONDS = 0.1
REMOTE_CANCEL_SECONDS = 5.0
REMOTE_MCP_VERSION = "2026-07-28"
REMOTE_META_PREFIX = "io.modelcontextprotocol/"


class RemoteToolbox:
    """Client for the tools of a `handtools serve` process, with the interface of `Toolbox`.

    Use it as an async context manager; entering it fetches the tool definitions. If the connection is lost, a call
    is sent again with the same id, so it runs only once. If no result can be fetched at all, you can make the same
    `Call` again later.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 660.0) -> None:
        self.url = url
        self._token = token
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._cancels = CancelTokens()
        self._announcer = EventAnnouncer()
        self._approver: Approver | None = None
        self._policy: Policy | None = None
        self._narrowing: dict[str, Any] = {}
        """The policy as sent with every request."""
        self._offered: dict[str, list[ToolDefinition]] = {}
        self._meant: dict[str, str] = {}
        """The server's tool names, by the names offered to the model."""

    @property
    def policy(self) -> Policy:
        """The policy that narrows the server's policy; the default policy unless made by `under`."""
        return self._policy or Policy()

    async def call(
        self,
        tool_call: str | Call,
        args: Mapping[str, Any] | None = None,
        *,
        reply: Reply | None = None,
        cancel: CancelToken | None = None,
        listener: EventListener | None = None,
    ) -> Result[Any]:
        """Run a tool by name, or a `Call`. Expected failures are returned as results.

        `reply` is the user's reply to the call's pending approval request, or to the first one it makes. It
        is refused unless the token allows its client to answer. The `listener` gets the events of this call
        only; listeners added with `listen` get those of all calls.
        """
        call = tool_call if isinstance(tool_call, Call) else Call(tool=tool_call, args=args or {})
        call = replace(call, tool=self._own_name(call.tool))
        with (
            self._announcer.listen_to_call(call.id, listener),
            self._cancels.registered(call.id, cancel) as token,
        ):
            return await self._run_and_announce(call, reply, token)

    async def _run_and_announce(self, call: Call, reply: Reply | None, token: CancelToken) -> Result[Any]:
        self._announcer.announce(Started(call))
        result = result_from_json((await self._run(call, token))["result"])
        if reply is not None and (asked := result.request) is not None:
            known = reply.fingerprint or asked.fingerprint
            result = await self.resume(asked.call_id, replace(reply, fingerprint=known))
        if self._approver is not None:
            result = await ask_until_settled(result, self._ask_approver, self.resume)
        if result.request is not None:
            self._announcer.announce(ApprovalAsked(result.request, None))
        elif result.changes is not None:
            self._announcer.announce(Changed(call.id, result.changes))
        self._announcer.announce(Settled(call, result))
        return result

    async def resume(self, call_id: str, reply: Reply) -> Result[Any]:
        """Answer the approval of a pending call and return the call's result."""
        said = {
            "allow": reply.allow,
            "remember": reply.remember,
            "message": reply.message,
            "fingerprint": reply.fingerprint,
            **self._narrowing,
        }
        return result_from_json((await self._send_request("resume", {"id": call_id, **said}))["result"])

    async def withdraw(self, call_id: str, reason: str = "") -> bool:
        """Withdraw the approval request of a pending call; False if none is waiting."""
        answer = await self._send_request("withdraw", {"id": call_id, "message": reason})
        return bool(answer["withdrawn"])

    async def answer_from_elsewhere(self, call_id: str, *, only_if_watched: bool = False) -> Reply | None:  # noqa: ARG002
        """Wait forever: `watch` and `view` run on the workspace's machine, and their answers are handled there."""
        if not only_if_watched:
            await anyio.sleep_forever()
        return None

    def look_ahead(self) -> None:
        """Do nothing: the workspace's machine prepares for the first command."""

    def cancel(self, call_id: str) -> bool:
        """Cancel a running call by id, from any thread; False if it was not made through this toolbox."""
        return self._cancels.cancel(call_id)

    async def waiting(self) -> list[Approval]:
        """The pending approvals on the server."""
        return [Approval(**approval) for approval in (await self._send_request("waiting", {}))["waiting"]]

    async def why(self, tool: str, args: Mapping[str, Any]) -> Decision:
        """Return the policy rule that applies to a call, without running it."""
        answer = await self._send_request(
            "why", {"tool": self._own_name(tool), "args": dict(args), **self._narrowing}
        )
        return Decision(answer["verdict"], answer["rule"], answer["reason"], answer["target"])

    def definitions(self, dialect: SchemaDialect = "plain") -> list[ToolDefinition]:
        """The tool definitions for a model, in a provider's dialect.

        Raises `UsageError` if the toolbox has not been entered.
        """
        if not self._offered:
            raise UsageError("Open the toolbox first: `async with RemoteToolbox(...) as toolbox`.")
        return self._offered[dialect]

    def listen(self, listener: EventListener) -> None:
        """Add a listener for events of calls made through this toolbox: start, approval, change, end."""
        self._announcer.listen(listener)

    def under(self, policy: Policy, *, approver: Approver | None = None) -> Self:
        """The same remote tools under a narrower policy: only what both it and the token's policy allow.

        `approver` answers approval requests.
        """
        offered = {
            dialect: [
                one for one in listed if _is_offered(policy, replace(one, name=self._own_name(one.name)))
            ]
            for dialect, listed in self._offered.items()
        }
        return self._unopened_copy().set_view(offered, self._meant, policy, approver, EventAnnouncer())

    def renamed(self, names: Mapping[str, str] | Callable[[str], str]) -> Self:
        """The same remote tools with other names for the model, e.g. with a prefix. `call` expects these names."""
        new = names if callable(names) else lambda name: names.get(name, name)
        shown = {one.name: new(one.name) for one in self.definitions()}
        if len(set(shown.values())) != len(shown):
            raise UsageError("Two tools would have the same name; tool names in a toolbox must be unique.")
        offered = {
            dialect: [_renamed_definition(one, shown) for one in listed]
            for dialect, listed in self._offered.items()
        }
        meant = {later: self._own_name(name) for name, later in shown.items()}
        return self._unopened_copy().set_view(
            offered, meant, self._policy, self._approver, self._announcer.copy()
        )

    def set_view(
        self,
        definitions: dict[str, list[ToolDefinition]],
        meant: dict[str, str],
        policy: Policy | None,
        approver: Approver | None,
        announcer: EventAnnouncer,
    ) -> Self:
        """Set the tool definitions, names, policy and callbacks of a view made by `under` or `renamed`."""
        self._offered, self._meant = definitions, meant
        self._policy = policy
        self._narrowing = {} if policy is None else {"policy": policy_to_json(policy)}
        self._approver, self._announcer = approver, announcer
        return self

    def _unopened_copy(self) -> Self:
        """A new, unopened toolbox for the same server."""
        return type(self)(self.url, self._token, timeout=self._timeout)

    def _own_name(self, tool: str) -> str:
        return self._meant.get(tool, tool)

    async def _ask_approver(self, approval: Approval) -> Reply | None:
        reply = await self._approver(approval) if self._approver else None
        if reply is not None:
            self._announcer.announce(ApprovalAsked(approval, reply))
        return reply

    async def aclose(self) -> None:
        """Close the HTTP connection; the next call opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> Self:
        if self._offered and (self._meant or self._narrowing):
            return self  # a view made by `under` or `renamed`, which already has its definitions
        offered = (await self._send_request("definitions", {}))["definitions"]
        self._offered = {
            name: [ToolDefinition(**one) for one in listed] for name, listed in offered.items()
        }
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _send_request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON-RPC request, retrying with exponential backoff while the server is unreachable.

        All remote methods are safe to repeat. Raises `HostError` after the last attempt.
        """
        import httpx2

        lost = ""
        for attempt in range(MAX_REMOTE_ATTEMPTS):
            if attempt:
                await anyio.sleep(FIRST_RETRY_PAUSE_SECONDS * 2 ** (attempt - 1))
            try:
                answered = await self._http_client().post(
                    self.url, json=_request_json(method, params), headers=_request_headers(method)
                )
                if answered.status_code != httpx2.codes.SERVICE_UNAVAILABLE:
                    return _result_from_response(answered.status_code, answered.text)
                lost = "it is shutting down"
            except httpx2.TransportError as failure:
                lost = str(failure) or type(failure).__name__
        raise HostError(f"Can't reach {self.url}: {lost}.")

    def _http_client(self) -> "httpx2.AsyncClient":
        import httpx2

        if self._client is None:
            headers = {"authorization": f"Bearer {self._token}"}
            self._client = httpx2.AsyncClient(headers=headers, timeout=self._timeout)
        return self._client

    async def _run(self, call: Call, token: CancelToken) -> dict[str, Any]:
        """Run a call on the server. Cancelling the token or the waiting task also cancels the call there."""
        answer: list[dict[str, Any]] = []
        errors: list[HandtoolsError] = []
        taken_back = _cancel_event(token)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_when, taken_back, call.id)
                try:
                    answer.append(await self._send_request("call", call_to_json(call) | self._narrowing))
                except HandtoolsError as failure:
                    errors.append(failure)
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(REMOTE_CANCEL_SECONDS):
                await self._send_request("cancel", {"id": call.id})
            raise
        if errors:
            raise errors[0]
        return answer[0]

    async def _cancel_when(self, taken_back: anyio.Event, call_id: str) -> None:
        await taken_back.wait()
        await self._send_request("cancel", {"id": call_id})


def _renamed_definition(definition: ToolDefinition, names: Mapping[str, str]) -> ToolDefinition:
    own = set(definition.input_schema.get("properties", ()))
    return replace(
        definition,
        name=names[definition.name],
        description=with_tool_names(definition.description, names, own),
        input_schema=schema_with_tool_names(dict(definition.input_schema), names, own),
    )


def _is_offered(policy: Policy, definition: ToolDefinition) -> bool:
    """Whether a policy offers a tool, judged only by its definition. The server checks everything else."""
    if definition.name in policy.block or (
        policy.allow is not None and definition.name not in policy.allow
    ):
        return False
    return {"none": False, "read_only": definition.reads_only}.get(policy.tools, True)


def _cancel_event(token: CancelToken) -> anyio.Event:
    """An event, for this event loop, that is set when any thread cancels the token."""
    event, home, loop = anyio.Event(), threading.get_ident(), anyio.lowlevel.current_token()

    def told() -> None:
        if threading.get_ident() == home:
            event.set()
        else:
            anyio.from_thread.run_sync(event.set, token=loop)

    token.on_cancel(told)
    return event


def _request_json(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    envelope = {
        f"{REMOTE_META_PREFIX}protocolVersion": REMOTE_MCP_VERSION,
        f"{REMOTE_META_PREFIX}clientCapabilities": {},
    }
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": f"{METHOD_PREFIX}{method}",
        "params": {**params, "_meta": envelope},
    }


def _request_headers(method: str) -> dict[str, str]:
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": REMOTE_MCP_VERSION,
        "mcp-method": f"{METHOD_PREFIX}{method}",
    }


def _result_from_response(status: int, text: str) -> dict[str, Any]:
    # If the response took a while, it is an event stream with pings, and its last data line is the response.
    # Not splitlines(): it also splits at characters such as U+2028, which JSON strings may contain.
    lines = [line.removeprefix("data:") for line in text.split("\n") if line.startswith("data:")]
    try:
        answer = json.loads(lines[-1] if lines else text)
    except ValueError:
        raise HostError(f"The server returned status {status} and a body that is not JSON.") from None
    if "result" in answer:
        found: dict[str, Any] = answer["result"]
        return found
    problem = answer.get("error")
    message = problem.get("message") if isinstance(problem, dict) else problem
    raise UsageError(f"The server refused ({status}): {message}")
