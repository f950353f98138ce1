"""The MCP server: its methods by name, resources and prompts, and lazy import of the SDK.

We avoid the SDK's `Server`: importing it loads the web framework, OAuth and the entire client, which takes up
half of the time to the first response on stdio. Instead, the SDK's modules are imported one by one when
they are needed.
"""

import base64
import copy
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from anyio import to_thread
from pydantic import BaseModel, Field, RootModel, ValidationError

from handtools import __version__
from handtools.core.call import Call
from handtools.core.context import Context
from handtools.core.errors import TooLarge
from handtools.core.result import Document, Result
from handtools.core.tool import tool
from handtools.mcp.handshake import SERVER_CAPABILITIES, SERVER_INFO, SERVER_INSTRUCTIONS, SERVER_NAME
from handtools.mcp.tool_and_result_json import LIST_TTL_MS, Json, mark_result_complete
from handtools.mcp.tool_calls import ConnectionTools
from handtools.mcp.tool_request import ClientRefusal, ToolRequest
from handtools.record.recorded_changes import call_target_summary, file_changes_of_call, undone_state
from handtools.text.encoding import is_binary, without_surrogates
from handtools.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import GetPromptRequestParams, ReadResourceRequestParams

    from handtools.mcp.confinement_to_roots import ClientRootsEnforcer


URI_SCHEME = "handtools://"
FILE_URI, OUTPUT_URI = f"{URI_SCHEME}file/", f"{URI_SCHEME}output/"
JOURNAL_URI, PENDING_URI = f"{URI_SCHEME}journal", f"{URI_SCHEME}pending"
RESOURCE_BYTES = 1 << 20
LISTED_RESOURCES = 50
RESOURCE_NOT_FOUND_CODE = -32002
"""MCP's JSON-RPC error code for a resource that does not exist."""


class ResourceParams(BaseModel):
    """Parameters of the internal tool that reads a resource."""

    path: str = Field(description="A path in the workspace, or the name of a stored output.")


class ResourceDetails(BaseModel):
    """Details of a resource that was read."""

    bytes: int


@tool(effects=("read",))
async def resource(ctx: Context, params: ResourceParams) -> Result[ResourceDetails]:
    """Return a file's content unchanged."""
    data = await ctx.files.read(params.path, size=RESOURCE_BYTES + 1)
    if len(data) > RESOURCE_BYTES:
        raise TooLarge(f"{params.path} is over {RESOURCE_BYTES:,} bytes.", hint="`read` it in parts.")
    kind = "application/octet-stream" if is_binary(data) else "text/plain"
    return Result(Document(data, kind, params.path), ResourceDetails(bytes=len(data)))


class ResourceMethods:
    """Handlers of the MCP resource methods.

    Files are read with a tool call, so that the policy applies and the journal records the call.
    """

    def __init__(self, desk: ConnectionTools[Toolbox]) -> None:
        self._desk = desk
        workspace, policy = desk.toolbox.workspace, desk.toolbox.policy
        self._outputs = workspace.output_store
        self._calls = workspace.journal.calls
        offered = replace(policy, allow=(resource.name,), block=(), unattended="deny")
        self._reader = Toolbox([resource], workspace=workspace, policy=offered)

    async def list(self, _ctx: object, _params: object) -> Json:
        """Answer `resources/list`: the journal, the pending approvals and the newest stored outputs."""
        kept = await to_thread.run_sync(self._outputs.names)
        outputs = [
            _resource_json(f"{OUTPUT_URI}{name}", name, "The full text of a truncated output.")
            for name in kept
        ]
        own = [
            _resource_json(
                JOURNAL_URI, "journal", "The latest calls and how they ended.", "application/json"
            ),
            _resource_json(PENDING_URI, "pending", "Calls waiting for approval.", "application/json"),
        ]
        return mark_result_complete({"resources": own + outputs[-LISTED_RESOURCES:]}, keep_ms=0)

    async def templates(self, _ctx: object, _params: object) -> Json:
        """Answer `resources/templates/list`: the URI templates for files and stored outputs."""
        templates = [
            {
                "uriTemplate": f"{FILE_URI}{{+path}}",
                "name": "file",
                "description": "A file in the workspace.",
            },
            {"uriTemplate": f"{OUTPUT_URI}{{name}}", "name": "output", "description": "A stored output."},
        ]
        return mark_result_complete({"resourceTemplates": templates}, keep_ms=LIST_TTL_MS)

    async def read(self, _ctx: object, params: "ReadResourceRequestParams") -> Json:
        """Answer `resources/read`: the content of a file, a stored output, the journal or the approvals."""
        from urllib.parse import unquote

        uri = str(params.uri)
        if uri == JOURNAL_URI:
            page = await to_thread.run_sync(lambda: self._calls.page(limit=LISTED_RESOURCES))
            return _json_resource(uri, [asdict(call) for call in page])
        if uri == PENDING_URI:
            return _json_resource(
                uri, [asdict(approval) for approval in await self._desk.attended_toolbox.waiting()]
            )
        if uri.startswith(OUTPUT_URI):
            return await self._read_as_call(uri, f"output:{unquote(uri.removeprefix(OUTPUT_URI))}")
        if uri.startswith(FILE_URI):
            return await self._read_as_call(uri, unquote(uri.removeprefix(FILE_URI)))
        raise _resource_missing(f"This server has no resource {uri}.")

    async def _read_as_call(self, uri: str, path: str) -> Json:
        call = Call(
            tool=resource.name, args={"path": path}, session=self._desk.session, agent=self._desk.agent
        )
        result = await self._reader.call(call)
        if not result.ok:
            raise _resource_missing(result.text)
        (document,) = result.content
        assert isinstance(document, Document)
        content: Json = {"uri": uri, "mimeType": document.media_type}
        if document.media_type == "text/plain":
            content["text"] = without_surrogates(document.data.decode("utf-8", "replace"))
        else:
            content["blob"] = base64.b64encode(document.data).decode()
        return mark_result_complete({"contents": [content]}, keep_ms=0)


def _resource_json(uri: str, name: str, description: str, kind: str = "text/plain") -> Json:
    return {"uri": uri, "name": name, "description": description, "mimeType": kind}


def _json_resource(uri: str, value: Any) -> Json:
    content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(value, indent=1)}
    return mark_result_complete({"contents": [content]}, keep_ms=0)


def _resource_missing(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code=RESOURCE_NOT_FOUND_CODE, message=without_surrogates(message))


INVALID_PARAMS_CODE = -32602
REVIEWED_CALLS = 40
UNDONE_WORDS = {"no": "", "partly": ", partly undone", "yes": ", undone"}
PROMPTS: dict[str, str] = {
    "review": "Check the latest changes in this workspace and undo unwanted ones.",
    "pending": "Explain the calls waiting for approval.",
}


class PromptMethods:
    """Handlers of the MCP prompt methods. The prompts contain data from the workspace's journal."""

    def __init__(self, desk: ConnectionTools[Toolbox]) -> None:
        self._desk = desk

    async def list(self, _ctx: object, _params: object) -> Json:
        """Answer `prompts/list`: the names and descriptions of the prompts."""
        listed = [{"name": name, "description": told} for name, told in PROMPTS.items()]
        return mark_result_complete({"prompts": listed}, keep_ms=LIST_TTL_MS)

    async def get(self, _ctx: object, params: "GetPromptRequestParams") -> Json:
        """Answer `prompts/get`: the text of a prompt, including recent or pending calls."""
        if params.name == "review":
            text = await to_thread.run_sync(self._review_prompt)
        elif params.name == "pending":
            text = await self._pending_calls_prompt()
        else:
            from mcp.shared.exceptions import MCPError

            raise MCPError(
                code=INVALID_PARAMS_CODE,
                message=f"Unknown prompt {params.name!r}. Use one of: {', '.join(PROMPTS)}.",
            )
        message = {"role": "user", "content": {"type": "text", "text": without_surrogates(text)}}
        return mark_result_complete({"description": PROMPTS[params.name], "messages": [message]})

    def _review_prompt(self) -> str:
        journal = self._desk.toolbox.workspace.journal
        lines = [
            f"- {call.id[:8]} {call.tool} {call_target_summary(call, touches)} "
            f"({call.status}{UNDONE_WORDS[undone_state(touches)]})"
            for call in journal.calls.page(limit=REVIEWED_CALLS)
            if (touches := file_changes_of_call(journal, call.id))
        ]
        listed = "\n".join(lines) or "(nothing was changed)"
        return (
            f"These calls changed this workspace, newest first:\n{listed}\n\n"
            "Read the changed files, say in a few sentences what changed and whether it is right, "
            "and `undo` unwanted changes after asking me."
        )

    async def _pending_calls_prompt(self) -> str:
        waiting = await self._desk.attended_toolbox.waiting()
        parts = [f"## {a.title}\nReason: {a.rule}\n\n{a.preview}" for a in waiting]
        shown = "\n\n".join(parts) or "(none)"
        return f"These calls need my approval. Explain each one and its risk in a sentence:\n\n{shown}"


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
        self.requests["server/discover"] = ServerMethod(RequestParams, self._answer_discover)

    async def _answer_discover(self, _ctx: Any, _params: Any) -> MethodResult:
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


def _tool_request(ctx: "ServerRequestContext[Any, Any]") -> ToolRequest:
    """A `tools/call` request that the SDK received."""
    session = ctx.session
    client, capabilities = session.client_params, session.client_capabilities
    headers = getattr(ctx.request, "headers", None) or {}

    async def report_progress(progress: float, message: str) -> None:
        await session.report_progress(progress, None, message)

    return ToolRequest(
        request_id=ctx.request_id,
        params=dict(ctx.params or {}),
        client_name=client.client_info.name if client is not None else "",
        capabilities=capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {},
        protocol_version=ctx.protocol_version,
        send_to_client=partial(_send_by_sdk, ctx) if session.can_send_request else None,
        report_progress=report_progress,
        header=lambda name: str(headers.get(name) or ""),
    )


async def _send_by_sdk(
    ctx: "ServerRequestContext[Any, Any]",
    method: str,
    params: Json | None,
    *,
    seconds: float | None = None,
) -> Json:
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import ServerMessageMetadata
    from mcp_types import Request

    try:
        answer = await ctx.session.send_request(
            cast("Any", Request[dict[str, Any] | None, str](method=method, params=params)),
            RootModel[dict[str, Any]],
            request_read_timeout_seconds=seconds,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except (MCPError, ValidationError) as problem:
        raise ClientRefusal(str(problem)) from problem
    return answer.root


def build_mcp_server(
    connection_tools: ConnectionTools[Any], roots: "ClientRootsEnforcer | None" = None
) -> MethodRegistry:
    """Build a connection's MCP server with tools and, for a local workspace, resources, prompts and remote calls.

    With `roots`, tool calls are confined to the client's roots.
    """
    from mcp_types import (
        CallToolRequestParams,
        GetPromptRequestParams,
        NotificationParams,
        PaginatedRequestParams,
        ReadResourceRequestParams,
    )

    from handtools.mcp.remote_toolbox import RemoteMethods, RemoteParams
    from handtools.mcp.server import PromptMethods, ResourceMethods

    async def call_tool(ctx: "ServerRequestContext[Any, Any]", _params: object) -> Json:
        return await (roots or connection_tools).call_tool(_tool_request(ctx))

    registry = MethodRegistry()
    registry.requests |= {
        "tools/list": ServerMethod(PaginatedRequestParams, connection_tools.list_tools),
        "tools/call": ServerMethod(CallToolRequestParams, call_tool),
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

        async def change_roots(_ctx: object, _params: object) -> None:
            roots.changed()

        registry.notifications["notifications/roots/list_changed"] = ServerMethod(
            NotificationParams, change_roots
        )
    return registry
