"""Checks and limits for every HTTP request to our servers: host, origin, tokens, sizes and timeouts."""

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio

from handtools.mcp.asgi_responses import AsgiApp, AsgiReceive, AsgiScope, HttpRefusal

if TYPE_CHECKING:
    import uvicorn

REQUEST_BODY_BYTES = 8 << 20
REQUEST_BODY_SECONDS = 30.0
_CONTENT_LENGTH = re.compile(r"[0-9]{1,15}")
UNREPEATED_HEADERS = {"host", "origin", "authorization", "cookie", "content-length"}
"""Headers that access control depends on. Duplicates are refused because they are ambiguous."""
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
REQUEST_HEADER_BYTES = 16 << 10
REQUEST_HEADER_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 30.0
"""Seconds that an idle connection stays open between requests."""
MAX_HTTP_CONNECTIONS = 512
MAX_UNAUTHENTICATED_CONNECTIONS = 128
"""Maximum number of open HTTP connections that have not sent a valid token yet."""
HTTP_SHUTDOWN_SECONDS = 2


def new_token() -> str:
    """Generate a random bearer token."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """The SHA-256 digest of a token, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def single_headers(scope: AsgiScope) -> dict[str, str]:
    """The request headers as a dict; raises `HttpRefusal` if a security-relevant header is duplicated."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in UNREPEATED_HEADERS:
            raise HttpRefusal(400, f"The header {name} appears more than once.")
        found[name] = value.decode("latin-1")
    return found


def check_host_and_origin(
    headers: Mapping[str, str], hosts: Collection[str], origins: Collection[str] = ()
) -> None:
    """Refuse a foreign Host (421, DNS rebinding) or Origin (403, other web pages).

    An entry of `hosts` without a port matches any port. `origins` are accepted besides the server's own origin.
    """
    host = headers.get("host", "").lower()
    if host not in hosts and _without_port(host) not in hosts:
        raise HttpRefusal(421, "This Host is not allowed.")
    origin = headers.get("origin")
    if origin is not None and origin not in origins and _host_of_origin(origin) != host:
        raise HttpRefusal(403, "This Origin is not allowed.")


async def read_body(receive: AsgiReceive, headers: Mapping[str, str], seconds: float) -> bytes:
    """Read a request's body; raises `HttpRefusal` if it is too large or takes longer than `seconds`."""
    declared = headers.get("content-length", "0")
    if not _CONTENT_LENGTH.fullmatch(declared) or int(declared) > REQUEST_BODY_BYTES:
        raise HttpRefusal(413, f"The limit is {REQUEST_BODY_BYTES:,} bytes.", connection="close")
    whole = bytearray()
    with anyio.move_on_after(seconds) as scope:
        more = True
        while more:
            message = await receive()
            whole += message.get("body", b"")
            if len(whole) > REQUEST_BODY_BYTES:
                raise HttpRefusal(413, f"The limit is {REQUEST_BODY_BYTES:,} bytes.", connection="close")
            more = message["type"] == "http.request" and message.get("more_body", False)
    if scope.cancelled_caught:
        raise HttpRefusal(408, "Timed out while reading the body.", connection="close")
    return bytes(whole)


def _host_of_origin(origin: str) -> str | None:
    """The host and port of an Origin header; None if it can't be parsed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def header_timeout_protocol(
    seconds: float, *, strangers: int, knows: Callable[[Mapping[str, str]], bool]
) -> type[Any]:
    """Make a subclass of uvicorn's HTTP protocol that closes connections whose headers take too long.

    A connection is unauthenticated until it has sent a request whose headers `knows` accepts. If there are more
    than `strangers` of these, the oldest one is closed, but never an authenticated one.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    unknown: dict[Any, None] = {}

    class HastyProtocol(H11Protocol):
        """HTTP connection that is closed when the headers of a request do not arrive in time."""

        _late: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            unknown[self] = None
            if len(unknown) > strangers:
                oldest = next(iter(unknown))
                del unknown[oldest]
                oldest.transport.abort()

        def hear(self, data: bytes) -> None:
            super().data_received(data)
            if self in unknown and self.scope is not None and _is_known(dict(self.scope), knows):
                del unknown[self]
            waiting = self.conn.their_state is h11.IDLE
            if waiting and self._late is None:
                self._wait()
            elif not waiting:
                self._stop_waiting()

        data_received = hear

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            unknown.pop(self, None)
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return HastyProtocol


def _is_known(scope: AsgiScope, knows: Callable[[Mapping[str, str]], bool]) -> bool:
    try:
        return knows(single_headers(scope))
    except HttpRefusal:
        return False


def limited_server(
    app: AsgiApp,
    host: str,
    port: int,
    *,
    knows: Callable[[Mapping[str, str]], bool],
    header_seconds: float,
) -> "uvicorn.Server":
    """Make a uvicorn server with our limits and no signal handlers; for `knows` see `header_timeout_protocol`."""
    import uvicorn

    config = uvicorn.Config(
        cast("Any", app),
        host=host,
        port=port,
        http=header_timeout_protocol(
            header_seconds, strangers=MAX_UNAUTHENTICATED_CONNECTIONS, knows=knows
        ),
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=REQUEST_HEADER_BYTES,
        limit_concurrency=MAX_HTTP_CONNECTIONS,
        timeout_keep_alive=int(KEEP_ALIVE_SECONDS),
        timeout_graceful_shutdown=HTTP_SHUTDOWN_SECONDS,
    )
    web = uvicorn.Server(config)
    web.capture_signals = _no_signals  # type: ignore[method-assign]
    return web


@contextmanager
def _no_signals() -> Iterator[None]:
    yield
