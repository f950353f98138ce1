"""HTTP: many clients, many workspaces, one process."""

import gc
import logging
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from handtools.core.errors import UsageError
from handtools.host.state import state_folder
from handtools.mcp.asgi import App, Receive, Scope, Send
from handtools.mcp.claims import Claims
from handtools.mcp.desk import Desk
from handtools.mcp.door import BODY_BYTES, LOOPBACK, Door
from handtools.mcp.grants import Grant, Grants
from handtools.mcp.metrics import Metrics
from handtools.mcp.presets import opened
from handtools.mcp.registry import Registry
from handtools.mcp.serving import server
from handtools.mcp.sessions import Sessions
from handtools.toolbox import Toolbox

HEADER_BYTES = 16 << 10
HEADER_SECONDS = 10.0
IDLE_SECONDS = 30.0
"""How long a connection may stay open between requests."""
CONNECTIONS = 512
STRANGERS = 128
"""How many of them may be open without a right token."""
CLOSE_SECONDS = 2
VERSION = b"mcp-protocol-version"

log = logging.getLogger("handtools.mcp")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a server listens, and by which names it may be called."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    grace: float = 30.0
    """Seconds that running calls get to end when the server is told to stop."""
    stateless: bool = False
    """Keep no sessions, so that any replica can answer any request."""
    header_seconds: float = HEADER_SECONDS
    body_seconds: float = 30.0
    total_seconds: float = 3600.0

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host that are ours."""
        if self.host in {"127.0.0.1", "localhost", "::1"}:
            return LOOPBACK.union(self.names)
        if not self.names:
            raise UsageError(
                f"On {self.host} the names by which this server is called must be said: --allow-host NAME."
            )
        return frozenset(name.lower() for name in self.names)


@dataclass
class Site:
    """The servers of all grants behind one door."""

    grants: Grants
    place: Place
    boxes: dict[str, Toolbox] = field(default_factory=dict)
    """Toolboxes to serve instead of those that the grants name."""
    metrics: Metrics = field(default_factory=Metrics)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Door]:
        """Open every workspace; calls that run when the block ends are cancelled, and recorded so."""
        servers: dict[str, App] = {}
        async with AsyncExitStack() as stack:
            for grant in self.grants.all:
                servers[grant.name] = await self._server(grant, stack)
            yield Door(
                grants=self.grants,
                servers=servers,
                hosts=self.place.hosts,
                origins=frozenset(self.place.origins),
                metrics=self.metrics,
                body_seconds=self.place.body_seconds,
                total_seconds=self.place.total_seconds,
            )

    async def _server(self, grant: Grant, stack: AsyncExitStack) -> App:
        desk = Desk(
            self.boxes.get(grant.name) or _box(grant),
            agent=grant.name,
            session=f"mcp-{grant.name}",
            asks=grant.asks,
            claims=Claims(state_folder(grant.workspace) / "claims") if self.place.stateless else None,
            metrics=self.metrics,
        )
        await stack.enter_async_context(desk.open())
        return await _answering(server(desk), stack, stateless=self.place.stateless)


async def _answering(registry: Registry, stack: AsyncExitStack, *, stateless: bool) -> App:
    """What answers a token's requests: exchanges in the current protocol, sessions in the older ones."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    from handtools.mcp.exchanges import Exchanges

    current = await stack.enter_async_context(Exchanges(registry).run())
    older = await stack.enter_async_context(
        _without_sessions(registry) if stateless else Sessions(registry).run()
    )
    handshakes = {version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        version = next((value for name, value in scope["headers"] if name == VERSION), None)
        chosen = older if version is None or version in handshakes else current
        await chosen(scope, receive, send)

    return answer


@asynccontextmanager
async def _without_sessions(registry: Registry) -> AsyncIterator[App]:
    """The older protocols as the SDK serves them where no session is kept."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    single = StreamableHTTPSessionManager(
        cast("Any", registry), stateless=True, max_request_body_size=BODY_BYTES
    )
    async with single.run():
        yield cast("App", single.handle_request)


def serve_http(grants: Grants, place: Place) -> None:
    """Serve until told to stop: SIGTERM and SIGINT let running calls end first, a second one does not."""
    anyio.run(run_site, Site(grants, place))


async def run_site(site: Site) -> None:
    """Listen, and answer until told to stop."""
    import uvicorn

    from handtools.mcp.patience import hasty

    async with site.open() as door:
        # All that is loaded by now stays: the collector need not walk it again with every hundredth request.
        gc.collect()
        gc.freeze()
        place = site.place
        config = uvicorn.Config(
            cast("Any", door),
            host=place.host,
            port=place.port,
            http=hasty(place.header_seconds, strangers=STRANGERS, knows=door.knows),
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=HEADER_BYTES,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=int(IDLE_SECONDS),
            timeout_graceful_shutdown=CLOSE_SECONDS,
        )
        web = uvicorn.Server(config)
        web.capture_signals = _no_signals  # type: ignore[method-assign]
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_when_told, web, door, site, group)
            await web.serve()
            group.cancel_scope.cancel()


async def _stop_when_told(web: Any, door: Door, site: Site, group: TaskGroup) -> None:
    """Take no more calls, let the running ones end, then close; what still runs is recorded as cancelled."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if door.draining:
                web.should_exit = True
                return
            door.draining = True
            log.warning("Stopping. Calls that still run: %s.", site.metrics.running)
            group.start_soon(_wait_for_calls, web, door, site)


async def _wait_for_calls(web: Any, door: Door, site: Site) -> None:
    with anyio.move_on_after(site.place.grace):
        while site.metrics.running or door.answering:  # noqa: ASYNC110 - two counts, once in a server's life
            await anyio.sleep(0.05)
    web.should_exit = True


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def _box(grant: Grant) -> Toolbox:
    return opened(
        grant.workspace,
        preset=grant.preset,
        policy=grant.policy,
        unattended=grant.unattended,
        block=grant.block,
        excluded=grant.excluded,
    )
