"""`extra_calls.py EXTRA`: one call that uses the extra, for a bare environment with the wheels and nothing else.

Not a test of what an extra does, but that nothing is missing from its list of packages. `.ci/extras` runs it.
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from handtools import BlockingToolbox, coding, everything


def slim(folder: Path) -> None:
    with BlockingToolbox(coding(folder)) as box:
        assert box.call("write", {"path": "one.txt", "content": "kept\n"}).ok
        assert (folder / "one.txt").read_text() == "kept\n"
        assert box.call("undo", {}).ok
        assert not (folder / "one.txt").exists()


def cli(folder: Path) -> None:
    assert "read" in _said([sys.executable, "-m", "handtools", "tools"], folder)


def container(folder: Path) -> None:
    """Without an engine it says so; without the package it would name the package."""
    import docker

    from handtools.host.sandbox.runners.container import ContainerRunner

    assert docker.__version__
    assert "handtools-slim[container]" not in ContainerRunner().unavailable_reason()


def fleet(folder: Path) -> None:
    assert importlib.import_module("handtools.fleet.ray_fleet")


def mcp(folder: Path) -> None:
    """A real server's answer to the first request."""
    serve = "import sys, handtools, handtools.mcp.stdio as m; m.serve_stdio(handtools.coding(sys.argv[1]))"
    client = {"name": "extra", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    assert "handtools" in _said([sys.executable, "-I", "-c", serve, str(folder)], folder, request)
    assert importlib.import_module("handtools.mcp.http_server")


def media(folder: Path) -> None:
    from PIL import Image

    Image.new("RGB", (30, 20)).save(folder / "one.png")
    with BlockingToolbox(coding(folder)) as box:
        assert box.call("read", {"path": "one.png"}).ok


def otel(folder: Path) -> None:
    from opentelemetry import trace

    assert trace.get_tracer("extra")
    slim(folder)


def watch(folder: Path) -> None:
    from handtools.cli.watch_screen.watch_app import WatchApp

    assert WatchApp.BINDINGS


def web(folder: Path) -> None:
    """It is offered only where a page could be fetched and read."""
    assert "fetch" in {tool.name for tool in everything(folder).definitions()}


def sdk(module: str, make: str) -> Callable[[Path], None]:
    """What an adapter makes of a toolbox for its SDK."""

    def build(folder: Path) -> None:
        async def within() -> None:
            async with coding(folder) as box:
                made = getattr(importlib.import_module(f"handtools.adapters.{module}"), make)
                assert made(box)

        asyncio.run(within())

    return build


def agent_client_protocol(folder: Path) -> None:
    assert importlib.import_module("handtools.adapters.agent_client_protocol").EditorSession


CALLS: dict[str, Callable[[Path], None]] = {
    "agent-client-protocol": agent_client_protocol,
    "agent-framework": sdk("agent_framework", "ToolboxProvider"),
    "anthropic": sdk("anthropic", "tools"),
    "claude-agent-sdk": sdk("claude_agent_sdk", "options"),
    "cli": cli,
    "container": container,
    "deepagents": sdk("deepagents", "ToolboxBackend"),
    "fleet": fleet,
    "google-adk": sdk("google_adk", "Toolset"),
    "inspect-ai": sdk("inspect_ai", "tools"),
    "langchain": sdk("langchain", "tools"),
    "mcp": mcp,
    "media": media,
    "openai-agents": sdk("openai_agents", "tools"),
    "otel": otel,
    "pydantic-ai": sdk("pydantic_ai", "Toolset"),
    "slim": slim,
    "strands": sdk("strands", "tools"),
    "watch": watch,
    "web": web,
}


def _said(line: list[str], folder: Path, sent: str = "") -> str:
    done = subprocess.run(
        line, cwd=folder, input=sent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        os.environ["HANDTOOLS_STATE"] = str(Path(place, "state"))
        work = Path(place, "work")
        work.mkdir()
        CALLS[sys.argv[1]](work)
