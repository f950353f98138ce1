"""MCP roots: ask the client for its root folders, and confine the tools to those that lie in the workspace."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import anyio

from handtools.mcp.protocol_json import Json
from handtools.mcp.tool_calls import ConnectionTools
from handtools.runtime.policy.rules import Rule

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

ROOTS_SECONDS = 5.0
ROOTS_KEY = "roots"
"""Key of the request for roots in the `inputRequests` of an MCP result."""
ROOTS_REQUEST: Json = {
    "resultType": "input_required",
    "inputRequests": {ROOTS_KEY: {"method": "roots/list"}},
    "requestState": ROOTS_KEY,
}
"""The MCP result that asks the client for its roots; the client repeats the call with the answer."""
GLOB_SPECIALS = re.compile(r"([*?\[\]{}!\\])")


class ClientRoots:
    """Asks the client for its root folders before the first tool call, and again after they changed.

    The answer becomes a policy rule.
    """

    def __init__(self, desk: ConnectionTools, root: Path) -> None:
        self._desk = desk
        self._root = root.resolve()
        self._wide = desk.toolbox
        self._asked = False
        self._lock: anyio.Lock | None = None

    async def call_tool(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams"
    ) -> Json:
        """Answer `tools/call`; asks for the client's roots first if they are not known."""
        if not self._asked and _asks_by_result(ctx):
            told = (params.input_responses or {}).get(ROOTS_KEY)
            if told is None:
                return ROOTS_REQUEST
            self._learn([str(root.uri) for root in getattr(told, "roots", ())])
            params = params.model_copy(update={"request_state": None, "input_responses": None})
        elif not self._asked:
            await self._ask(ctx)
        return await self._desk.call_tool(ctx, params)

    async def changed(self, _ctx: object, _params: object) -> None:
        """Handle `notifications/roots/list_changed`: ask for the roots again before the next call."""
        self._asked = False

    async def _ask(self, ctx: "ServerRequestContext[Any, Any]") -> None:
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            capabilities = ctx.session.client_capabilities
            able = getattr(capabilities, "roots", None) is not None and ctx.session.can_send_request
            if not self._asked:
                self._learn(await _list_roots(ctx) if able else [])

    def _learn(self, uris: list[str]) -> None:
        self._desk.narrow(self._wide, self._rules(uris))
        self._asked = True

    def _rules(self, uris: list[str]) -> list[Rule]:
        """The policy rule that confines tools to the roots inside the workspace.

        None if a root contains the workspace, or no root lies in it.
        """
        folders = [Path(unquote(urlsplit(uri).path)).resolve() for uri in uris if uri.startswith("file://")]
        if any(self._root.is_relative_to(folder) for folder in folders):
            return []
        inside = [folder.relative_to(self._root) for folder in folders if folder.is_relative_to(self._root)]
        return [deny_outside_rule(inside)] if inside else []


def deny_outside_rule(folders: list[Path]) -> Rule:
    """A policy rule that denies everything outside these folders of the workspace."""
    names = [GLOB_SPECIALS.sub(r"\\\1", folder.as_posix()) for folder in folders]
    above = [GLOB_SPECIALS.sub(r"\\\1", part.as_posix()) for folder in folders for part in folder.parents]
    kept = [f"/{name}" for name in names] + [f"/{name}/**" for name in names]
    return Rule(
        "roots",
        "deny",
        f"The client works on {', '.join(str(folder) for folder in folders)} only.",
        paths=("**",),
        but=(*kept, *(f"/{name}" for name in above if name != ".")),
    )


def _asks_by_result(ctx: "ServerRequestContext[Any, Any]") -> bool:
    """Whether the client has roots and speaks the current protocol, where they are asked for by a result."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    able = getattr(ctx.session.client_capabilities, "roots", None) is not None
    return able and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _list_roots(ctx: "ServerRequestContext[Any, Any]") -> list[str]:
    from mcp.shared.exceptions import MCPError
    from mcp_types import ListRootsRequest, ListRootsResult

    try:
        found = await ctx.session.send_request(
            ListRootsRequest(), ListRootsResult, request_read_timeout_seconds=ROOTS_SECONDS
        )
    except MCPError:
        return []
    return [str(root.uri) for root in found.roots]
