"""An MCP server on stdio for one workspace on a host: `python -m handtools.fleet.workspace_mcp`.

Address, token and workspace come from environment variables, which the batch runner puts into the client's
MCP configuration.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from handtools.core.errors import HandtoolsError
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_client import HostClient
from handtools.mcp.stdio import serve_remote_over_stdio

ADDRESS_VARIABLE = "HANDTOOLS_FLEET_ADDRESS"
TOKEN_VARIABLE = "HANDTOOLS_FLEET_TOKEN"  # noqa: S105
WORKSPACE_VARIABLE = "HANDTOOLS_FLEET_WORKSPACE"


@asynccontextmanager
async def _open_toolbox_from_environment() -> AsyncIterator[FleetToolbox]:
    client = HostClient(os.environ[ADDRESS_VARIABLE], os.environ[TOKEN_VARIABLE])
    try:
        async with FleetToolbox(client, os.environ[WORKSPACE_VARIABLE]) as toolbox:
            yield toolbox
    finally:
        await client.aclose()


def main() -> None:
    """Serve the workspace named by the environment variables."""
    missing = [
        name for name in (ADDRESS_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE) if not os.environ.get(name)
    ]
    if missing:
        sys.exit(f"handtools: missing environment variables: {', '.join(missing)}")
    try:
        serve_remote_over_stdio(_open_toolbox_from_environment)
    except HandtoolsError as problem:
        sys.exit(f"handtools: {problem}")


if __name__ == "__main__":
    main()
