"""A real MCP server over HTTP in a process of its own, with two tokens for one workspace."""

import contextlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.escapes.host.place import Place
from handtools.mcp.http_access import token_digest

ANSWER_SECONDS = 20.0
START_SECONDS = 30.0
_VERSION = "2025-06-18"
_HELLO = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


@dataclass(slots=True)
class Client:
    """One token's client. What the attacker's is told is judged, what the other's is told is its own."""

    place: Place
    port: int
    token: str
    judged: bool
    session: str = ""
    _sent: int = 0

    def call(self, tool: str, meta: dict[str, Any] | None = None, /, **args: Any) -> str:
        """One call of a tool; gives all that was answered, as JSON."""
        params: dict[str, Any] = {"name": tool, "arguments": args}
        return self.ask("tools/call", **(params | ({"_meta": meta} if meta else {})))

    def ask(self, method: str, /, **params: Any) -> str:
        """One request of the protocol; gives all that was answered, as JSON."""
        self._sent += 1
        body = {"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}
        return self.post(json.dumps(body).encode())[1]

    def hello(self) -> None:
        """Open a session."""
        self.ask("initialize", **_HELLO)
        self.post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())

    def post(self, body: bytes, **headers: str) -> tuple[int, str]:
        """Any body; a status of 500 is a bug of ours."""
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.session:
            sent |= {"mcp-session-id": self.session, "mcp-protocol-version": _VERSION}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        ) as line:
            line.request("POST", "/mcp", body, sent)
            answer = line.getresponse()
            said = answer.read().decode("utf-8", "replace")
            self.session = answer.getheader("mcp-session-id") or self.session
        self.note(answer.status, said)
        return answer.status, said

    def raw(self, request: str | bytes, *, most_bytes: int = 1 << 16) -> str:
        """Any bytes on a connection; gives the answer's first line and what follows."""
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS) as line:
            data = b""
            with contextlib.suppress(OSError):
                line.sendall(request.encode("latin-1") if isinstance(request, str) else request)
                line.shutdown(socket.SHUT_WR)
                while len(data) < most_bytes and (part := line.recv(1 << 14)):
                    data += part
        said = data.decode("latin-1")
        status = said[9:12]
        self.note(int(status) if status.isdigit() else 0, said)
        return said

    def note(self, status: int, said: str) -> None:
        if self.judged:
            self.place.tell("said", ["http", status, said])
        if status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
            self.place.tell("bug", f"the server answered 500: {said[:100]}")


@dataclass(slots=True)
class Site:
    """The server, and its two clients: the one whose secrets are sought, and the one that seeks."""

    process: "subprocess.Popen[bytes]"
    victim: Client
    attacker: Client
    words: list[str] = field(default_factory=list)

    def check(self) -> str | None:
        """Whether the server still answers, and how much memory it took."""
        if self.process.poll() is not None:
            return "the server ended"
        if "ok" not in self.attacker.raw(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ):
            return "the server no longer answers"
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:") and int(line.split()[1]) > 1 << 20:
                return f"the server took {int(line.split()[1]) >> 10} MB"
        return None


async def serve(place: Place) -> Site:
    """Start a server; it ends with the attack."""
    place.begin()
    tokens = {"victim": secrets.token_hex(20), "attacker": secrets.token_hex(20)}
    tables = "".join(
        f'[[token]]\nname = "{name}"\nsha256 = "{token_digest(token)}"\nworkspace = "{place.workspace}"\n'
        for name, token in tokens.items()
    )
    file = place.base / "tokens.toml"
    file.write_text(tables)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    line = [
        sys.executable,
        "-m",
        "handtools",
        "serve",
        "--http",
        f"127.0.0.1:{port}",
        "--tokens",
        str(file),
    ]
    process = subprocess.Popen(line, cwd=place.outside, env=os.environ, stderr=subprocess.DEVNULL)
    place.keep(process)
    if not await place.until(lambda: _listens(port), START_SECONDS):
        raise TimeoutError("The server did not start.")
    victim, attacker = (Client(place, port, token, name == "attacker") for name, token in tokens.items())
    victim.hello()
    attacker.hello()
    return Site(process, victim, attacker)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False
