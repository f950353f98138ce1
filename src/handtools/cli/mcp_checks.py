"""Checks of the MCP server: does it start, would a client find it, and what do installed clients say."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from handtools.cli.checks import Finding
from handtools.core.errors import UsageError

START_SECONDS = 20.0
SLOW_SECONDS = 3.0
HELLO: tuple[dict[str, Any], ...] = (
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
)


def mcp_findings(root: Path) -> Iterator[Finding]:
    """What keeps a client from using the tools here, the likeliest first."""
    package = _package()
    yield package
    if package.state == "ok":
        yield _start(root)
        yield _text()
    yield _sandbox()
    yield from _clients(root)


def _package() -> Finding:
    try:
        return Finding("mcp package", "ok", f"mcp {version('mcp')}")
    except PackageNotFoundError:
        return Finding("mcp package", "broken", "it is not installed", "pip install 'handtools-slim[mcp]'")


def _start(root: Path) -> Finding:
    """Start the server as a client does, and ask what it offers."""
    # Clients wait for the tools; the other answer only shows that what runs them loads, too.
    listed, loaded = _asked(root, "tools/list", "resources/list")
    if "tools" not in listed.result or "resources" not in loaded.result:
        said = loaded.last_words or "it said nothing"
        return Finding("server", "broken", f"it does not start: {said}", f"Try: handtools mcp {root}")
    told = f"{len(listed.result['tools'])} tools, told after {listed.seconds:.1f} s"
    if listed.seconds > SLOW_SECONDS:
        return Finding(
            "server", "missing", f"{told}, which is slow", "Some clients wait only a few seconds."
        )
    return Finding("server", "ok", told)


def _text() -> Finding:
    """Read a file as a client does: its text must be there whichever field of the result the client forwards."""
    line = f"read by handtools doctor {uuid.uuid4()}"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "folder")
        root.mkdir()
        root.joinpath("line.txt").write_text(f"{line}\n", "utf-8")
        call = {"name": "read", "arguments": {"path": "line.txt"}}
        (read,) = _asked(root, "tools/call", params=call, HANDTOOLS_STATE=str(Path(place, "state")))
    shown = [name for name in ("content", "structuredContent") if name in read.result]
    lost = [name for name in shown if line not in json.dumps(read.result[name])]
    if lost or not shown:
        told = f"a file's text is not in {lost[0]}" if lost else f"nothing can be read: {read.last_words}"
        return Finding(
            "text", "broken", told, "pip install --upgrade handtools, then start the client anew."
        )
    return Finding("text", "ok", "what the model asks for reaches it, whichever field a client forwards")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a server says to one question; its last words on standard error where it has ended."""

    result: dict[str, Any]
    seconds: float
    """Since it was started."""
    last_words: str = ""


def _asked(
    root: Path, *methods: str, params: dict[str, Any] | None = None, **environment: str
) -> list[_Answer]:
    """Start a server as a client does, and put questions to it."""
    command = [sys.executable, "-P", "-m", "handtools", "mcp", str(root.resolve())]
    asked = [
        {"id": number, "method": name, "params": params or {}} for number, name in enumerate(methods, 2)
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in (*HELLO, *asked))
    began, answers = time.perf_counter(), []
    with subprocess.Popen(
        command,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        # A server that says nothing must not keep the doctor waiting.
        late = threading.Timer(START_SECONDS, child.kill)
        late.start()
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(lines.encode())
            child.stdin.flush()
        child.stdout.readline()  # the answer to the greeting
        for _ in methods:
            line = child.stdout.readline()
            result = json.loads(line).get("result", {}) if line.startswith(b"{") else {}
            answers.append(_Answer(result, time.perf_counter() - began))
        late.cancel()
        child.kill()
        said = child.stderr.read().decode(errors="replace").strip().splitlines()
    return [replace(answer, last_words=said[-1]) if said else answer for answer in answers]


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
    from handtools.mcp.clients.edits import written_at
    from handtools.mcp.clients.known import CLIENTS, NAME
    from handtools.mcp.clients.setup import own_tools_are_off, read

    folder = root.resolve()
    for client in CLIENTS.values():
        file = client.file(folder)
        try:
            entry = written_at(client.shape, read(file) or "", client.keys)
            off = own_tools_are_off(client, folder)
        except (OSError, UnicodeDecodeError, UsageError):
            continue
        if entry is None:
            continue
        program = _program(entry)
        if program and shutil.which(program) is None:
            starts = f"{file} starts {program}, which is not"
            if "/" in program:
                yield Finding(client.title, "broken", f"{starts} there", f"handtools install {client.name}")
            else:
                yield Finding(
                    client.title, "missing", f"{starts} on the PATH here", f"uv tool install {NAME}"
                )
        else:
            own = "; its own file and shell tools are off" if off else ""
            yield Finding(client.title, "ok", f"set up in {file}{own}")


def _program(entry: str) -> str:
    """The program that our entry starts, read from its text: JSON, TOML and YAML quote it alike."""
    found = re.search(r'"?(?:command|cmd)"?\s*[:=]\s*\[?\s*("(?:[^"\\]|\\.)*")', entry)
    return str(json.loads(found[1])) if found else ""
