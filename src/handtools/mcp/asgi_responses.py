"""HTTP over ASGI for the MCP server: read requests, refuse them, and send JSON or server-sent events."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Self

import anyio
from pydantic import BaseModel

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]
AsgiHeaders = Iterable[tuple[bytes, bytes]]

JSON_CONTENT_TYPE = "application/json"


class HttpRefusal(Exception):
    """Raised to end an HTTP request with an error status, a reason for the client and extra headers."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        self.headers = encode_headers(headers)


@dataclass(frozen=True, slots=True)
class HttpRequestHeaders:
    """The headers of an HTTP request, in the form that MCP method handlers get them."""

    lines: tuple[tuple[str, str], ...]
    """All request headers in order, including duplicates, with lower-case names."""
    headers: Mapping[str, str]
    """Request headers by lower-case name. If a header is repeated, the first one counts."""

    @classmethod
    def of(cls, scope: AsgiScope) -> Self:
        """Read the request headers from an ASGI scope."""
        lines = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        return cls(lines, dict(reversed(lines)))


def encode_headers(headers: Mapping[str, str]) -> AsgiHeaders:
    """Encode header names and values as ASGI's pairs of bytes."""
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


async def send_json(send: AsgiSend, status: int, body: bytes, headers: AsgiHeaders = ()) -> None:
    """Send a complete HTTP response over ASGI whose `body` is already encoded JSON."""
    await send_response(send, status, JSON_CONTENT_TYPE, body, headers)


async def send_response(
    send: AsgiSend, status: int, kind: str, body: bytes, headers: AsgiHeaders = ()
) -> None:
    """Send a complete HTTP response over ASGI (status, headers, body) that must not be cached."""
    own = (
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send_body_chunk(send, body, more=False)


async def start_event_stream(send: AsgiSend, headers: AsgiHeaders = ()) -> None:
    """Send the status and headers of a server-sent event stream. Send the events with `send_body_chunk`."""
    own = (
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    )
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *headers]})


async def send_body_chunk(send: AsgiSend, body: bytes, *, more: bool) -> None:
    """Send one chunk of an HTTP response body over ASGI. `more=False` ends the response."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def wait_for_disconnect(receive: AsgiReceive) -> None:
    """Wait until the HTTP client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


EVENT_STREAM_CONTENT_TYPE = "text/event-stream"
PING_EVENT = b": ping\r\n\r\n"
PING_SECONDS = 15.0
"""Seconds without output before a ping is sent, because proxies close idle connections."""


class McpHttpResponse:
    """The HTTP response to one MCP request.

    It is plain JSON, or an event stream if any message is sent before the result.
    """

    def __init__(self, send: AsgiSend, headers: AsgiHeaders = ()) -> None:
        self._send, self._headers = send, headers
        self._streams = False
        # A ping and a message can be sent concurrently; the stream must start only once.
        self._turn = anyio.Lock()

    async def tell(self, message: bytes) -> None:
        """Send a JSON-RPC message, such as a progress notification, as an event before the result."""
        await self._send_event(_event_bytes(message))

    async def ping(self) -> None:
        """Send an empty event that keeps the connection open."""
        await self._send_event(PING_EVENT)

    async def end(self, message: bytes, status: int = 200) -> None:
        """Send the result and end the response. `status` is ignored if an event stream has started already."""
        if self._streams:
            await send_body_chunk(self._send, _event_bytes(message), more=False)
        else:
            await send_json(self._send, status, message, self._headers)

    async def open(self) -> None:
        """Start the event stream before there is an event to send, unless it has already started."""
        async with self._turn:
            if not self._streams:
                await start_event_stream(self._send, self._headers)
                self._streams = True

    async def close(self) -> None:
        """End the event stream without a result."""
        await send_body_chunk(self._send, b"", more=False)

    async def _send_event(self, event: bytes) -> None:
        await self.open()
        await send_body_chunk(self._send, event, more=True)


def check_mcp_post_headers(headers: Mapping[str, str]) -> None:
    """Check the Content-Type and Accept headers of a POST request.

    Raises `HttpRefusal` unless the body is JSON and the client accepts both JSON and event streams.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_CONTENT_TYPE:
        raise HttpRefusal(400, "The Content-Type must be application/json.")
    kinds = {kind.partition(";")[0].strip().lower() for kind in headers.get("accept", "").split(",")}
    if "*/*" not in kinds and not (
        kinds & {JSON_CONTENT_TYPE, "application/*"} and kinds & {EVENT_STREAM_CONTENT_TYPE, "text/*"}
    ):
        raise HttpRefusal(406, "The Accept header must include application/json and text/event-stream.")


def message_json(message: BaseModel) -> bytes:
    """Serialize an MCP SDK JSON-RPC message to JSON bytes."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _event_bytes(message: bytes) -> bytes:
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"
