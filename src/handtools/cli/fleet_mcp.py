"""CLI command `handtools fleet mcp`: run an MCP server over stdio for one workspace of a fleet."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli.fleet_connection import AddressOption, FleetArgument, connected_fleet

if TYPE_CHECKING:
    from handtools.fleet.fleet_toolbox import FleetToolbox


def mcp(
    fleet: FleetArgument,
    workspace: Annotated[str, typer.Argument(metavar="WORKSPACE", help="Workspace, such as h0-5d0c….")],
    *,
    address: AddressOption = "auto",
) -> None:
    """Serve a workspace's tools over MCP on stdin and stdout.

    The fleet's policy applies. Resources and prompts are not offered, because they show the journal, which
    is on the workspace's host; use `handtools fleet logs` instead.

    Example: handtools fleet mcp evals h0-5d0c1f7e
    """
    from handtools.mcp.stdio import serve_remote_over_stdio

    serve_remote_over_stdio(lambda: _opened(address, fleet, workspace))


@asynccontextmanager
async def _opened(address: str, name: str, workspace: str) -> "AsyncIterator[FleetToolbox]":
    async with connected_fleet(address, name) as fleet, fleet.toolbox(workspace) as toolbox:
        yield toolbox
