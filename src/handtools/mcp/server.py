"""The MCP server's methods by name, for the SDK's runner, and lazy import of the SDK.

We avoid the SDK's `Server`: importing it loads the web framework, OAuth and the entire client, which takes
half of the time to the first response on stdio. Instead, the SDK's modules are imported one by one when
they are needed.
"""

import copy
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from handtools import __version__
from handtools.mcp.handshake import SERVER_CAPABILITIES, SERVER_INFO, SERVER_INSTRUCTIONS, SERVER_NAME
from handtools.mcp.tool_calls import ConnectionTools

if TYPE_CHECKING:
    from handtools.mcp.confinement_to_roots import ClientRootsEnforcer

LAZY_PACKAGES = ("mcp", "mcp.server", "mcp.client")
"""SDK packages whose slow `__init__` is skipped until a name in it is used."""


def import_sdk_lazily() -> None:
    """Skip the slow `__init__` of the MCP SDK's packages when one of their modules is imported.

    Call this before the first import of `mcp`. Names from the package itself, as in `from mcp import
    Client`, still work: using one runs the `__init__`.
    """
    for name in LAZY_PACKAGES:
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is None:
            return
        module = module_from_spec(spec)
        module.__class__ = _LazyPackage
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class _LazyPackage(ModuleType):
    """A package whose `__init__` runs only when a missing attribute is accessed."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or not isinstance(spec, ModuleSpec) or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


MethodResult = Mapping[str, Any] | BaseModel | None
MethodHandler = Callable[[Any, Any], Awaitable[MethodResult]]
"""Async function that handles an MCP method, given the SDK's request context and validated parameters."""


class ServerMethod(NamedTuple):
    """The handler of an MCP method, and the pydantic model that validates its parameters."""

    params_type: type[BaseModel]
    handler: MethodHandler


class MethodRegistry:
    """The MCP server object for the SDK's runner: handlers by method name, server info and capabilities."""

    def __init__(self) -> None:
        import_sdk_lazily()
        self.requests: dict[str, ServerMethod] = {}
        self.notifications: dict[str, ServerMethod] = {}
        self.cache_hints: dict[str, Any] = {}
        self.extensions: dict[str, dict[str, Any]] = {}
        self.middleware: list[Any] = _tracing_middleware()
        self.get_tool_input_schema: Callable[[str], Mapping[str, Any] | None] = lambda _: None
        self._add_own()

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[dict[str, Any]]:
        """The SDK's lifespan hook: yields an empty state."""
        yield {}

    def get_request_handler(self, method: str) -> ServerMethod | None:
        """The handler of a JSON-RPC request method; None if there is none."""
        return self.requests.get(method)

    def get_notification_handler(self, method: str) -> ServerMethod | None:
        """The handler of a JSON-RPC notification method; None if there is none."""
        return self.notifications.get(method)

    @property
    def server_info_stamp(self) -> dict[str, Any]:
        """The server's name and version, which the SDK adds to every result in the current protocol."""
        return copy.copy(SERVER_INFO)

    def create_initialization_options(self) -> Any:
        """The `initialize` result for older protocols: server name, version, capabilities, instructions."""
        from mcp.server.models import InitializationOptions

        return InitializationOptions(
            server_name=SERVER_NAME,
            server_version=__version__,
            title=SERVER_NAME,
            capabilities=self._capabilities(),
            instructions=SERVER_INSTRUCTIONS,
        )

    def _add_own(self) -> None:
        from mcp_types import RequestParams

        self.requests["ping"] = ServerMethod(RequestParams, _answer_ping)
        self.requests["server/discover"] = ServerMethod(RequestParams, self._discover)

    async def _discover(self, _ctx: Any, _params: Any) -> MethodResult:
        from mcp_types import DiscoverResult
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self._capabilities(),
            instructions=SERVER_INSTRUCTIONS,
        )

    def _capabilities(self) -> Any:
        from mcp_types import ServerCapabilities

        offered: dict[str, Any] = {}
        for part in SERVER_CAPABILITIES:
            if f"{part}/list" in self.requests:
                offered[part] = {}
        return ServerCapabilities(**offered, extensions=self.extensions or None)


async def _answer_ping(_ctx: Any, _params: Any) -> MethodResult:
    return None


def _tracing_middleware() -> list[Any]:
    """The SDK's OpenTelemetry middleware, if the process has loaded the OpenTelemetry SDK."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return []
    from mcp.server._otel import OpenTelemetryMiddleware

    return [OpenTelemetryMiddleware()]


def build_mcp_server(
    connection_tools: ConnectionTools[Any], roots: "ClientRootsEnforcer | None" = None
) -> MethodRegistry:
    """Build a connection's MCP server: tools; for a local workspace also resources, prompts, remote calls.

    With `roots`, tool calls are confined to the client's roots.
    """
    from mcp_types import (
        CallToolRequestParams,
        GetPromptRequestParams,
        NotificationParams,
        PaginatedRequestParams,
        ReadResourceRequestParams,
    )

    from handtools.mcp.remote import RemoteMethods, RemoteParams
    from handtools.mcp.resources_and_prompts import PromptMethods, ResourceMethods

    registry = MethodRegistry()
    registry.requests |= {
        "tools/list": ServerMethod(PaginatedRequestParams, connection_tools.list_tools),
        "tools/call": ServerMethod(CallToolRequestParams, connection_tools.call_tool),
    }
    if connection_tools.journal is None:
        return registry
    resources, prompts = ResourceMethods(connection_tools), PromptMethods(connection_tools)
    registry.requests |= {
        "resources/list": ServerMethod(PaginatedRequestParams, resources.list),
        "resources/templates/list": ServerMethod(PaginatedRequestParams, resources.templates),
        "resources/read": ServerMethod(ReadResourceRequestParams, resources.read),
        "prompts/list": ServerMethod(PaginatedRequestParams, prompts.list),
        "prompts/get": ServerMethod(GetPromptRequestParams, prompts.get),
    }
    registry.requests |= {
        name: ServerMethod(RemoteParams, respond)
        for name, respond in RemoteMethods(connection_tools).methods().items()
    }
    if roots is not None:
        registry.requests["tools/call"] = ServerMethod(CallToolRequestParams, roots.call_tool)
        registry.notifications["notifications/roots/list_changed"] = ServerMethod(
            NotificationParams, roots.changed
        )
    return registry
