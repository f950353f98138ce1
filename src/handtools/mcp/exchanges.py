"""Exchanges: HTTP of the current protocol, where every request is complete in itself.

What a message means, and with which words it is refused, is the SDK's to say. Its own transport has a stream and
three tasks for each request; here a request is served where it arrives, and attended to only if it takes a while.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
from anyio.abc import TaskGroup
from pydantic_core import from_json

from handtools.mcp import answering
from handtools.mcp.answering import Answer, check_post, in_json
from handtools.mcp.asgi import Receive, Refused, Request, Scope, Send, say_json, until_gone
from handtools.mcp.registry import Registry

if TYPE_CHECKING:
    from mcp.shared.inbound import InboundLadderRejection, InboundModernRoute
    from mcp_types import JSONRPCNotification, JSONRPCRequest

VERSION = "mcp-protocol-version"
ATTENDED_SECONDS = 0.02
"""What ends sooner is not attended to: a task beside it costs more than most requests."""


class Exchange:
    """One request as the SDK's methods see it; what they tell the client goes into its answer."""

    can_send_request = False

    def __init__(self, message: "JSONRPCRequest", request: Request, answer: Answer) -> None:
        from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
        from mcp.shared.message import ServerMessageMetadata
        from mcp.shared.transport_context import TransportContext

        self.request_id = message.id
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=False, headers=request.headers
        )
        self._token = progress_token_from_params(message.params)
        self._answer = answer

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Never set: in this protocol, who leaves cancels."""
        return anyio.Event()

    async def send_raw_request(self, method: str, _params: object, _options: object = None) -> Any:
        """Refuse: in this protocol a server asks by a result."""
        from mcp.shared.exceptions import NoBackChannelError

        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, _options: object = None) -> None:
        """Tell the client something before the answer."""
        from mcp_types import JSONRPCNotification

        given = {} if params is None else {"params": dict(params)}
        await self._answer.tell(in_json(JSONRPCNotification(jsonrpc="2.0", method=method, **given)))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell how far it is, if the client asked to be told."""
        if self._token is None:
            return
        told = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        known = {key: value for key, value in told.items() if value is not None}
        await self.notify("notifications/progress", known)


class Exchanges:
    """An ASGI application: the requests of one token."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Attend to requests until the block ends."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield self
            finally:
                self._group = None
                group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose body is in one piece."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import JSONRPCRequest

        if scope["method"] != "POST":
            raise Refused(405, "This protocol knows POST only.", allow="POST")
        request, answer = Request.of(scope), Answer(send)
        check_post(request.headers)
        try:
            message = _message((await receive()).get("body", b""), request)
        except MCPError as problem:
            await answer.end(*_refusal(None, problem))
            return
        if not isinstance(message, JSONRPCRequest):
            # Nothing here could act on a notification: who leaves has cancelled.
            await say_json(send, 202, b"")
            return
        with self._attended(receive, answer) as serving:
            said = await self._served(message, request, answer)
        if not serving.cancelled_caught:
            await answer.end(*said)

    async def _served(
        self, message: "JSONRPCRequest", request: Request, answer: Answer
    ) -> tuple[bytes, int]:
        """The answer of the SDK, and its status."""
        from mcp.server.connection import Connection
        from mcp.server.runner import serve_one
        from mcp_types import JSONRPCResponse

        exchange = Exchange(message, request, answer)
        try:
            route = _route(message, request)
            result = await serve_one(
                cast("Any", self._registry),
                cast("Any", exchange),
                message.method,
                message.params,
                connection=Connection.from_envelope(
                    route.protocol_version, route.client_info, route.client_capabilities
                ),
                lifespan_state={},
            )
        except Exception as problem:  # noqa: BLE001 — one of three, listed in tests/shape: the SDK words a bug, too
            return _refusal(message.id, problem)
        return in_json(JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)), 200

    @contextmanager
    def _attended(self, receive: Receive, answer: Answer) -> Iterator[anyio.CancelScope]:
        """See to it that a long request is neither silent nor outlives its client."""
        attending: anyio.CancelScope | None = None

        def begin() -> None:
            nonlocal attending
            if self._group is not None:
                attending = anyio.CancelScope()
                self._group.start_soon(_attend, receive, answer, serving, attending)

        with anyio.CancelScope() as serving:
            soon = asyncio.get_running_loop().call_later(ATTENDED_SECONDS, begin)
            try:
                yield serving
            finally:
                soon.cancel()
                if attending is not None:
                    attending.cancel()


async def _attend(
    receive: Receive, answer: Answer, serving: anyio.CancelScope, attending: anyio.CancelScope
) -> None:
    with attending:
        while True:
            with anyio.move_on_after(answering.PING_SECONDS) as silence:
                await until_gone(receive)
            if not silence.cancelled_caught:
                serving.cancel()
                return
            await answer.ping()


def _message(body: bytes, request: Request) -> "JSONRPCRequest | JSONRPCNotification":
    """What was posted; a notification is what has no id."""
    from mcp.shared.exceptions import MCPError
    from mcp.shared.inbound import unsupported_protocol_version_rejection
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, JSONRPCRequest
    from pydantic import ValidationError

    try:
        # Strictly: half a character in a message could not be said back.
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
    if (rejection := unsupported_protocol_version_rejection(request.headers.get(VERSION, ""))) is not None:
        raise _rejected(rejection)
    return told


def _route(message: "JSONRPCRequest", request: Request) -> "InboundModernRoute":
    """Who asks, and in which version, where headers and message agree."""
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
        raise _rejected(route)
    return route


def _rejected(rejection: "InboundLadderRejection") -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(rejection.code, rejection.message, rejection.data)


def _refusal(name: str | int | None, problem: Exception) -> tuple[bytes, int]:
    """What is said of a problem, and its status."""
    from mcp.server.runner import modern_error_data
    from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
    from mcp_types import JSONRPCError

    error = modern_error_data(problem)
    message = JSONRPCError(jsonrpc="2.0", id=name, error=error)
    return in_json(message), ERROR_CODE_HTTP_STATUS.get(error.code, 200)
