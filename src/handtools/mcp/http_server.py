"""The MCP server over HTTP: bearer tokens, access checks, size and time limits, graceful shutdown."""

import gc
import hmac
import json
import logging
import signal
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast, get_args

import anyio
from anyio.abc import TaskGroup

from handtools.core.errors import UsageError
from handtools.host.workspace_folders import combined_workspace, state_folder
from handtools.mcp.asgi_responses import (
    AsgiApp,
    AsgiMessage,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    HttpRefusal,
    send_json,
    send_response,
)
from handtools.mcp.http_access import (
    LOOPBACK_HOSTS,
    REQUEST_BODY_BYTES,
    REQUEST_BODY_SECONDS,
    REQUEST_HEADER_SECONDS,
    check_host_and_origin,
    limited_server,
    read_body,
    single_headers,
    token_digest,
)
from handtools.mcp.idempotency import ReplicaCallLocks
from handtools.mcp.served_toolbox import ServedToolbox, open_preset
from handtools.mcp.server import MethodRegistry, build_mcp_server
from handtools.mcp.streamable_http import SessionHttp
from handtools.mcp.tool_calls import ApprovalsAnsweredBy, CallMetrics, ConnectionTools
from handtools.text.prometheus import PROMETHEUS_CONTENT_TYPE
from handtools.toolbox import Toolbox

MIN_TOKEN_CHARS = 24
"""Minimum length of a bearer token. Shorter ones could be guessed and are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGrant:
    """The workspace, preset and policy that one bearer token gives access to.

    It has only the token's SHA-256 digest, so that the token itself does not appear in memory or logs.
    """

    name: str
    sha256: str
    workspace: Path
    preset: str | None = "coding"
    policy: Path | None = None
    """Path of a policy file; None means the user's policy."""
    unattended: str | None = None
    asks: ApprovalsAnsweredBy = "client"
    block: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class TokenGrants:
    """All bearer tokens of one HTTP server. Names and digests must be unique."""

    def __init__(self, grants: list[TokenGrant]) -> None:
        if not grants:
            raise UsageError("A server needs at least one token.")
        for word in ("name", "sha256"):
            if len({getattr(grant, word) for grant in grants}) != len(grants):
                raise UsageError(f"Two tokens have the same {word}.")
        self.all = tuple(grants)

    def find(self, token: str) -> TokenGrant | None:
        """The grant of a bearer token, or None. Compares in constant time to prevent timing attacks."""
        given = token_digest(token)
        found = [grant for grant in self.all if hmac.compare_digest(grant.sha256, given)]
        return found[0] if found else None


def read_grants(path: Path) -> TokenGrants:
    """Read the tokens of an HTTP server from a TOML file of `[[token]]` tables.

    Each table has a name, a sha256 or token_file, and a workspace. Raises `UsageError` if anything is invalid.
    """
    try:
        written = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise UsageError(f"Can't read {path}: {problem}.") from problem
    tables = written.get("token")
    if not isinstance(tables, list):
        raise UsageError(f"{path} has no [[token]] table.")
    return TokenGrants([_grant_from_table(table, path.parent) for table in tables])


def _grant_from_table(table: dict[str, Any], beside: Path) -> TokenGrant:
    known = {field.name for field in fields(TokenGrant)} | {"token_file"}
    name = str(table.get("name", ""))
    where = f"The token {name!r}"
    if unknown := sorted(set(table) - known):
        told = f"Known keys: {', '.join(sorted(known))}."
        raise UsageError(f"{where} has unknown keys: {', '.join(unknown)}. {told}")
    if not name or "workspace" not in table:
        raise UsageError("Every token needs a name and a workspace.")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    if token_file := values.pop("token_file", None):
        values["sha256"] = token_digest(read_token(beside / str(token_file)))
    if len(str(values.get("sha256", ""))) != 64:
        raise UsageError(f"{where} needs a sha256 of 64 hexadecimal digits, or a token_file.")
    if values.get("asks", "client") not in get_args(ApprovalsAnsweredBy):
        raise UsageError(f"{where}: `asks` must be one of {', '.join(get_args(ApprovalsAnsweredBy))}.")
    for named in ("workspace", "policy"):
        if named in values:
            given = values[named]
            paths = [beside / str(each) for each in (given if isinstance(given, tuple) else (given,))]
            values[named] = combined_workspace(paths) if named == "workspace" else paths[0]
    values["sha256"] = str(values["sha256"]).lower()
    return TokenGrant(**values)


def read_token(path: Path) -> str:
    """Read a bearer token from a text file; raises `UsageError` if it is unreadable or too short."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"Can't read {path}: {problem}.") from problem
    return require_strong_token(token, f"The token in {path}")


def require_strong_token(token: str, where: str) -> str:
    """Return the token, or raise a `UsageError` that starts with `where` if it is too short."""
    if len(token) < MIN_TOKEN_CHARS:
        raise UsageError(f"{where} is too short. Use at least {MIN_TOKEN_CHARS} random characters.")
    return token


MAX_HTTP_REQUEST_SECONDS = 3600.0
"""Maximum duration of one HTTP request in seconds. Event streams end after it, too; clients reopen them."""


@dataclass(kw_only=True)
class AccessControl:
    """ASGI application that checks host, origin, token and size, then forwards to the token's MCP server.

    It also serves /health and /metrics.
    """

    grants: TokenGrants
    servers: Mapping[str, AsgiApp]
    """The ASGI application of each grant, by the grant's name."""
    hosts: frozenset[str]
    """Accepted values of the Host header. A value without a port matches any port."""
    origins: frozenset[str] = frozenset()
    """Accepted values of the Origin header in addition to the server's own."""
    metrics: CallMetrics = field(default_factory=CallMetrics)
    body_seconds: float = REQUEST_BODY_SECONDS
    total_seconds: float = MAX_HTTP_REQUEST_SECONDS
    draining: bool = False
    answering: int = 0
    """Number of POST requests in progress; open event streams do not count."""

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle one ASGI request. Refusals are sent as JSON errors and counted."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except HttpRefusal as refusal:
            self.metrics.refused(str(refusal.status))
            await send_json(
                send, refusal.status, json.dumps({"error": refusal.reason}).encode(), refusal.headers
            )

    async def _answer(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        path, headers = scope["path"], single_headers(scope)
        if path == "/health" and scope["method"] == "GET":
            status = "draining" if self.draining else "ok"
            await send_json(send, 503 if self.draining else 200, json.dumps({"status": status}).encode())
            return
        check_host_and_origin(headers, self.hosts, self.origins)
        grant = self._find_grant(headers)
        if grant is None:
            raise HttpRefusal(
                401, "Send a bearer token that this server knows.", **{"www-authenticate": "Bearer"}
            )
        if path == "/metrics" and scope["method"] == "GET":
            await send_response(send, 200, PROMETHEUS_CONTENT_TYPE, self.metrics.text().encode())
        elif path == "/mcp":
            await self._forward(grant, scope, receive, send, headers)
        else:
            raise HttpRefusal(404, "Not found. The endpoints are /mcp, /health and /metrics.")

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries a valid bearer token."""
        return self._find_grant(headers) is not None

    async def _forward(
        self,
        grant: TokenGrant,
        scope: AsgiScope,
        receive: AsgiReceive,
        send: AsgiSend,
        headers: Mapping[str, str],
    ) -> None:
        if self.draining:
            raise HttpRefusal(503, "This server is shutting down.", **{"retry-after": "5"})
        if scope["method"] not in {"POST", "GET", "DELETE"}:
            raise HttpRefusal(405, "Use POST, GET or DELETE.", allow="POST, GET, DELETE")
        body = await read_body(receive, headers, self.body_seconds)
        counted = scope["method"] == "POST"
        self.answering += counted
        try:
            with anyio.move_on_after(self.total_seconds):
                await self.servers[grant.name](scope, _replay_body(body, receive), send)
        finally:
            self.answering -= counted

    def _find_grant(self, headers: Mapping[str, str]) -> TokenGrant | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return self.grants.find(token.strip()) if kind.lower() == "bearer" else None


def _replay_body(body: bytes, receive: AsgiReceive) -> AsgiReceive:
    """An ASGI `receive` that first returns the request body, which was already read."""
    told = False

    async def next_message() -> AsgiMessage:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


VERSION_HEADER_NAME = b"mcp-protocol-version"

logger = logging.getLogger("handtools.mcp")


@dataclass(frozen=True, kw_only=True)
class HttpConfig:
    """HTTP server settings: address, accepted host names and origins, timeouts, stateless mode."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    grace: float = 30.0
    """Seconds that running calls have to finish when the server shuts down."""
    stateless: bool = False
    """Whether to keep no MCP sessions, so that any replica can answer any request."""
    header_seconds: float = REQUEST_HEADER_SECONDS
    body_seconds: float = 30.0
    total_seconds: float = 3600.0

    @property
    def hosts(self) -> frozenset[str]:
        """The accepted values of the Host header.

        Raises `UsageError` if none are configured although the server listens on a non-loopback address.
        """
        if self.host in {"127.0.0.1", "localhost", "::1"}:
            return LOOPBACK_HOSTS.union(self.names)
        if not self.names:
            raise UsageError(
                f"Listening on {self.host} needs the host names that clients use: pass --allow-host NAME."
            )
        return frozenset(name.lower() for name in self.names)


@dataclass
class McpHttpApp:
    """The MCP servers of all tokens, one per grant, behind one access check."""

    grants: TokenGrants
    http_config: HttpConfig
    toolboxes: Mapping[str, ServedToolbox] = field(default_factory=dict)
    """Toolboxes by grant name, served instead of the ones that the grants describe.

    The caller must enter a remote toolbox before it is served, and exit it afterwards.
    """
    metrics: CallMetrics = field(default_factory=CallMetrics)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AccessControl]:
        """Open the workspaces of all tokens and yield the ASGI application.

        Calls still running when the block ends are cancelled and recorded as cancelled.
        """
        servers: dict[str, AsgiApp] = {}
        async with AsyncExitStack() as stack:
            for grant in self.grants.all:
                servers[grant.name] = await self._open_grant_app(grant, stack)
            yield AccessControl(
                grants=self.grants,
                servers=servers,
                hosts=self.http_config.hosts,
                origins=frozenset(self.http_config.origins),
                metrics=self.metrics,
                body_seconds=self.http_config.body_seconds,
                total_seconds=self.http_config.total_seconds,
            )

    async def _open_grant_app(self, grant: TokenGrant, stack: AsyncExitStack) -> AsgiApp:
        connection_tools = ConnectionTools(
            self.toolboxes.get(grant.name) or _grant_toolbox(grant),
            agent=grant.name,
            session=f"mcp-{grant.name}",
            asks=grant.asks,
            locks=ReplicaCallLocks(state_folder(grant.workspace) / "claims")
            if self.http_config.stateless
            else None,
            metrics=self.metrics,
        )
        await stack.enter_async_context(connection_tools.open())
        return await _protocol_router(
            build_mcp_server(connection_tools), stack, stateless=self.http_config.stateless
        )


async def _protocol_router(registry: MethodRegistry, stack: AsyncExitStack, *, stateless: bool) -> AsgiApp:
    """The ASGI application of one token: with or without sessions, depending on a request's protocol version."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    from handtools.mcp.streamable_http import StatelessHttp

    current = await stack.enter_async_context(StatelessHttp(registry).run())
    older = await stack.enter_async_context(
        _sdk_without_sessions(registry) if stateless else SessionHttp(registry).run()
    )
    handshakes = {version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS}

    async def answer(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        version = next((value for name, value in scope["headers"] if name == VERSION_HEADER_NAME), None)
        chosen = older if version is None or version in handshakes else current
        await chosen(scope, receive, send)

    return answer


@asynccontextmanager
async def _sdk_without_sessions(registry: MethodRegistry) -> AsyncIterator[AsgiApp]:
    """The SDK's ASGI application for older protocol versions, in stateless mode."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    single = StreamableHTTPSessionManager(
        cast("Any", registry), stateless=True, max_request_body_size=REQUEST_BODY_BYTES
    )
    async with single.run():
        yield cast("AsgiApp", single.handle_request)


def serve_http(grants: TokenGrants, http_config: HttpConfig) -> None:
    """Run the HTTP server until SIGTERM or SIGINT.

    The first signal lets running calls finish; a second one stops immediately.
    """
    anyio.run(run_http_server, McpHttpApp(grants, http_config))


async def run_http_server(app: McpHttpApp) -> None:
    """Run uvicorn with the given MCP servers until a signal stops it."""
    async with app.open() as door:
        # Everything loaded so far stays loaded: freeze it, so that the GC doesn't scan it again and again.
        gc.collect()
        gc.freeze()
        place = app.http_config
        web = limited_server(
            door, place.host, place.port, knows=door.knows, header_seconds=place.header_seconds
        )
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_when_told, web, door, app, group)
            await web.serve()
            group.cancel_scope.cancel()


async def _stop_when_told(web: Any, access: AccessControl, app: McpHttpApp, group: TaskGroup) -> None:
    """On the first SIGTERM or SIGINT, refuse new calls and wait for running ones; on the second, stop."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if access.draining:
                web.should_exit = True
                return
            access.draining = True
            logger.warning("Stopping. Calls still running: %s.", app.metrics.running)
            group.start_soon(_wait_for_calls, web, access, app)


async def _wait_for_calls(web: Any, access: AccessControl, app: McpHttpApp) -> None:
    with anyio.move_on_after(app.http_config.grace):
        while app.metrics.running or access.answering:  # noqa: ASYNC110 - two counters, polled once at shutdown
            await anyio.sleep(0.05)
    web.should_exit = True


def _grant_toolbox(grant: TokenGrant) -> Toolbox:
    return open_preset(
        grant.workspace,
        preset=grant.preset,
        policy=grant.policy,
        unattended=grant.unattended,
        block=grant.block,
        excluded=grant.excluded,
    )
