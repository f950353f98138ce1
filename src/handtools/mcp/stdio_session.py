"""The JSON-RPC session on stdio: tool calls are answered here, all other requests by the MCP SDK.

The SDK passes every message through pydantic models, several streams and several tasks, and importing it takes
longer than the rest of the start. `StdioSession.receive` decides for each line who handles it. The SDK is
loaded when the first request comes that is not a well-formed tool call, and then gets the client's `initialize`
too. A test compares our responses with the SDK's.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import anyio
from anyio.abc import TaskGroup
from pydantic_core import from_json, to_json

from handtools.mcp.confinement_to_roots import ClientRootsEnforcer
from handtools.mcp.handshake import (
    CURRENT_PROTOCOL_VERSION,
    MCP_META_PREFIX,
    Json,
    agreed_version,
    is_current_meta,
    result_for_version,
)
from handtools.mcp.tool_calls import ConnectionTools
from handtools.mcp.tool_request import ClientRefusal, ToolRequest

logger = logging.getLogger("handtools")

CONNECTION_CLOSED_CODE, INTERNAL_ERROR_CODE = -32000, -32603
TOOL_CALL_PARAMS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "arguments": (dict, type(None)),
    "_meta": (dict, type(None)),
    "requestState": (str, type(None)),
    "inputResponses": (dict, type(None)),
}
"""The parameters of `tools/call` and their JSON types. The SDK answers a request with any others."""

SdkLoop = Callable[[Any, Any], Awaitable[None]]
"""The SDK's loop over a stream of messages from the client and one of messages to it."""


class OutputLines(Protocol):
    """Where lines for the client are written."""

    def write(self, line: bytes) -> None:
        """Write a line; do nothing if the client is gone."""
        ...

    async def wait_for_room(self) -> None:
        """Wait while the client reads more slowly than we write."""
        ...


class SessionClient(NamedTuple):
    """What a client said about itself in `initialize`, or in the `_meta` of a request."""

    name: str
    capabilities: Json
    protocol_version: str

    @classmethod
    def described(cls, info: Any, capabilities: Any, version: str) -> Self | None:
        """A client by its `clientInfo` and `capabilities`; None if they are malformed."""
        match info:
            case {"name": str() as name, "version": str()}:
                pass
            case None if version == CURRENT_PROTOCOL_VERSION:
                name = ""
            case _:
                return None
        if not isinstance(capabilities, dict):
            return None
        given = {key: value for key, value in capabilities.items() if value is not None}
        if not all(isinstance(value, dict) for value in given.values()):
            return None
        return cls(name, given, version)


class StdioSession:
    """One client's session: the calls that run, the requests that the client has not answered, and the SDK."""

    def __init__(
        self,
        tools: ConnectionTools[Any],
        roots: ClientRootsEnforcer | None,
        output: OutputLines,
        load_sdk: Callable[[], SdkLoop],
        answered: set[str | int],
    ) -> None:
        """`answered` has the ids of requests in the lines that need no response any more."""
        self._tools, self._roots, self._output = tools, roots, output
        self._load_sdk, self._answered = load_sdk, answered
        self._client: SessionClient | None = None
        self._running: dict[str | int, anyio.CancelScope] = {}
        """The scopes of running calls by request id, which the client cancels."""
        self._asked: dict[str, asyncio.Future[Json]] = {}
        """Requests to the client by id, and their responses."""
        self._asked_count = 0
        self._sdk_lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._sdk_loaded = False
        # The SDK opens a span for each request if the process records traces.
        self._traced = "opentelemetry.sdk.trace" in sys.modules
        self._group: TaskGroup

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Handle the client's lines until it disconnects, then cancel what runs."""
        async with anyio.create_task_group() as self._group:
            async for line in lines:
                self.receive(line)
            self._group.cancel_scope.cancel()

    def receive(self, line: bytes) -> None:
        """Handle one line: start a tool call, settle or cancel a request, or pass the line to the SDK."""
        try:
            message = from_json(line.decode("utf-8", "replace"))
        except ValueError:
            return
        match message:
            case {"method": "tools/call" | "tools/list" | "ping"} if self._started(message):
                pass
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as name}} if (
                scope := self._running.get(_correlated(name))
            ) is not None:
                scope.cancel()
            case {"method": "notifications/roots/list_changed"}:
                if self._roots is not None:
                    self._roots.changed()
            case {"id": str() as name} if "method" not in message and name in self._asked:
                self._asked.pop(name).set_result(message)
            case {"method": "initialize", "params": {"protocolVersion": str() as version} as params}:
                self._client = SessionClient.described(
                    params.get("clientInfo"), params.get("capabilities"), agreed_version(version)
                )
                self._pass_to_sdk(message, line)
            case dict():
                self._pass_to_sdk(message, line)

    def _pass_to_sdk(self, message: Json, line: bytes) -> None:
        """Queue a line for the SDK, and load it if the line is a request that waits for a response."""
        name = message.get("id")
        if "method" in message and isinstance(name, str | int) and name not in self._answered:
            if not self._sdk_loaded:
                self._group.start_soon(self._serve_with_sdk)
            self._sdk_loaded = True
        if self._sdk_loaded or message.get("method") in {"initialize", "notifications/initialized"}:
            self._sdk_lines.put_nowait(line)

    async def _serve_with_sdk(self) -> None:
        serve = self._load_sdk()
        await serve(SdkInput(self._sdk_lines), SdkOutput(self._output, self._answered))

    def _started(self, message: Json) -> bool:
        """Start to answer a request; False if it is not one that a client of this session may send."""
        match message:
            case {"jsonrpc": "2.0", "id": str() | int() as name, "method": method} if not isinstance(
                name, bool
            ):
                params = message.get("params", {})
            case _:
                return False
        if not isinstance(params, dict) or self._traced:
            return False
        client = self._client_of_request(params.get("_meta") or {})
        if client is None:
            return False
        respond: Callable[[], Awaitable[Json]]
        if method == "tools/call":
            if not _is_tool_call(params):
                return False
            call_tool = (self._roots or self._tools).call_tool
            respond = partial(call_tool, self._tool_request(client, name, params))
        elif not params.keys() <= {"_meta"}:
            return False
        elif method == "tools/list":
            respond = partial(self._tools.list_tools, None, None)
        elif client.protocol_version == CURRENT_PROTOCOL_VERSION:
            return False  # This version has no `ping`.
        else:
            respond = _empty_result
        scope = self._running[_correlated(name)] = anyio.CancelScope()
        self._group.start_soon(self._answer, client, name, scope, respond)
        return True

    def _client_of_request(self, meta: Any) -> SessionClient | None:
        """The client that sends a request with this `_meta`; None if it may not, and the SDK must refuse it."""
        if not isinstance(meta, dict):
            return None
        if f"{MCP_META_PREFIX}protocolVersion" not in meta:
            return self._client
        if self._client is not None or not is_current_meta(meta):
            return None
        return SessionClient.described(
            meta.get(f"{MCP_META_PREFIX}clientInfo"),
            meta[f"{MCP_META_PREFIX}clientCapabilities"],
            CURRENT_PROTOCOL_VERSION,
        )

    def _tool_request(self, client: SessionClient, name: str | int, params: Json) -> ToolRequest:
        token = (params.get("_meta") or {}).get("progressToken")
        return ToolRequest(
            name,
            params,
            client.name,
            client.capabilities,
            client.protocol_version,
            None if client.protocol_version == CURRENT_PROTOCOL_VERSION else self._send_to_client,
            partial(self._report_progress, token),
        )

    async def _answer(
        self,
        client: SessionClient,
        name: str | int,
        scope: anyio.CancelScope,
        respond: Callable[[], Awaitable[Json]],
    ) -> None:
        """Run a request and write its response, unless the client cancels it."""
        response: Json = {}
        try:
            with scope:
                try:
                    response = {"result": result_for_version(await respond(), client.protocol_version)}
                except Exception:
                    # One of four, listed in tests/shape: a bug in one request must not end the session.
                    logger.exception("A request failed.")
                    response = {"error": {"code": INTERNAL_ERROR_CODE, "message": "Internal server error"}}
                finally:
                    if self._running.get(_correlated(name)) is scope:
                        del self._running[_correlated(name)]
        except anyio.get_cancelled_exc_class():
            error = {"code": CONNECTION_CLOSED_CODE, "message": "Connection closed"}
            self._send({"id": name, "error": error})
            raise
        if not scope.cancel_called:
            self._send({"id": name, **response})
            await self._output.wait_for_room()

    async def _send_to_client(
        self, method: str, params: Json | None, *, seconds: float | None = None
    ) -> Json:
        """Send a request to the client and return its result. Raises `ClientRefusal`."""
        self._asked_count += 1
        name = f"handtools-{self._asked_count}"
        future = self._asked[name] = asyncio.get_running_loop().create_future()
        self._send({"id": name, "method": method} | ({} if params is None else {"params": params}))
        try:
            with anyio.fail_after(seconds):
                response = await future
        except TimeoutError:
            self._withdraw(name, f"timed out after {seconds}s")
            raise ClientRefusal(f"Request {method!r} timed out") from None
        except anyio.get_cancelled_exc_class():
            self._withdraw(name, "caller cancelled")
            raise
        finally:
            self._asked.pop(name, None)
        match response:
            case {"result": dict() as result}:
                return result
            case {"error": {"message": str() as message}}:
                raise ClientRefusal(message)
        raise ClientRefusal(f"The client's response to {method} is not valid.")

    def _withdraw(self, name: str, reason: str) -> None:
        """Tell the client that a request needs no answer any more, so that it closes its form."""
        params = {"requestId": name, "reason": reason}
        self._send({"method": "notifications/cancelled", "params": params})

    async def _report_progress(self, token: object, progress: float, message: str) -> None:
        params = {"progressToken": token, "progress": progress, "message": message}
        self._send({"method": "notifications/progress", "params": params})
        await self._output.wait_for_room()

    def _send(self, message: Json) -> None:
        self._output.write(to_json({"jsonrpc": "2.0", **message}) + b"\n")


async def _empty_result() -> Json:
    return {}


def _is_tool_call(params: Json) -> bool:
    """Whether these are valid parameters of `tools/call`."""
    token = (params.get("_meta") or {}).get("progressToken", "")
    return (
        "name" in params
        and all(isinstance(value, TOOL_CALL_PARAMS.get(key, ())) for key, value in params.items())
        and isinstance(token, str | int)
        and not isinstance(token, bool)
    )


def _correlated(name: str | int) -> str | int:
    """A request id to compare with others: some clients return a number as a string."""
    return int(name) if isinstance(name, str) and name.isdecimal() else name


class SdkInput:
    """Async stream of the client's messages for the SDK. For an invalid line, it yields the exception."""

    def __init__(self, lines: asyncio.Queue[bytes]) -> None:
        self._lines = lines

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self.receive()

    async def receive(self) -> Any:
        """The next message."""
        import mcp_types
        from mcp.shared.message import SessionMessage

        line = (await self._lines.get()).decode("utf-8", "replace")
        try:
            return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as problem:
            return problem

    async def aclose(self) -> None:
        """Do nothing: the session ends the stream by cancelling its reader."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SdkOutput:
    """Stream of the SDK's messages to the client."""

    def __init__(self, output: OutputLines, answered: set[str | int]) -> None:
        self._output, self._answered = output, answered

    async def send(self, item: Any) -> None:
        """Write one message as a line, unless it responds to a request that was already answered."""
        message = item.message
        name = getattr(message, "id", None)
        # Requests from the server can have the same ids, so they are excluded.
        if name in self._answered and not hasattr(message, "method"):
            self._answered.discard(name)
            return
        self._output.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        await self._output.wait_for_room()

    async def aclose(self) -> None:
        """Do nothing: stdout is closed when the session has ended."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
