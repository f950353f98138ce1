"""A registry: what the SDK's runner and session manager read from a server, and nothing else.

The SDK's own `Server` would do, but importing it brings the web framework, OAuth and the whole client: half of the
time until the first answer on stdio.
"""

import copy
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from pydantic import BaseModel

from handtools import __version__
from handtools.mcp.introduction import IDENTITY, INSTRUCTIONS, NAME, OFFERED
from handtools.mcp.lean import load_lean

Answer = Mapping[str, Any] | BaseModel | None
Respond = Callable[[Any, Any], Awaitable[Answer]]
"""Takes the SDK's request context and the validated parameters."""


class Method(NamedTuple):
    """What answers a method, and the model its parameters are validated against."""

    params_type: type[BaseModel]
    handler: Respond


class Registry:
    """Methods by name. The runner asks it what to call; the session manager opens and closes it."""

    def __init__(self) -> None:
        load_lean()
        self.requests: dict[str, Method] = {}
        self.notifications: dict[str, Method] = {}
        self.cache_hints: dict[str, Any] = {}
        self.extensions: dict[str, dict[str, Any]] = {}
        self.middleware: list[Any] = _tracing()
        self.get_tool_input_schema: Callable[[str], Mapping[str, Any] | None] = lambda _: None
        self._add_own()

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[dict[str, Any]]:
        """Nothing of ours is tied to the SDK's lifespan."""
        yield {}

    def request(self, method: str) -> Method | None:
        """What answers a request."""
        return self.requests.get(method)

    def notification(self, method: str) -> Method | None:
        """What hears a notification."""
        return self.notifications.get(method)

    @property
    def identity(self) -> dict[str, Any]:
        """Who we are, as every answer of the current protocol says."""
        return copy.copy(IDENTITY)

    # The same, as the SDK calls them.
    get_request_handler = request
    get_notification_handler = notification
    server_info_stamp = identity

    def create_initialization_options(self) -> Any:
        """What the handshake of older protocols answers."""
        from mcp.server.models import InitializationOptions

        return InitializationOptions(
            server_name=NAME,
            server_version=__version__,
            title=NAME,
            capabilities=self._capabilities(),
            instructions=INSTRUCTIONS,
        )

    def _add_own(self) -> None:
        from mcp_types import RequestParams

        self.requests["ping"] = Method(RequestParams, _pong)
        self.requests["server/discover"] = Method(RequestParams, self._discover)

    async def _discover(self, _ctx: Any, _params: Any) -> Answer:
        from mcp_types import DiscoverResult
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self._capabilities(),
            instructions=INSTRUCTIONS,
        )

    def _capabilities(self) -> Any:
        from mcp_types import ServerCapabilities

        offered: dict[str, Any] = {}
        for part in OFFERED:
            if f"{part}/list" in self.requests:
                offered[part] = {}
        return ServerCapabilities(**offered, extensions=self.extensions or None)


async def _pong(_ctx: Any, _params: Any) -> Answer:
    return None


def _tracing() -> list[Any]:
    """The SDK's spans, where the process records spans at all."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return []
    from mcp.server._otel import OpenTelemetryMiddleware

    return [OpenTelemetryMiddleware()]
