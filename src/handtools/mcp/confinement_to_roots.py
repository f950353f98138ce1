"""MCP roots: ask the client for its root folders, and confine the tools to those inside the workspace."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import anyio

from handtools.host.workspace_folders import path_in_workspace, workspace_folders
from handtools.mcp.tool_and_result_json import Json
from handtools.mcp.tool_calls import ConnectionTools
from handtools.runtime.policy.rules import Rule

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

ROOTS_SECONDS = 5.0
ROOTS_KEY = "roots"
"""Key of the roots request in the `inputRequests` of an MCP result."""
ROOTS_REQUEST: Json = {
    "resultType": "input_required",
    "inputRequests": {ROOTS_KEY: {"method": "roots/list"}},
    "requestState": ROOTS_KEY,
}
"""The MCP result that asks the client for its roots. The client repeats the call and includes them."""
GLOB_SPECIALS = re.compile(r"([*?\[\]{}!\\])")


class ClientRootsEnforcer:
    """Asks the client for its root folders before the first tool call, and again after they change.

    The roots are turned into policy rules.
    """

    def __init__(self, connection_tools: ConnectionTools[Any], root: Path) -> None:
        self._connection_tools = connection_tools
        self._root = root.resolve()
        self._wide = connection_tools.toolbox
        self._asked = False
        self._lock: anyio.Lock | None = None

    async def call_tool(
        self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams"
    ) -> Json:
        """Answer `tools/call`, asking for the client's roots first if they are not known."""
        if not self._asked and _asks_by_result(ctx):
            told = (params.input_responses or {}).get(ROOTS_KEY)
            if told is None:
                return ROOTS_REQUEST
            self._apply_roots([str(root.uri) for root in getattr(told, "roots", ())])
            params = params.model_copy(update={"request_state": None, "input_responses": None})
        elif not self._asked:
            await self._ask(ctx)
        return await self._connection_tools.call_tool(ctx, params)

    async def changed(self, _ctx: object, _params: object) -> None:
        """Handle `notifications/roots/list_changed`: ask for the roots again before the next call."""
        self._asked = False

    async def _ask(self, ctx: "ServerRequestContext[Any, Any]") -> None:
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            capabilities = ctx.session.client_capabilities
            able = getattr(capabilities, "roots", None) is not None and ctx.session.can_send_request
            if not self._asked:
                self._apply_roots(await _list_roots(ctx) if able else [])

    def _apply_roots(self, uris: list[str]) -> None:
        self._connection_tools.narrow(self._wide, self._rules(uris))
        self._asked = True

    def _rules(self, uris: list[str]) -> list[Rule]:
        """The policy rules that confine tools to the roots inside the workspace.

        Empty if the roots contain the whole workspace, or if no root is inside it. In a workspace with several
        folders, each folder can be inside a different root.
        """
        folders = [Path(unquote(urlsplit(uri).path)).resolve() for uri in uris if uri.startswith("file://")]
        around = [
            name
            for name, top in workspace_folders(self._root).items()
            if any(Path(top).is_relative_to(folder) for folder in folders)
        ]
        inside = [path_in_workspace(str(folder), self._root) for folder in folders]
        named = dict.fromkeys((*around, *(path for path in inside if path is not None)))
        if len(around) == len(workspace_folders(self._root)) or "." in named:
            return []
        return deny_outside_rules(list(named))


def deny_outside_rules(folders: Collection[str]) -> list[Rule]:
    """Policy rules that deny everything outside these folders of the workspace.

    There is one rule for the workspace root and one for each parent of a given folder. Each rule excepts
    only the next folders on the way to the given ones, because an exception covers everything below it.
    """
    told = ", ".join(folders)
    ways: dict[str, set[str]] = {}
    for folder in folders:
        parts = folder.split("/")
        for depth in range(len(parts)):
            ways.setdefault("/".join(parts[:depth]), set()).add("/".join(parts[: depth + 1]))
    closed = {above: inner for above, inner in ways.items() if not _is_below_any(above, folders)}
    return [
        Rule(
            "roots",
            "deny",
            f"The client restricts access to {told}.",
            paths=(f"/{_escaped(above)}/**" if above else "**",),
            # The workspace root itself is allowed: searches start there and skip paths that are denied.
            but=(
                *(() if above else ("/[.]",)),
                *(glob for path in sorted(inner) for glob in _folder_globs(path)),
            ),
        )
        for above, inner in closed.items()
    ]


def _is_below_any(path: str, folders: Collection[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _folder_globs(path: str) -> tuple[str, str]:
    """Globs for a folder and everything in it."""
    return f"/{_escaped(path)}", f"/{_escaped(path)}/**"


def _escaped(path: str) -> str:
    return GLOB_SPECIALS.sub(r"\\\1", path)


def _asks_by_result(ctx: "ServerRequestContext[Any, Any]") -> bool:
    """Whether the client has roots and uses the current protocol, where the server asks for them in a result."""
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
