"""stdio: one client, one process, one workspace."""

import secrets
from pathlib import Path
from typing import Any, cast

import anyio

from handtools.mcp.desk import Desk
from handtools.mcp.pipes import standard_streams
from handtools.toolbox import Toolbox


def serve_stdio(toolbox: Toolbox, root: Path | None = None) -> None:
    """Serve a toolbox on this process's standard streams until the client leaves.

    With the folder that the toolbox works in, it keeps to the client's roots inside that.
    """
    anyio.run(_serve, toolbox, root)


async def _serve(toolbox: Toolbox, root: Path | None) -> None:
    # Request ids begin anew with each process, so they count within this one only.
    nonce = secrets.token_hex(8)
    desk = Desk(toolbox, agent="", session=f"mcp-{nonce[:8]}", scope=nonce)
    async with desk.open(), standard_streams(lambda: desk.listed) as (reading, writing):
        await _run(desk, root, reading, writing)


async def _run(desk: Desk, root: Path | None, reading: Any, writing: Any) -> None:
    from handtools.mcp.lean import load_lean

    load_lean()
    from mcp.server.runner import serve_dual_era_loop

    from handtools.mcp.roots import Roots
    from handtools.mcp.serving import server

    registry = cast("Any", server(desk, Roots(desk, root) if root is not None else None))
    await serve_dual_era_loop(registry, reading, writing, lifespan_state={})
