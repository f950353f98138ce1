"""The MCP server against a bare one of the same SDK: round trips, cold start, many clients."""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure, bound, gathered
from handtools.text.token_estimate import estimate_tokens

TOKEN = "bench-token-0123456789abcdef0123"
LIST_TOKENS = 3_500
"""What a client may have to tell its model about the coding tools (decision 13)."""
CURRENT, VERSION = "2026-07-28", "2025-11-25"
"""The protocol of today, which knows no session, and the last that began with a handshake."""
OVER_BARE = {
    ("stdio", VERSION): 1.3,
    ("http", CURRENT): bound(1.2),
    ("http", VERSION): bound(0.85),
}
"""A no-op over that of the bare server, in time and in processor time; over HTTP of 2026-11-15."""
BARE = """
import sys, anyio
import mcp_types as types
from mcp.server.lowlevel import Server

async def listed(ctx, params):
    noop = types.Tool(name="noop", input_schema={"type": "object", "properties": {}})
    return types.ListToolsResult(tools=[noop])

async def called(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="Nothing was done.", type="text")])

server = Server("bare", on_list_tools=listed, on_call_tool=called)

async def stdio():
    from mcp.server.stdio import stdio_server
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

if len(sys.argv) > 1:
    import uvicorn
    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="warning")
else:
    anyio.run(stdio)
"""
OURS = """
import sys
from pathlib import Path
from pydantic import BaseModel
from handtools import Context, Result, Toolbox, local_workspace, tool

class Nothing(BaseModel): ...

@tool(effects=("read",))
async def noop(ctx: Context, params: Nothing) -> Result[Nothing]:
    "Do nothing."
    return Result("Nothing was done.", Nothing())

from handtools.toolbox import CODING
root = Path(sys.argv[1])
box = Toolbox([*CODING, noop], workspace=local_workspace(root))
if len(sys.argv) > 2:
    import anyio
    from handtools.mcp.http_access import token_digest
    from handtools.mcp.http_server import HttpConfig, McpHttpApp, TokenGrant, TokenGrants, run_http_server
    grants = TokenGrants([TokenGrant(name="bench", sha256=token_digest(sys.argv[3]), workspace=root)])
    anyio.run(run_http_server, McpHttpApp(grants, HttpConfig(port=int(sys.argv[2])), {"bench": box}))
else:
    from handtools.mcp.stdio import serve_stdio
    serve_stdio(box, root)
"""
KEYS = "io.modelcontextprotocol/"
ENVELOPE = {f"{KEYS}protocolVersion": CURRENT, f"{KEYS}clientCapabilities": {}}
HELLO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--npm", type=Path, help="folder whose node_modules holds other servers to start")


def run(options: argparse.Namespace) -> list[Figure]:
    """All figures; `--quick` takes fewer rounds."""
    return gathered(lambda: _figures(quick=options.quick, npm=options.npm))


async def _figures(*, quick: bool, npm: Path | None) -> AsyncIterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        os.environ["HANDTOOLS_STATE"] = str(Path(place) / "state")
        root = Path(place, "work")
        root.mkdir()
        for figure in _starts(root, rounds=3 if quick else 11, npm=npm):
            yield figure
        for clients in (1, 16):
            for kind, version in (("stdio", VERSION), ("http", CURRENT), ("http", VERSION)):
                for figure in await _round_trips(
                    kind, root, clients, version=version, rounds=20 if quick else 40
                ):
                    yield figure
        async for figure in _crowd(root, clients=16 if quick else 64, calls=25 if quick else 200):
            yield figure


def _starts(root: Path, *, rounds: int, npm: Path | None) -> Iterator[Figure]:
    """From the start of the process to the answer to the first `tools/list`."""
    handtools = str(Path(sys.executable).with_name("handtools"))
    commands = {"ours": [handtools, "mcp", str(root)], "bare": [sys.executable, "-c", BARE]}
    if npm is not None:
        scripts = {
            "filesystem": "@modelcontextprotocol/server-filesystem/dist/index.js",
            "commander": "@wonderwhy-er/desktop-commander/dist/index.js",
        }
        for name, script in scripts.items():
            program = npm / "node_modules" / script
            if program.exists():
                commands[name] = ["node", str(program), str(root)]
    taken: dict[str, list[float]] = {name: [] for name in commands}
    listed = b""
    for _ in range(rounds):
        for name, command in commands.items():
            seconds, answer = _start(command)
            taken[name].append(seconds)
            listed = answer if name == "ours" else listed
    told = json.dumps(json.loads(listed)["result"]["tools"], separators=(",", ":"))
    yield Figure(
        name="tools/list, coding tools", value=estimate_tokens(told), unit="tokens", goal=LIST_TOKENS
    )
    middle = {name: statistics.median(seconds) * 1000 for name, seconds in taken.items()}
    ratio = statistics.median(o / b for o, b in zip(taken["ours"], taken["bare"], strict=True))
    name = "cold start to the first tools/list"
    yield Figure(name=name, value=middle["bare"] * ratio, unit="ms", baseline=middle["bare"], goal=1.25)
    yield Figure(name=f"{name}, fastest", value=min(taken["ours"]) * 1000, unit="ms")
    for other in commands.keys() - {"ours", "bare"}:
        yield Figure(name=f"{name}: {other}", value=middle[other], unit="ms")


def _start(command: list[str]) -> tuple[float, bytes]:
    """The seconds until the tools are told, and the line that tells them."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin
        assert child.stdout
        for message in (
            {"id": 1, "method": "initialize", "params": HELLO},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list", "params": {}},
        ):
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        child.stdin.flush()
        while line := child.stdout.readline():
            if line.startswith(b"{") and json.loads(line).get("id") == 2:
                break
        taken = time.perf_counter() - began
        child.kill()
        return taken, line


class Pipe:
    """A client over stdio, as thin as can be: what is measured is the server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.sent = 0

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.sent += 1
        message = {"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        while line := await self.process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self.sent:
                return answer
        raise EOFError


class Post:
    """A client over HTTP, on a connection of its own that stays open from the first request on."""

    def __init__(self, port: int, version: str) -> None:
        self.port, self.version = port, version
        self.sent = 0
        self.session = ""
        self.connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.sent += 1
        if self.version == CURRENT:
            params = {**params, "_meta": ENVELOPE}
        return await self.send({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params})

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(message).encode()
        lines = [
            "POST /mcp HTTP/1.1", f"host: 127.0.0.1:{self.port}", f"authorization: Bearer {TOKEN}",
            "content-type: application/json", "accept: application/json, text/event-stream",
            f"content-length: {len(body)}", f"mcp-protocol-version: {self.version}",
        ]  # fmt: skip
        if self.version == CURRENT:
            lines += [f"mcp-method: {message['method']}", f"mcp-name: {message['params']['name']}"]
        lines += [f"mcp-session-id: {self.session}"] if self.session else []
        # Servers hang up on who connects and says nothing, as this one would while the other server starts.
        self.connection = self.connection or await _connected(self.port)
        reader, writer = self.connection
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if "mcp-session-id: " in head:
            self.session = head.split("mcp-session-id: ")[1].split("\r\n")[0]
        whole = await _rest(head, reader)
        data = [line[5:] for line in whole.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        text = data[-1] if data else whole
        answer: dict[str, Any] = json.loads(text) if text.strip() else {}
        return answer


async def _rest(head: str, reader: asyncio.StreamReader) -> bytes:
    if "content-length: " in head:
        size = int(head.split("content-length: ")[1].split("\r\n", maxsplit=1)[0])
        return await reader.readexactly(size)
    if "transfer-encoding: chunked" not in head:
        return b""
    whole = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        whole += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return whole


@asynccontextmanager
async def _server(
    kind: str, root: Path, *, ours: bool, clients: int, version: str = VERSION
) -> AsyncIterator[tuple[list[Any], list[int]]]:
    """Connected clients, and the processes that serve them: one for HTTP, one each for stdio."""
    program = ["-c", OURS, str(root)] if ours else ["-c", BARE]
    async with AsyncExitStack() as stack:
        connected: list[Any] = []
        serving: list[int] = []
        if kind == "stdio":
            for number in range(clients):
                # A client that starts a server of its own has a folder of its own.
                if ours:
                    program[-1] = str(root.with_name(f"{kind}-{number}"))
                    Path(program[-1]).mkdir(exist_ok=True)
                process = await asyncio.create_subprocess_exec(
                    sys.executable, *program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 24
                )
                stack.push_async_callback(_ended, process)
                serving.append(process.pid)
                connected.append(Pipe(process))
        else:
            port = _free_port()
            more = [str(port), TOKEN] if ours else [str(port)]
            process = await asyncio.create_subprocess_exec(sys.executable, *program, *more)
            stack.push_async_callback(_ended, process)
            serving.append(process.pid)
            (await _connected(port))[1].close()
            connected += [Post(port, version) for _ in range(clients)]
        for client in connected if version == VERSION else ():
            await client.ask("initialize", HELLO)
            if isinstance(client, Post):
                await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            else:
                client.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        yield connected, serving


async def _round_trips(
    kind: str, root: Path, clients: int, *, rounds: int, version: str
) -> tuple[Figure, Figure]:
    """Calls of a tool that does nothing, ours and bare in turn: their time, and what the servers spend on them.

    On a busy machine a server with more threads gets more of it, so the second figure tells more there.
    """
    calls = 15 if clients == 1 else 3
    # Sixteen Python processes do not fit this machine: stdio clients are few where each has a server of its own.
    processes = min(clients, 4) if kind == "stdio" else clients
    async with (
        _server(kind, root, ours=True, clients=processes, version=version) as (ours, our_pids),
        _server(kind, root, ours=False, clients=processes, version=version) as (bare, bare_pids),
    ):
        share = clients // processes

        async def burst(client: Any) -> None:
            for _ in range(calls * share):
                answer = await client.ask("tools/call", {"name": "noop", "arguments": {}})
                assert not answer["result"].get("isError"), answer

        async def timed(connected: list[Any]) -> float:
            began = time.perf_counter()
            await asyncio.gather(*(burst(client) for client in connected))
            return (time.perf_counter() - began) / (calls * clients) * 1000

        await timed(ours), await timed(bare)
        before = [_spent(pids) for pids in (our_pids, bare_pids)]
        pairs = [(await timed(ours), await timed(bare)) for _ in range(rounds)]
        spent = [
            (_spent(pids) - seconds) / (rounds * calls * clients) * 1000
            for pids, seconds in zip((our_pids, bare_pids), before, strict=True)
        ]
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    baseline = statistics.median(theirs for _, theirs in pairs)
    name = f"no-op over {kind}, {version}, {clients} client{'s' if clients > 1 else ''}"
    goal = OVER_BARE[kind, version]
    return (
        Figure(name=name, value=baseline * ratio, unit="ms", baseline=baseline, goal=goal),
        Figure(name=f"{name}: processor", value=spent[0], unit="ms", baseline=spent[1], goal=goal),
    )


async def _crowd(root: Path, *, clients: int, calls: int) -> AsyncIterator[Figure]:
    """Many clients with mixed calls: no error, and nothing is left behind."""
    (root / "shared.txt").write_text("word\n" * 200)
    async with _server("http", root, ours=True, clients=clients) as (connected, (pid,)):
        errors = 0

        async def work(number: int, client: Any, count: int) -> None:
            nonlocal errors
            await client.ask(
                "tools/call", {"name": "write", "arguments": {"path": f"{number}.txt", "content": "0\n"}}
            )
            for step in range(count):
                name, args = _mixed(number, step)
                answer = await client.ask("tools/call", {"name": name, "arguments": args})
                errors += "result" not in answer or bool(answer["result"].get("isError"))

        await asyncio.gather(*(work(n, c, 10) for n, c in enumerate(connected[:4])))
        for number in range(4):
            (root / f"{number}.txt").unlink()
        before = _held(pid)
        began = time.perf_counter()
        await asyncio.gather(*(work(n, c, calls) for n, c in enumerate(connected)))
        taken = time.perf_counter() - began
        after = _held(pid)
    total = clients * (calls + 1)
    name = f"{clients} clients x {calls} mixed calls"
    yield Figure(name=f"{name}: errors", value=errors, unit="", goal=0)
    yield Figure(name=f"{name}: calls per second", value=total / taken, unit="/s")
    yield Figure(name=f"{name}: memory kept", value=(after[0] - before[0]) / 1024, unit="MB", goal=64)
    yield Figure(name=f"{name}: file handles kept", value=after[1] - before[1], unit="", goal=8)
    yield Figure(name=f"{name}: processes kept", value=after[2] - before[2], unit="", goal=0)


def _mixed(number: int, step: int) -> tuple[str, dict[str, Any]]:
    own = f"{number}.txt"
    match step % 5:
        case 0:
            return "read", {"path": "shared.txt"}
        case 1:
            return "edit", {"path": own, "old_string": str(step // 5), "new_string": str(step // 5 + 1)}
        case 2:
            return "list", {}
        case 3:
            return "read", {"path": own}
        case _:
            return "noop", {}


def _spent(pids: list[int]) -> float:
    """Seconds of processor time that the processes have used, with their threads that ended."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(ticks) for used in fields for ticks in used[11:13]) / os.sysconf("SC_CLK_TCK")


def _held(pid: int) -> tuple[int, int, int]:
    """Resident kB, open files and child processes."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    children = sum(
        len(Path(task, "children").read_text().split()) for task in Path(f"/proc/{pid}/task").iterdir()
    )
    return resident, files, children


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for _ in range(600):
        try:
            return await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    raise TimeoutError


async def _ended(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.wait()
