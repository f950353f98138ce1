"""MCP roots: ask the client for its root folders, and confine the tools to those inside the workspace."""

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio

from handtools.host.workspace_folders import path_in_workspace, workspace_folders
from handtools.mcp.tool_and_result_json import Json
from handtools.mcp.tool_calls import ConnectionTools
from handtools.mcp.tool_request import ClientRefusal, ToolRequest
from handtools.runtime.policy.rules import Rule

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

    async def call_tool(self, request: ToolRequest) -> Json:
        """Answer `tools/call`, asking for the client's roots first if they are not known."""
        if not self._asked and request.is_current_protocol and "roots" in request.capabilities:
            listed = request.input_response(ROOTS_KEY)
            if listed is None:
                return ROOTS_REQUEST
            self._apply_roots(_root_uris(listed))
            answers = ("requestState", "inputResponses")
            params = {key: value for key, value in request.params.items() if key not in answers}
            request = replace(request, params=params)
        elif not self._asked:
            await self._ask(request)
        return await self._connection_tools.call_tool(request)

    def changed(self) -> None:
        """Handle `notifications/roots/list_changed`: ask for the roots again before the next call."""
        self._asked = False

    async def _ask(self, request: ToolRequest) -> None:
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            if not self._asked:
                self._apply_roots(await _list_roots(request))

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


async def _list_roots(request: ToolRequest) -> list[str]:
    if request.send_to_client is None or "roots" not in request.capabilities:
        return []
    try:
        return _root_uris(await request.send_to_client("roots/list", None, seconds=ROOTS_SECONDS))
    except ClientRefusal:
        return []


def _root_uris(listed: Json) -> list[str]:
    match listed:
        case {"roots": list() as roots}:
            return [str(root["uri"]) for root in roots if isinstance(root, dict) and "uri" in root]
    return []
