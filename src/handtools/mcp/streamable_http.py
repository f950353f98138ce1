"""MCP's streamable HTTP transport: stateless requests for the current protocol, sessions for older ones.

The SDK interprets messages and writes the error messages. We replace its transport, which uses a stream and
several tasks per request. Here a response is plain JSON, and an event stream only if something is sent before
the result.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic_core import from_json

from handtools.mcp import asgi_responses
from handtools.mcp.asgi_responses import (
    EVENT_STREAM_CONTENT_TYPE,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    HttpRefusal,
    HttpRequestHeaders,
    McpHttpResponse,
    check_mcp_post_headers,
    message_json,
    send_json,
    wait_for_disconnect,
)
from handtools.mcp.server import MethodRegistry

if TYPE_CHECKING:
    from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream
    from mcp.shared.inbound import InboundLadderRejection, InboundModernRoute
    from mcp_types import JSONRPCNotification, JSONRPCRequest

VERSION_HEADER = "mcp-protocol-version"
UNWATCHED_REQUEST_SECONDS = 0.02
"""Seconds after which a running request gets a task that pings the client and notices if it disconnects.

Starting such a task for every request would cost more than most requests.
"""


class StatelessRequest:
    """The SDK's dispatch context for one stateless HTTP request. Notifications are sent in its response."""

    can_send_request = False

    def __init__(
        self, message: "JSONRPCRequest", request: HttpRequestHeaders, response: McpHttpResponse
    ) -> None:
        from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
        from mcp.shared.message import ServerMessageMetadata
        from mcp.shared.transport_context import TransportContext

        self.request_id = message.id
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=False, headers=request.headers
        )
        self._token = progress_token_from_params(message.params)
        self._response = response

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Event that is never set: in the current protocol, a client cancels by disconnecting."""
        return anyio.Event()

    async def send_raw_request(self, method: str, _params: object, _options: object = None) -> Any:
        """Raise `NoBackChannelError`: the server can't send requests on stateless HTTP."""
        from mcp.shared.exceptions import NoBackChannelError

        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, _options: object = None) -> None:
        """Send the client a JSON-RPC notification before the result."""
        from mcp_types import JSONRPCNotification

        given = {} if params is None else {"params": dict(params)}
        await self._response.tell(message_json(JSONRPCNotification(jsonrpc="2.0", method=method, **given)))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send a progress notification, if the client gave a progress token."""
        if self._token is None:
            return
        told = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        known = {key: value for key, value in told.items() if value is not None}
        await self.notify("notifications/progress", known)


class StatelessHttp:
    """ASGI application for MCP's current, stateless HTTP protocol. Serves the requests of one token."""

    def __init__(self, registry: MethodRegistry) -> None:
        self._registry = registry
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Run the background tasks for pings and disconnects until the block ends."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield self
            finally:
                self._group = None
                group.cancel_scope.cancel()

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle one POST request with its body in one piece. Raises `HttpRefusal` if it is invalid."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import JSONRPCRequest

        if scope["method"] != "POST":
            raise HttpRefusal(405, "This protocol version supports only POST.", allow="POST")
        request, answer = HttpRequestHeaders.of(scope), McpHttpResponse(send)
        check_mcp_post_headers(request.headers)
        try:
            message = _posted_message((await receive()).get("body", b""), request)
        except MCPError as problem:
            await answer.end(*_error_response(None, problem))
            return
        if not isinstance(message, JSONRPCRequest):
            # Notifications have no effect here: clients cancel by disconnecting.
            await send_json(send, 202, b"")
            return
        with self._watch_connection(receive, answer) as serving:
            said = await self._sdk_response(message, request, answer)
        if not serving.cancelled_caught:
            await answer.end(*said)

    async def _sdk_response(
        self, message: "JSONRPCRequest", request: HttpRequestHeaders, response: McpHttpResponse
    ) -> tuple[bytes, int]:
        """Have the SDK handle a request. Returns the response body and HTTP status."""
        from mcp.server.connection import Connection
        from mcp.server.runner import serve_one
        from mcp_types import JSONRPCResponse

        stateless_request = StatelessRequest(message, request, response)
        try:
            route = _classify_request(message, request)
            result = await serve_one(
                cast("Any", self._registry),
                cast("Any", stateless_request),
                message.method,
                message.params,
                connection=Connection.from_envelope(
                    route.protocol_version, route.client_info, route.client_capabilities
                ),
                lifespan_state={},
            )
        except Exception as problem:  # noqa: BLE001 — one of four, listed in tests/shape: the SDK reports bugs too
            return _error_response(message.id, problem)
        return message_json(JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)), 200

    @contextmanager
    def _watch_connection(
        self, receive: AsgiReceive, response: McpHttpResponse
    ) -> Iterator[anyio.CancelScope]:
        """Within the block, ping the client if the request is slow, and cancel the request on disconnect."""
        attending: anyio.CancelScope | None = None

        def begin() -> None:
            nonlocal attending
            if self._group is not None:
                attending = anyio.CancelScope()
                self._group.start_soon(_ping_until_gone, receive, response, serving, attending)

        with anyio.CancelScope() as serving:
            soon = asyncio.get_running_loop().call_later(UNWATCHED_REQUEST_SECONDS, begin)
            try:
                yield serving
            finally:
                soon.cancel()
                if attending is not None:
                    attending.cancel()


async def _ping_until_gone(
    receive: AsgiReceive,
    response: McpHttpResponse,
    serving: anyio.CancelScope,
    attending: anyio.CancelScope,
) -> None:
    with attending:
        while True:
            with anyio.move_on_after(asgi_responses.PING_SECONDS) as silence:
                await wait_for_disconnect(receive)
            if not silence.cancelled_caught:
                serving.cancel()
                return
            await response.ping()


def _posted_message(body: bytes, request: HttpRequestHeaders) -> "JSONRPCRequest | JSONRPCNotification":
    """Parse a POST body as a JSON-RPC request, or a notification if it has no id. Raises `MCPError`."""
    from mcp.shared.exceptions import MCPError
    from mcp.shared.inbound import unsupported_protocol_version_rejection
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, JSONRPCRequest
    from pydantic import ValidationError

    try:
        # Parse strictly: if a message had a lone surrogate, the response could not be encoded.
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise MCPError(PARSE_ERROR, "Parse error") from None
    try:
        if not isinstance(decoded, dict) or "id" in decoded:
            return JSONRPCRequest.model_validate(decoded)
        told = JSONRPCNotification.model_validate(decoded)
    except ValidationError:
        reason = "Body must be a single JSON-RPC request or notification object"
        raise MCPError(INVALID_REQUEST, reason) from None
    if (
        rejection := unsupported_protocol_version_rejection(request.headers.get(VERSION_HEADER, ""))
    ) is not None:
        raise _rejection_error(rejection)
    return told


def _classify_request(message: "JSONRPCRequest", request: HttpRequestHeaders) -> "InboundModernRoute":
    """The protocol version, client info and capabilities of a request.

    Raises `MCPError` if its headers and body contradict each other.
    """
    from mcp.shared.exceptions import MCPError
    from mcp.shared.inbound import (
        InboundLadderRejection,
        classify_inbound_request,
        find_duplicated_routing_header,
    )
    from mcp_types import HEADER_MISMATCH

    if (name := find_duplicated_routing_header(request.lines)) is not None:
        raise MCPError(HEADER_MISMATCH, f"{name} header appears more than once")
    body = {"method": message.method, "params": message.params}
    route = classify_inbound_request(body, headers=request.headers)
    if isinstance(route, InboundLadderRejection):
        raise _rejection_error(route)
    return route


def _rejection_error(rejection: "InboundLadderRejection") -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(rejection.code, rejection.message, rejection.data)


def _error_response(name: str | int | None, problem: Exception) -> tuple[bytes, int]:
    """Convert an exception to a JSON-RPC error body and an HTTP status."""
    from mcp.server.runner import modern_error_data
    from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
    from mcp_types import JSONRPCError

    error = modern_error_data(problem)
    message = JSONRPCError(jsonrpc="2.0", id=name, error=error)
    return message_json(message), ERROR_CODE_HTTP_STATUS.get(error.code, 200)


SESSION_HEADER = "mcp-session-id"
MAX_HTTP_SESSIONS = 10_000
"""Maximum number of open HTTP sessions per token."""
SESSION_IDLE_SECONDS = 1800.0
SESSION_SWEEP_SECONDS = 60.0
MAX_QUEUED_MESSAGES = 16
UNRELATED_MESSAGES_KEY = ""
"""Key in `HttpSession.lines` for messages from the server that don't belong to a request."""
CANCELLED_CODE = -32800

ResponseMessageStream = MemoryObjectSendStream[Any]
"""In-memory stream that carries messages to one open HTTP response."""


@dataclass(slots=True)
class HttpSession:
    """One client's MCP session over HTTP, starting with `initialize`.

    The SDK's loop also uses it as the stream for messages to the client.
    """

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    posting: "ContextSendStream[Any]" = field(init=False)
    """Stream for the messages that the client posts, with the context variables of their HTTP requests."""
    posted: "ContextReceiveStream[Any]" = field(init=False)
    """The other end of that stream, which the SDK's loop reads."""
    lines: dict[str, ResponseMessageStream] = field(default_factory=dict)
    """Streams to open HTTP responses, by JSON-RPC request id."""
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        from mcp.shared._context_streams import create_context_streams

        self.posting, self.posted = create_context_streams[Any](MAX_QUEUED_MESSAGES)

    def open_message_stream(self, name: str) -> MemoryObjectReceiveStream[Any]:
        """Open the message stream for a request id.

        Closes an earlier stream for the same id, because a repeated request replaces the first one.
        """
        if (older := self.lines.get(name)) is not None:
            older.close()
        self.lines[name], hearing = anyio.create_memory_object_stream[Any](MAX_QUEUED_MESSAGES)
        return hearing

    def close_message_stream(self, name: str, hearing: MemoryObjectReceiveStream[Any]) -> None:
        """Close the stream of a request id, unless a repeated request has replaced it."""
        hearing.close()
        line = self.lines.get(name)
        if line is not None and not line.statistics().open_receive_streams:
            del self.lines[name]
            line.close()
        self.used = time.monotonic()

    async def send(self, item: Any) -> None:
        """Pass a message to the HTTP response it belongs to, or drop it if that response has ended."""
        line = self.lines.get(_request_of(item))
        if line is not None:
            try:
                await line.send(item.message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async def answer_cancelled_request(self, request_id: str | int) -> None:
        """Answer a cancelled request with a JSON-RPC error, as older protocols require."""
        from mcp.shared.message import SessionMessage
        from mcp_types import ErrorData, JSONRPCError

        error = ErrorData(code=CANCELLED_CODE, message="Request cancelled")
        await self.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    def end(self) -> None:
        """End the session: close all response streams and accept no more messages."""
        self.posting.close()
        for line in self.lines.values():
            line.close()
        self.lines.clear()

    async def aclose(self) -> None:
        """End the session when the SDK's loop closes its output stream."""
        self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SessionHttp:
    """ASGI application for MCP's older HTTP protocols, which have sessions. Serves one token."""

    def __init__(
        self,
        registry: MethodRegistry,
        *,
        most: int = MAX_HTTP_SESSIONS,
        idle: float = SESSION_IDLE_SECONDS,
    ) -> None:
        self._registry = registry
        self._most, self._idle = most, idle
        self._open: dict[str, HttpSession] = {}
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Serve sessions until the block ends, and end those that have been idle too long."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._sweep_often)
            try:
                yield self
            finally:
                for session in self._open.values():
                    session.end()
                group.cancel_scope.cancel()

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle one POST, GET (event stream) or DELETE (end of session) request. Raises `HttpRefusal`."""
        request = HttpRequestHeaders.of(scope)
        match scope["method"]:
            case "POST":
                check_mcp_post_headers(request.headers)
                await self._handle_post((await receive()).get("body", b""), request, send)
            case "GET":
                if EVENT_STREAM_CONTENT_TYPE not in request.headers.get("accept", ""):
                    raise HttpRefusal(406, "The Accept header of a GET must include text/event-stream.")
                await self._handle_get(self._session(request.headers), receive, send)
            case "DELETE":
                session = self._session(request.headers)
                del self._open[session.id]
                session.end()
                await send_json(send, 200, b"")

    async def _handle_post(self, body: bytes, request: HttpRequestHeaders, send: AsgiSend) -> None:
        from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValueError:
            await send_json(send, 400, _error_json(-32700, "Not a valid JSON-RPC message."))
            return
        opening = isinstance(message, JSONRPCRequest) and message.method == "initialize"
        fresh = opening and SESSION_HEADER not in request.headers
        session = self._open_session() if fresh else self._session(request.headers)
        if isinstance(message, JSONRPCRequest):
            await self._handle_request(session, message, request, send)
        else:
            await send_json(send, 202, b"")
            await self._send_to_session(session, message, request)

    async def _handle_request(
        self, session: HttpSession, message: Any, request: HttpRequestHeaders, send: AsgiSend
    ) -> None:
        hearing = session.open_message_stream(str(message.id))
        try:
            await self._send_to_session(session, message, request)
            await _answer_request(hearing, McpHttpResponse(send, _session_headers(session)))
        finally:
            session.close_message_stream(str(message.id), hearing)

    async def _send_to_session(
        self, session: HttpSession, message: Any, request: HttpRequestHeaders
    ) -> None:
        from mcp.shared.message import ServerMessageMetadata, SessionMessage

        unanswered = (
            partial(session.answer_cancelled_request, message.id) if hasattr(message, "id") else None
        )
        metadata = ServerMessageMetadata(request_context=request, on_request_unanswered=unanswered)
        try:
            await session.posting.send(SessionMessage(message, metadata))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise HttpRefusal(404, "This session has ended.") from None

    async def _handle_get(self, session: HttpSession, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer a GET with a stream of messages that belong to no request, until the client disconnects."""
        if UNRELATED_MESSAGES_KEY in session.lines:
            raise HttpRefusal(409, "This session already has an open event stream.")
        hearing, answer = (
            session.open_message_stream(UNRELATED_MESSAGES_KEY),
            McpHttpResponse(send, _session_headers(session)),
        )
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group)
                await answer.open()
                while (message := await _next_message(hearing)) is not None:
                    await _send_message(message, answer)
                await answer.close()
                group.cancel_scope.cancel()
        finally:
            session.close_message_stream(UNRELATED_MESSAGES_KEY, hearing)

    def _session(self, headers: Mapping[str, str]) -> HttpSession:
        name = headers.get(SESSION_HEADER)
        if name is None:
            raise HttpRefusal(400, "The Mcp-Session-Id header is missing.")
        session = self._open.get(name)
        if session is None:
            raise HttpRefusal(404, "Unknown session. Initialize a new one.")
        session.used = time.monotonic()
        return session

    def _open_session(self) -> HttpSession:
        if len(self._open) >= self._most or self._group is None:
            raise HttpRefusal(503, "Too many sessions are open.", **{"retry-after": "60"})
        session = HttpSession()
        self._open[session.id] = session
        self._group.start_soon(self._serve, session)
        return session

    async def _serve(self, session: HttpSession) -> None:
        from mcp.server.runner import serve_loop

        try:
            registry, heard, said = (
                cast("Any", each) for each in (self._registry, session.posted, session)
            )
            await serve_loop(registry, heard, said, lifespan_state={}, session_id=session.id)
        finally:
            self._open.pop(session.id, None)
            session.end()

    def sweep(self, now: float) -> None:
        """End the sessions that, at the time `now`, have been idle for longer than the limit."""
        since = now - self._idle
        for session in [one for one in self._open.values() if one.used < since and not one.lines]:
            del self._open[session.id]
            session.end()

    async def _sweep_often(self) -> None:
        while True:
            await anyio.sleep(SESSION_SWEEP_SECONDS)
            self.sweep(time.monotonic())


def _request_of(item: Any) -> str:
    message, metadata = item.message, item.metadata
    if not hasattr(message, "method"):
        return UNRELATED_MESSAGES_KEY if message.id is None else str(message.id)
    related = getattr(metadata, "related_request_id", None)
    return UNRELATED_MESSAGES_KEY if related is None else str(related)


async def _answer_request(hearing: MemoryObjectReceiveStream[Any], response: McpHttpResponse) -> None:
    """Send the messages for a request to its HTTP response, up to and including the result.

    Raises `HttpRefusal` if the session ends, or a repeated request replaces this one, before the first message.
    """
    message = await _next_message(hearing)
    if message is None:
        raise HttpRefusal(404, "The session has ended, or a repeated request replaced this one.")
    while message is not None:
        if _is_answer(message):
            await response.end(message_json(message))
            return
        await _send_message(message, response)
        message = await _next_message(hearing)
    await response.close()


async def _send_message(message: Any, response: McpHttpResponse) -> None:
    await (response.ping() if message is NO_MESSAGE_YET else response.tell(message_json(message)))


class _Silence:
    """Type of `NO_MESSAGE_YET`, which means that no message arrived within the ping interval."""


NO_MESSAGE_YET = _Silence()


async def _next_message(hearing: MemoryObjectReceiveStream[Any]) -> Any:
    """The next message of a stream; `NO_MESSAGE_YET` after a ping interval without one, None if it is closed."""
    try:
        return hearing.receive_nowait()
    except anyio.WouldBlock:
        pass
    except anyio.EndOfStream:
        return None
    with anyio.move_on_after(asgi_responses.PING_SECONDS):
        try:
            return await hearing.receive()
        except anyio.EndOfStream:
            return None
    return NO_MESSAGE_YET


async def _cancel_when_gone(receive: AsgiReceive, group: TaskGroup) -> None:
    await wait_for_disconnect(receive)
    group.cancel_scope.cancel()


def _is_answer(message: Any) -> bool:
    return message is not NO_MESSAGE_YET and not hasattr(message, "method")


def _error_json(code: int, message: str) -> bytes:
    from mcp_types import ErrorData, JSONRPCError

    return message_json(JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message)))


def _session_headers(session: HttpSession) -> tuple[tuple[bytes, bytes], ...]:
    return ((SESSION_HEADER.encode(), session.id.encode()),)
