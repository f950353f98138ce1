"""A toolbox of another server, served again: MCP clients work in a workspace two processes away."""

import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from tests.e2e.mcp.conftest import CURRENT, HERE, OLDER, Site, come_up, free_port, sites, text

pytestmark = pytest.mark.anyio

WORKSHOP = str(HERE / "workshop.py")


@pytest.fixture
def origin(tmp_path):
    """The server that has the workspace."""
    with sites(tmp_path) as start:
        yield start("work")


@asynccontextmanager
async def connected(origin, way, **options):
    """A client of a server whose tools are the origin's: on stdio or on HTTP."""
    token = next(iter(origin.folders))
    if way == "stdio":
        words = [WORKSHOP, "remote", origin.url, token]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with Client(server, mode=CURRENT, **options) as client:
            yield client
        return
    port = free_port()
    process = subprocess.Popen([sys.executable, WORKSHOP, "remote", origin.url, token, str(port)])
    try:
        async with come_up(Site(port, process, {})).connect(token, OLDER, **options) as client:
            yield client
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.linux("bubblewrap", "supervisors")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_day_in_a_workspace_that_another_server_has(origin, way):
    folder, asked = next(iter(origin.folders.values())), []
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "odd.txt").write_text("a\u2028data: b\x85c\n")

    async def agree(_context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "once"})

    async with connected(origin, way, elicitation_callback=agree) as client:

        async def done(name, **args):
            result = await client.call_tool(name, args)
            assert not result.is_error, text(result)
            return text(result)

        assert "1\tone" in await done("read", path="a.txt")
        assert "a\u2028data: b\x85c" in await done("read", path="odd.txt")
        await done("edit", path="a.txt", old_string="two", new_string="2")
        assert (folder / "a.txt").read_text() == "one\n2\n"
        assert "one\n2\n" in await done("bash", command="cat a.txt")
        said = await done("bash", command="seq 200000 | sed 's/$/ of many/'")
        assert "100000 of many" not in said
        kept = re.search(r"output:\S+?\.log", said)
        assert "100000 of many" in await done("read", path=kept.group(), start_line=100_000, limit=1)
        await done("write", path=".envrc", content="x\n")
        assert len(asked) == 1 and ".envrc" in asked[0]
        assert (folder / ".envrc").exists()
        await done("undo")
        await done("undo")
        assert not (folder / ".envrc").exists()
        assert (folder / "a.txt").read_text() == "one\ntwo\n"


async def test_calls_fail_while_the_other_server_is_away_and_the_server_stays(origin):
    async with connected(origin, "http") as client:
        origin.process.terminate()
        await anyio.to_thread.run_sync(origin.process.wait, 60)
        failures = []

        async def hear(*_):
            pass

        async def call(options):
            failures.append(await client.call_tool("noop", {}, **options))

        async with anyio.create_task_group() as group:
            named = {"meta": {"handtools/call_id": "named-by-the-client"}}
            for options in ({}, named, named, {"progress_callback": hear}):
                group.start_soon(call, options)
        failures.append(await client.call_tool("noop", {}))
        assert len(failures) == 5
        for failure in failures:
            assert failure.is_error and "Can't reach" in text(failure)
