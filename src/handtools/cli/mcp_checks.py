"""Checks of the MCP server: does it start, would a client find it, and what do installed clients say."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from handtools.cli.checks import Finding

START_SECONDS = 20.0
SLOW_SECONDS = 3.0
MESSAGES: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "handtools doctor", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
    {"id": 3, "method": "resources/list", "params": {}},
)


def mcp_findings(root: Path) -> Iterator[Finding]:
    """What keeps a client from using the tools here, the likeliest first."""
    package = _package()
    yield package
    if package.state == "ok":
        yield _start(root)
    yield _sandbox()
    yield from _clients(root)


def _package() -> Finding:
    try:
        return Finding("mcp package", "ok", f"mcp {version('mcp')}")
    except PackageNotFoundError:
        return Finding("mcp package", "broken", "it is not installed", "pip install 'handtools-slim[mcp]'")


def _start(root: Path) -> Finding:
    """Start the server as a client does, and ask what it offers."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in MESSAGES)
    command = [sys.executable, "-m", "handtools", "mcp", str(root.resolve())]
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        # A server that says nothing must not keep the doctor waiting.
        late = threading.Timer(START_SECONDS, child.kill)
        late.start()
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(lines.encode())
            child.stdin.flush()
            answers = [child.stdout.readline() for _ in range(2)]
            # Clients wait for the tools; the last answer only shows that what runs them loads, too.
            taken = time.perf_counter() - began
            answers.append(child.stdout.readline())
        except BrokenPipeError:
            answers, taken = [], START_SECONDS
        finally:
            late.cancel()
        child.kill()
        said = (child.stderr.read() if child.stderr else b"").decode(errors="replace").strip()
    offered = _offered(answers) if all(answers) else 0
    if not offered:
        last = said.splitlines()[-1] if said else "it said nothing"
        return Finding("server", "broken", f"it does not start: {last}", f"Try: handtools mcp {root}")
    told = f"{offered} tools, told after {taken:.1f} s"
    if taken > SLOW_SECONDS:
        return Finding(
            "server", "missing", f"{told}, which is slow", "Some clients wait only a few seconds."
        )
    return Finding("server", "ok", told)


def _offered(answers: list[bytes]) -> int:
    for line in answers:
        message = json.loads(line) if line.startswith(b"{") else {}
        if message.get("id") == 2 and "result" in message:
            return len(message["result"]["tools"])
    return 0


def _sandbox() -> Finding:
    if shutil.which("bwrap"):
        return Finding("sandbox", "ok", "bubblewrap confines commands")
    return Finding(
        "sandbox",
        "missing",
        "bubblewrap is not installed: commands are confined less, and `handtools doctor` says how",
        "apt install bubblewrap",
    )


def _clients(root: Path) -> Iterator[Finding]:
    from handtools.mcp.clients.known import CLIENTS, NAME

    for client in CLIENTS.values():
        file = client.file(root.resolve())
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if client.drop(text) == text:
            continue
        program = _program(text, NAME)
        if program and not (os.access(program, os.X_OK) or "/" not in program):
            step = f"handtools install {client.name}"
            yield Finding(client.title, "broken", f"{file} starts {program}, which is not there", step)
        else:
            yield Finding(client.title, "ok", f"set up in {file}")


def _program(text: str, name: str) -> str:
    """The program that our entry starts, read from its text: JSON, TOML and YAML quote it alike."""
    ours = text[text.find(name) :]
    found = re.search(r'"?(?:command|cmd)"?\s*[:=]\s*\[?\s*("(?:[^"\\]|\\.)*")', ours)
    return str(json.loads(found[1])) if found else ""
