"""ASGI: requests, refusals and answers; plain JSON.

And a stream of events only where something comes before it. ADR 73.
"""

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

JSON_TYPE = "application/json"


class HttpRefusal(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        self.headers = encode_headers(headers)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What methods can know of the request that brought a message."""

    lines: tuple[tuple[str, str], ...]
    """Its headers as they came, names in lower case."""
    headers: Mapping[str, str]
    """Each once: of two that are alike, the first."""

    @classmethod
    def of(cls, scope: AsgiScope) -> Self:
        """The request that a scope tells of."""
        lines = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        return cls(lines, dict(reversed(lines)))


def encode_headers(headers: Mapping[str, str]) -> AsgiHeaders:
    """Headers as ASGI has them."""
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


async def send_json(send: AsgiSend, status: int, body: bytes, headers: AsgiHeaders = ()) -> None:
    """A whole answer in JSON."""
    await send_response(send, status, JSON_TYPE, body, headers)


async def send_response(
    send: AsgiSend, status: int, kind: str, body: bytes, headers: AsgiHeaders = ()
) -> None:
    """A whole answer, never to be kept by anyone on the way."""
    own = (
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send_body(send, body, more=False)


async def start_event_stream(send: AsgiSend, headers: AsgiHeaders = ()) -> None:
    """Begin a stream of events."""
    own = (
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    )
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *headers]})


async def send_body(send: AsgiSend, body: bytes, *, more: bool) -> None:
    """A piece of an answer."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def until_disconnect(receive: AsgiReceive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


EVENT_STREAM_TYPE = "text/event-stream"
PING_EVENT = b": ping\r\n\r\n"
PING_SECONDS = 15.0
"""How long a connection stays silent: proxies close those that say nothing for long."""


class HttpAnswer:
    """What is said to one request."""

    def __init__(self, send: AsgiSend, headers: AsgiHeaders = ()) -> None:
        self._send, self._headers = send, headers
        self._streams = False
        # A ping and a message may come at the same time, but a stream begins once.
        self._turn = anyio.Lock()

    async def tell(self, message: bytes) -> None:
        """Say something before the answer."""
        await self._say(_event_bytes(message))

    async def ping(self) -> None:
        """Say that we are still at it."""
        await self._say(PING_EVENT)

    async def end(self, message: bytes, status: int = 200) -> None:
        """Say the answer itself; within a stream the status is told already."""
        if self._streams:
            await send_body(self._send, _event_bytes(message), more=False)
        else:
            await send_json(self._send, status, message, self._headers)

    async def open(self) -> None:
        """Begin a stream though there is nothing to say yet."""
        async with self._turn:
            if not self._streams:
                await start_event_stream(self._send, self._headers)
                self._streams = True

    async def close(self) -> None:
        """End a stream to which no answer belongs, or none comes."""
        await send_body(self._send, b"", more=False)

    async def _say(self, event: bytes) -> None:
        await self.open()
        await send_body(self._send, event, more=True)


def check_post(headers: Mapping[str, str]) -> None:
    """Refuse a message that is no JSON, and who could not read each kind of answer."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        raise HttpRefusal(400, "The body must be application/json.")
    kinds = {kind.partition(";")[0].strip().lower() for kind in headers.get("accept", "").split(",")}
    if "*/*" not in kinds and not (
        kinds & {JSON_TYPE, "application/*"} and kinds & {EVENT_STREAM_TYPE, "text/*"}
    ):
        raise HttpRefusal(406, "Accept both application/json and text/event-stream.")


def message_json(message: BaseModel) -> bytes:
    """A message of the SDK as it travels."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _event_bytes(message: bytes) -> bytes:
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"
