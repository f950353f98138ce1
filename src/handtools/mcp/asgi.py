"""ASGI: the words of a web server, for what answers behind it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Self

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

JSON = "application/json"


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        self.headers = written(headers)


@dataclass(frozen=True, slots=True)
class Request:
    """What methods can know of the request that brought a message."""

    lines: tuple[tuple[str, str], ...]
    """Its headers as they came, names in lower case."""
    headers: Mapping[str, str]
    """Each once: of two that are alike, the first."""

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """The request that a scope tells of."""
        lines = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        return cls(lines, dict(reversed(lines)))


def written(headers: Mapping[str, str]) -> Headers:
    """Headers as ASGI has them."""
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


async def say_json(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """A whole answer in JSON."""
    await say_whole(send, status, JSON, body, headers)


async def say_whole(send: Send, status: int, kind: str, body: bytes, headers: Headers = ()) -> None:
    """A whole answer, never to be kept by anyone on the way."""
    own = (
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await say(send, body, more=False)


async def start_events(send: Send, headers: Headers = ()) -> None:
    """Begin a stream of events."""
    own = (
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    )
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *headers]})


async def say(send: Send, body: bytes, *, more: bool) -> None:
    """A piece of an answer."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def until_gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
