"""A toolbox on another machine: the interface of `Toolbox`, over MCP's HTTP."""

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.from_thread
import anyio.lowlevel

from handtools.core.approval import Approval, Approver, Reply
from handtools.core.call import Call
from handtools.core.cancel import CancelToken
from handtools.core.errors import HandtoolsError, HostError, UsageError
from handtools.core.events import Asked, Changed, Listener, Settled, Started
from handtools.core.result import Result
from handtools.core.schema import Dialect
from handtools.core.wire import call_to_json, result_from_json
from handtools.mcp.extension import PREFIX
from handtools.mcp.tightening import policy_to_json
from handtools.runtime.announcing import Announcer
from handtools.runtime.deciding import Decision
from handtools.runtime.policy import Policy
from handtools.toolbox import Definition

if TYPE_CHECKING:
    import httpx2

ATTEMPTS = 6
FIRST_PAUSE = 0.1
CANCEL_SECONDS = 5.0
VERSION = "2026-07-28"
KEYS = "io.modelcontextprotocol/"


class RemoteToolbox:
    """Tools that run where `handtools serve` runs.

    To be used as a context: opening it learns what is offered. A call carries its id: when the connection is
    lost it is asked for again under that id, so it runs once however often that happens; when the answer can't
    be had at all, the same `Call` can be made later.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 660.0) -> None:
        self.url = url
        self._token = token
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._cancels: dict[str, CancelToken] = {}
        self._announcer = Announcer()
        self._approver: Approver | None = None
        self._narrowing: dict[str, Any] = {}
        self._offered: dict[str, list[Definition]] = {}

    async def call(
        self,
        tool: str | Call,
        args: Mapping[str, Any] | None = None,
        *,
        cancel: CancelToken | None = None,
        listener: Listener | None = None,
    ) -> Result[Any]:
        """Run a tool by name, or a whole `Call`; expected failures come back as results.

        The `listener` is told of this call alone, as those of `listen` are.
        """
        call = tool if isinstance(tool, Call) else Call(tool=tool, args=args or {})
        with self._announcer.following(call.id, listener):
            return await self._made(call, cancel)

    async def _made(self, call: Call, cancel: CancelToken | None) -> Result[Any]:
        token = self._cancels.setdefault(call.id, cancel or CancelToken())
        self._announcer.announce(Started(call))
        try:
            result = result_from_json((await self._run(call, token))["result"])
            result = await self._answered(result)
        finally:
            self._cancels.pop(call.id, None)
        if result.request is not None:
            self._announcer.announce(Asked(result.request, None))
        elif result.changes is not None:
            self._announcer.announce(Changed(call.id, result.changes))
        self._announcer.announce(Settled(call, result))
        return result

    async def resume(self, call_id: str, reply: Reply) -> Result[Any]:
        """Answer a call that is pending."""
        said = {
            "allow": reply.allow,
            "remember": reply.remember,
            "message": reply.message,
            "fingerprint": reply.fingerprint,
            **self._narrowing,
        }
        return result_from_json((await self._ask("resume", {"id": call_id, **said}))["result"])

    def cancel(self, call_id: str) -> bool:
        """Take back a running call by its id, from any thread; False when it was not made here."""
        token = self._cancels.get(call_id)
        if token is not None:
            token.cancel()
        return token is not None

    async def waiting(self) -> list[Approval]:
        """The questions whose answers are out."""
        return [Approval(**approval) for approval in (await self._ask("waiting", {}))["waiting"]]

    async def why(self, tool: str, args: Mapping[str, Any]) -> Decision:
        """The deciding rule for a hypothetical call."""
        answer = await self._ask("why", {"tool": tool, "args": dict(args), **self._narrowing})
        return Decision(answer["verdict"], answer["rule"], answer["reason"], answer["target"])

    def definitions(self, dialect: Dialect = "plain") -> list[Definition]:
        """What is offered, as a model is told about it."""
        if not self._offered:
            raise UsageError("Open the toolbox first: `async with RemoteToolbox(...) as toolbox`.")
        return self._offered[dialect]

    def listen(self, listener: Listener) -> None:
        """Be told of the calls that are made through this toolbox: when they start, ask, change files and end."""
        self._announcer.listen(listener)

    def under(self, policy: Policy, *, approver: Approver | None = None) -> "RemoteToolbox":
        """The same tools for another agent, under what this policy and the token's both allow."""
        other = RemoteToolbox(self.url, self._token, timeout=self._timeout)
        other._offered = {
            dialect: [one for one in listed if _offers(policy, one)]
            for dialect, listed in self._offered.items()
        }
        other._approver = approver
        other._narrowing = {"policy": policy_to_json(policy)}
        return other

    async def _answered(self, result: Result[Any]) -> Result[Any]:
        """Put questions to the approver, as long as there are any and it answers."""
        while self._approver is not None and (approval := result.request) is not None:
            reply = await self._approver(approval)
            if reply is None:
                break
            self._announcer.announce(Asked(approval, reply))
            result = await self.resume(approval.call_id, replace(reply, fingerprint=approval.fingerprint))
        return result

    async def aclose(self) -> None:
        """Let go of the connection; it is opened again when it is needed again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> Self:
        offered = (await self._ask("definitions", {}))["definitions"]
        self._offered = {name: [Definition(**one) for one in listed] for name, listed in offered.items()}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask until there is an answer: every method of ours can be asked for again."""
        import httpx2

        pause, lost = FIRST_PAUSE, ""
        for _ in range(ATTEMPTS):
            try:
                answered = await self._http().post(
                    self.url, json=_request(method, params), headers=_headers(method)
                )
                if answered.status_code != httpx2.codes.SERVICE_UNAVAILABLE:
                    return _result(answered.status_code, answered.text)
                lost = "it is shutting down"
            except httpx2.TransportError as failure:
                lost = str(failure) or type(failure).__name__
            await anyio.sleep(pause)
            pause *= 2
        raise HostError(f"{self.url} can't be reached: {lost}.")

    def _http(self) -> "httpx2.AsyncClient":
        import httpx2

        if self._client is None:
            headers = {"authorization": f"Bearer {self._token}"}
            self._client = httpx2.AsyncClient(headers=headers, timeout=self._timeout)
        return self._client

    async def _run(self, call: Call, token: CancelToken) -> dict[str, Any]:
        """Make a call, and pass on its cancellation: by its token, or of whoever waits here."""
        answer: list[dict[str, Any]] = []
        problem: list[HandtoolsError] = []
        taken_back = _event(token)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_when, taken_back, call.id)
                try:
                    answer.append(await self._ask("call", call_to_json(call) | self._narrowing))
                except HandtoolsError as failure:
                    problem.append(failure)
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_SECONDS):
                await self._ask("cancel", {"id": call.id})
            raise
        if problem:
            raise problem[0]
        return answer[0]

    async def _cancel_when(self, taken_back: anyio.Event, call_id: str) -> None:
        await taken_back.wait()
        await self._ask("cancel", {"id": call_id})


def _offers(policy: Policy, definition: Definition) -> bool:
    """As far as a definition tells; the server knows the rest."""
    if definition.name in policy.block or (
        policy.allow is not None and definition.name not in policy.allow
    ):
        return False
    return {"none": False, "read_only": definition.reads_only}.get(policy.tools, True)


def _event(token: CancelToken) -> anyio.Event:
    """An event of this loop that is set when the token is cancelled, on whichever thread."""
    event, home, loop = anyio.Event(), threading.get_ident(), anyio.lowlevel.current_token()

    def told() -> None:
        if threading.get_ident() == home:
            event.set()
        else:
            anyio.from_thread.run_sync(event.set, token=loop)

    token.on_cancel(told)
    return event


def _request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    envelope = {f"{KEYS}protocolVersion": VERSION, f"{KEYS}clientCapabilities": {}}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": f"{PREFIX}{method}",
        "params": {**params, "_meta": envelope},
    }


def _headers(method: str) -> dict[str, str]:
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": f"{PREFIX}{method}",
    }


def _result(status: int, text: str) -> dict[str, Any]:
    # A long answer comes as a stream of events, with pings before it: the last line that is data is the answer.
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    try:
        answer = json.loads(lines[-1] if lines else text)
    except ValueError:
        raise HostError(f"The server answered {status} with something that is no JSON.") from None
    if "result" in answer:
        found: dict[str, Any] = answer["result"]
        return found
    problem = answer.get("error")
    message = problem.get("message") if isinstance(problem, dict) else problem
    raise UsageError(f"The server refused ({status}): {message}")
