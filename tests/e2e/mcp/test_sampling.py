"""Sampling: `edit_agent` with a model that the client lends, over the real client."""

import os
import sys
from contextlib import asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, TextContent

from tests.e2e.mcp.conftest import OLDER

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
ANSWER = "<old_1>\nreturn 1\n</old_1>\n<new_1>\nreturn 2\n</new_1>\n<done_1/>"


@asynccontextmanager
async def connect(folder, **options):
    words = ["-m", "handtools", "mcp", str(folder), "--preset", "everything", "--sampling"]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(parameters, mode=OLDER, **options) as client:
        yield client


async def edited(client):
    return await client.call_tool("edit_agent", {"path": "one.py", "instructions": "Return 2."})


async def test_the_clients_model_makes_the_edits(folder):
    (folder / "one.py").write_text("def one():\n    return 1\n")
    asked = []

    async def model(_context, params):
        asked.append(params.messages[0].content.text)
        return CreateMessageResult(
            role="assistant", content=TextContent(type="text", text=ANSWER), model="script"
        )

    async with connect(folder, sampling_callback=model) as client:
        assert "edit_agent" in {tool.name for tool in (await client.list_tools()).tools}
        result = await edited(client)
    assert not result.is_error, result.content
    assert (folder / "one.py").read_text() == "def one():\n    return 2\n"
    assert "Return 2." in asked[0]


async def test_a_client_without_a_model_is_told_and_nothing_is_written(folder):
    (folder / "one.py").write_text("def one():\n    return 1\n")
    async with connect(folder) as client:
        result = await edited(client)
    assert result.is_error
    assert "does not support MCP sampling" in result.content[0].text
    assert (folder / "one.py").read_text() == "def one():\n    return 1\n"
