"""An MCP server on stdio for one workspace on a host: `python -m handtools.fleet.workspace_mcp`. ADR 251.

Where it is and what opens it is in the environment, which the batch runner writes into a client's configuration.
"""

import asyncio
import os
import secrets
from collections.abc import Mapping
from typing import Any, cast

from handtools.core.call import Call
from handtools.core.errors import HandtoolsError
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_client import HostClient
from handtools.mcp.idempotency import derive_call_id
from handtools.mcp.server import MethodRegistry, ServerMethod, import_sdk_lazily
from handtools.mcp.stdio import open_stdio_after_handshake
from handtools.mcp.tool_and_result_json import (
    LIST_TTL_MS,
    call_result,
    failure_result,
    mark_result_complete,
)
from handtools.toolbox import ToolDefinition

ADDRESS_VARIABLE = "HANDTOOLS_FLEET_ADDRESS"
TOKEN_VARIABLE = "HANDTOOLS_FLEET_TOKEN"  # noqa: S105
WORKSPACE_VARIABLE = "HANDTOOLS_FLEET_WORKSPACE"


class WorkspaceMcp:
    """The answers to `tools/list` and `tools/call`, with the tools of a workspace on a host."""

    def __init__(self, toolbox: FleetToolbox) -> None:
        self._toolbox = toolbox
        self._scope = secrets.token_hex(8)
        """Request ids begin anew with each process, so they count within this one only."""

    @property
    def listed(self) -> dict[str, Any]:
        """The result of `tools/list`."""
        tools = [_tool_json(each) for each in self._toolbox.definitions()]
        return mark_result_complete({"tools": tools}, keep_ms=LIST_TTL_MS)

    async def list_tools(self, _ctx: Any, _params: Any) -> Mapping[str, Any]:
        """Answer `tools/list`."""
        return self.listed

    async def call_tool(self, ctx: Any, params: Any) -> Mapping[str, Any]:
        """Answer `tools/call`; errors become text for the model."""
        args = params.arguments or {}
        found = derive_call_id(ctx.meta, ctx.request_id, self._scope, params.name, args)
        call = Call(tool=params.name, args=args, id=found.call_id, session=f"mcp-{self._scope[:8]}")
        try:
            return call_result(await self._toolbox.call(call), call.id)
        except HandtoolsError as problem:
            return failure_result(str(problem), call.id)

    def registry(self) -> MethodRegistry:
        """The methods for the SDK's loop."""
        from mcp_types import CallToolRequestParams, PaginatedRequestParams

        made = MethodRegistry()
        made.requests |= {
            "tools/list": ServerMethod(PaginatedRequestParams, self.list_tools),
            "tools/call": ServerMethod(CallToolRequestParams, self.call_tool),
        }
        return made


def _tool_json(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": dict(definition.input_schema),
        "annotations": {"readOnlyHint" if definition.reads_only else "destructiveHint": True},
    }


async def serve(address: str, token: str, workspace: str) -> None:
    """Serve the tools of a workspace on stdin and stdout until the client disconnects."""
    import_sdk_lazily()
    from mcp.server.runner import serve_dual_era_loop

    client = HostClient(address, token)
    try:
        async with FleetToolbox(client, workspace) as toolbox:
            answers = WorkspaceMcp(toolbox)
            async with open_stdio_after_handshake(lambda: answers.listed) as (reading, writing):
                await serve_dual_era_loop(
                    cast("Any", answers.registry()), reading, writing, lifespan_state={}
                )
    finally:
        await client.aclose()


def main() -> None:
    """Serve the workspace that the environment names."""
    asyncio.run(
        serve(os.environ[ADDRESS_VARIABLE], os.environ[TOKEN_VARIABLE], os.environ[WORKSPACE_VARIABLE])
    )


if __name__ == "__main__":
    main()
