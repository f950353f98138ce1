"""An MCP server on stdio for one workspace on a host: `python -m handtools.fleet.workspace_mcp`. ADR 251, 284.

Where it is and what opens it is in the environment, which the batch runner writes into a client's configuration.
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
async def _named_workspace() -> AsyncIterator[FleetToolbox]:
    client = HostClient(os.environ[ADDRESS_VARIABLE], os.environ[TOKEN_VARIABLE])
    try:
        async with FleetToolbox(client, os.environ[WORKSPACE_VARIABLE]) as toolbox:
            yield toolbox
    finally:
        await client.aclose()


def main() -> None:
    """Serve the workspace that the environment names."""
    missing = [
        name for name in (ADDRESS_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE) if not os.environ.get(name)
    ]
    if missing:
        sys.exit(f"handtools: not in the environment: {', '.join(missing)}")
    try:
        serve_remote_over_stdio(_named_workspace)
    except HandtoolsError as problem:
        sys.exit(f"handtools: {problem}")


if __name__ == "__main__":
    main()
