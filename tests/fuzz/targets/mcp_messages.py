"""MCP messages, over stdio and posted: a message, an answer or an error of the protocol, whatever is sent."""

import asyncio
import json

from mcp.shared.exceptions import MCPError

from handtools.mcp.asgi_responses import HttpRequestHeaders
from handtools.mcp.handshake import CURRENT_PROTOCOL_VERSION, HandshakeResponder
from handtools.mcp.stdio import _all_lines
from handtools.mcp.stdio_session import StdioSession
from handtools.mcp.streamable_http import _classify_request, _error_response, _posted_message
from handtools.mcp.tool_calls import ConnectionTools
from handtools.testing.memory_toolbox import memory_toolbox
from tests.fuzz.drawn_values import DrawnValues

META = {
    "io.modelcontextprotocol/protocolVersion": CURRENT_PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MESSAGES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"_meta": META}},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "read", "arguments": {"path": "a"}},
    },
    {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": META}},
    {"jsonrpc": "2.0", "id": 4, "result": {}},
    {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "x"}},
]
SEEDS = [b"\x00" + b"\n".join(json.dumps(each).encode() for each in MESSAGES) + b"\n"] + [
    b"\x00" + json.dumps(each).encode() + b"\n" for each in MESSAGES
]
WORDS = [
    "jsonrpc", "2.0", "id", "method", "params", "_meta", "initialize", "tools/list", "tools/call", "server/discover",
    "protocolVersion", "result", "error", "code", "message", "prompts/list", "arguments", "name", *META,
    CURRENT_PROTOCOL_VERSION,
]  # fmt: skip
PARSERS = ["handtools.mcp"]
FOUND = {
    "deep arrays as the first message ended the server with RecursionError": b"\x00" + b"[" * 3000 + b"\n",
}
HEADERS = HttpRequestHeaders.of(
    {
        "headers": [
            (b"mcp-protocol-version", CURRENT_PROTOCOL_VERSION.encode()),
            (b"mcp-method", b"tools/list"),
        ]
    }
)


def fuzz(data):
    drawn = DrawnValues(data)
    made = drawn.below(2)
    body = json.dumps(drawn.json(WORDS)).encode() + b"\n" if made else drawn.rest()
    posted(body)
    asyncio.run(heard(body))


def posted(body):
    try:
        message = _posted_message(body, HEADERS)
        if hasattr(message, "id"):
            _classify_request(message, HEADERS)
    except MCPError as problem:
        said, status = _error_response(None, problem)
        assert json.loads(said)["error"]
        assert 400 <= status < 600


class Said(list):
    """The lines that are written to a client."""

    write = list.append

    async def wait_for_room(self):
        pass


async def heard(body):
    """What a client sends is answered, or handed to the SDK as message or as what is wrong with it, line by line."""
    reader = asyncio.StreamReader()
    reader.feed_data(body)
    reader.feed_eof()
    said = Said()
    desk = HandshakeResponder(lambda: {"tools": []}, said.write)
    await desk.greet(reader)
    tools = ConnectionTools(memory_toolbox(tools=()), "", "fuzz")
    session = StdioSession(tools, None, said, lambda: check, desk.silent)
    await session.run(_all_lines(desk.heard, reader))
    for line in said:
        assert json.loads(line).keys() & {"result", "error"}


async def check(messages, _):
    async for message in messages:
        assert isinstance(message, ValueError) or message.message is not None
