"""Real servers in processes of their own, and the SDK's client in both eras of the protocol."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent
CURRENT, OLDER = "2026-07-28", "legacy"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    return work


@pytest.fixture(params=[CURRENT, OLDER])
def era(request):
    return request.param


@pytest.fixture
def on_stdio(folder):
    """Connect to the workshop over stdio."""

    @asynccontextmanager
    async def connect(era, *words, **options):
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[str(HERE / "workshop.py"), str(folder), *words],
            env=dict(os.environ),
        )
        async with Client(parameters, mode=era, **options) as client:
            yield client

    return connect


async def appears(path):
    """Return when a file is there: another process makes it, and nothing else tells."""
    with anyio.fail_after(60):
        while not path.exists():
            await anyio.to_thread.run_sync(select.select, [], [], [], 0.02)


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Site:
    """A running HTTP server."""

    port: int
    process: subprocess.Popen
    folders: dict[str, Path]
    name: str = "127.0.0.1"

    @property
    def url(self):
        return f"http://{self.name}:{self.port}/mcp"

    @asynccontextmanager
    async def connect(self, token, era=CURRENT, **options):
        """The SDK's client with a token."""
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, **options) as client:
                yield client

    def send(self, raw, *, wait=10.0):
        """Bytes as they are, and what came back until the server closed or fell silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            return ask(connection, raw)

    def healthy(self):
        raw = f"GET /health HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n\r\n"
        return b'{"status": "ok"}' in self.send(raw.encode())


def ask(connection, raw):
    """Send the bytes, and read one whole answer: its head and its body may come apart."""
    got = b""
    try:
        connection.sendall(raw)
        while part := connection.recv(65536):
            got += part
            head, ended, body = got.partition(b"\r\n\r\n")
            if ended and b"content-length: " in head.lower():
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                if len(body) >= size:
                    break
    except (ConnectionResetError, BrokenPipeError):
        pass
    return got


@contextmanager
def sites(where):
    """Start workshops over HTTP with one folder per token; `ann@work` and `bob@work` share one."""
    running = []

    def start(*names, **options):
        port, folders, owners = free_port(), {}, {}
        for words in names or ("work",):
            name, _, shared = words.partition("@")
            token = f"token-of-{name}-0123456789abcdef"
            folders[token], owners[token] = where / (shared or name), name
            folders[token].mkdir(exist_ok=True)
        told = {token: str(folder) for token, folder in folders.items()}
        plan = {"port": port, "tokens": told, "options": {"owners": owners, **options}}
        command = [sys.executable, str(HERE / "workshop.py"), "http", json.dumps(plan)]
        process = subprocess.Popen(command, env=os.environ | {"HANDTOOLS_STATE": str(where / "state")})
        running.append(process)
        return come_up(Site(port, process, folders))

    try:
        yield start
    finally:
        for process in running:
            process.terminate()
            process.wait(60)


def come_up(site):
    """Return when a server answers."""
    until = time.monotonic() + 90
    while time.monotonic() < until and site.process.poll() is None:
        with suppress(ConnectionRefusedError):
            if site.healthy():
                return site
        select.select([], [], [], 0.05)
    raise AssertionError("the server did not come up")


@pytest.fixture
def on_http(tmp_path):
    with sites(tmp_path) as start:
        yield start
