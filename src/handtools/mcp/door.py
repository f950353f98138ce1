"""The door: what every HTTP request passes before the SDK sees it. Whatever is refused costs little."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio

from handtools.mcp.asgi import App, Message, Receive, Refused, Scope, Send, say_json, say_whole
from handtools.mcp.grants import Grant, Grants
from handtools.mcp.metrics import Metrics

BODY_BYTES = 8 << 20
BODY_SECONDS = 30.0
TOTAL_SECONDS = 3600.0
"""Also for a stream that stays open: clients open it again."""
_LENGTH = re.compile(r"[0-9]{1,15}")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(kw_only=True)
class Door:
    """An ASGI application: checks, then hands on to the token's own server."""

    grants: Grants
    servers: Mapping[str, App]
    """What answers, by the name of the grant."""
    hosts: frozenset[str]
    """Values of Host that are ours, with their port or for any port."""
    origins: frozenset[str] = frozenset()
    """Origins of web pages that may call, beyond our own."""
    metrics: Metrics = field(default_factory=Metrics)
    body_seconds: float = BODY_SECONDS
    total_seconds: float = TOTAL_SECONDS
    draining: bool = False
    answering: int = 0
    """Requests that are being answered; streams that only listen do not count."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except Refused as refusal:
            self.metrics.refused[str(refusal.status)] += 1
            await say_json(
                send, refusal.status, json.dumps({"error": refusal.reason}).encode(), refusal.headers
            )

    def knows(self, scope: Scope) -> bool:
        """Whether a request comes with a right token."""
        try:
            return bool(self._grant(_headers(scope)))
        except Refused:
            return False

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, headers = scope["path"], _headers(scope)
        if path == "/health" and scope["method"] == "GET":
            status = "draining" if self.draining else "ok"
            await say_json(send, 503 if self.draining else 200, json.dumps({"status": status}).encode())
            return
        self._check_place(headers)
        grant = self._grant(headers)
        if path == "/metrics" and scope["method"] == "GET":
            await say_whole(send, 200, "text/plain; version=0.0.4", self.metrics.text().encode())
        elif path == "/mcp":
            await self._hand_on(grant, scope, receive, send, headers)
        else:
            raise Refused(404, "There is /mcp, /health and /metrics.")

    async def _hand_on(
        self, grant: Grant, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        if self.draining:
            raise Refused(503, "This server is shutting down.", **{"retry-after": "5"})
        if scope["method"] not in {"POST", "GET", "DELETE"}:
            raise Refused(405, "POST, GET or DELETE.", allow="POST, GET, DELETE")
        body = await self._body(receive, headers)
        counted = scope["method"] == "POST"
        self.answering += counted
        try:
            with anyio.move_on_after(self.total_seconds):
                await self.servers[grant.name](scope, _replayed(body, receive), send)
        finally:
            self.answering -= counted

    def _check_place(self, headers: Mapping[str, str]) -> None:
        """Refuse what a web page sends: by another origin, or by a name of its own that leads to us."""
        host = headers.get("host", "").lower()
        if not ({host, _without_port(host)} & self.hosts):
            raise Refused(421, "This Host is not served here.")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and _place_of(origin) != host:
            raise Refused(403, "This Origin may not call.")

    def _grant(self, headers: Mapping[str, str]) -> Grant:
        kind, _, token = headers.get("authorization", "").partition(" ")
        grant = self.grants.find(token.strip()) if kind.lower() == "bearer" else None
        if grant is None:
            raise Refused(401, "A bearer token is needed.", **{"www-authenticate": "Bearer"})
        return grant

    async def _body(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        declared = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(declared) or int(declared) > BODY_BYTES:
            raise Refused(413, f"At most {BODY_BYTES:,} bytes.", connection="close")
        whole = bytearray()
        with anyio.move_on_after(self.body_seconds) as scope:
            more = True
            while more:
                message = await receive()
                whole += message.get("body", b"")
                if len(whole) > BODY_BYTES:
                    raise Refused(413, f"At most {BODY_BYTES:,} bytes.", connection="close")
                more = message["type"] == "http.request" and message.get("more_body", False)
        if scope.cancelled_caught:
            raise Refused(408, "The body took too long.", connection="close")
        return bytes(whole)


def _headers(scope: Scope) -> dict[str, str]:
    """Each header once: what comes twice where once is meant is refused, and never chosen from."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in {"host", "origin", "authorization", "content-length"}:
            raise Refused(400, f"{name} is given twice.")
        found[name] = value.decode("latin-1")
    return found


def _place_of(origin: str) -> str | None:
    """The host and port of an origin; None when it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever comes after it."""
    told = False

    async def next_message() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
