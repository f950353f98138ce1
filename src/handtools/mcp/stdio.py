"""stdio: one client, one process, one workspace."""

import asyncio
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from handtools.mcp.pipes import standard_streams

if TYPE_CHECKING:
    from handtools.mcp.desk import Desk
    from handtools.mcp.greeting import Json
    from handtools.toolbox import Toolbox

TERMINATED = 128 + signal.SIGTERM
"""The exit status of programs that SIGTERM ended."""


def serve_stdio(toolbox: "Toolbox", root: Path | None = None) -> None:
    """Serve a toolbox on this process's standard streams until the client leaves.

    With the folder that the toolbox works in, it keeps to the client's roots inside that.
    """
    serve_opening(lambda: toolbox, root, None)


def serve_opening(open_toolbox: Callable[[], "Toolbox"], root: Path | None, listed: "Json | None") -> None:
    """Serve a toolbox that is opened after the greeting where its tools are known already."""
    try:
        asyncio.run(_serve(open_toolbox, root, listed))
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


async def _serve(open_toolbox: Callable[[], "Toolbox"], root: Path | None, listed: "Json | None") -> None:
    _cancel_on_sigterm()

    @cache
    def desk() -> "Desk":
        from handtools.mcp.desk import Desk

        # Request ids begin anew with each process, so they count within this one only.
        nonce = secrets.token_hex(8)
        return Desk(open_toolbox(), agent="", session=f"mcp-{nonce[:8]}", scope=nonce)

    async with standard_streams(lambda: listed or desk().listed) as (reading, writing), desk().open():
        await _run(desk(), root, reading, writing)


def _cancel_on_sigterm() -> None:
    """End as on Ctrl-C, calls that run recorded as cancelled: some clients that leave send it at once."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


async def _run(desk: "Desk", root: Path | None, reading: Any, writing: Any) -> None:
    from handtools.mcp.lean import load_lean

    load_lean()
    from mcp.server.runner import serve_dual_era_loop

    from handtools.mcp.roots import Roots
    from handtools.mcp.serving import server

    registry = cast("Any", server(desk, Roots(desk, root) if root is not None else None))
    await serve_dual_era_loop(registry, reading, writing, lifespan_state={})
