"""The image that the Dockerfile makes, spoken to by the SDK's client over stdio."""

import os
import subprocess
from contextlib import asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from tests.e2e.mcp.conftest import text

IMAGE = os.environ.get("HANDTOOLS_SERVER_IMAGE", "")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not IMAGE, reason="no image of the Dockerfile: see .ci/server-image"),
]


async def agree(_context, _params):
    return ElicitResult(action="accept", content={"decision": "once"})


@pytest.fixture
def in_container(folder):
    """Connect to a server in a container without a network, as the owner of the mounted folder."""

    @asynccontextmanager
    async def connect(era):
        owner = f"{os.getuid()}:{os.getgid()}"
        words = ["run", "-i", "--rm", "--network", "none", "--user", owner, "-v", f"{folder}:/work", IMAGE]
        parameters = StdioServerParameters(command="docker", args=words, env=dict(os.environ))
        async with Client(parameters, mode=era, elicitation_callback=agree) as client:
            yield client

    return connect


async def test_the_image_serves_the_mounted_folder(in_container, era, folder):
    async with in_container(era) as client:
        assert {"read", "edit", "bash", "undo"} <= {tool.name for tool in (await client.list_tools()).tools}
        (folder / "a.txt").write_text("one\n")
        edited = await client.call_tool("edit", {"path": "a.txt", "old_string": "one", "new_string": "two"})
        assert not edited.is_error, text(edited)
        assert (folder / "a.txt").read_text() == "two\n"
        assert not (await client.call_tool("undo", {"name": "a.txt"})).is_error
        assert (folder / "a.txt").read_text() == "one\n"


async def test_a_command_in_the_image_says_that_it_wrote_in_place_and_is_undone(in_container, era, folder):
    async with in_container(era) as client:
        ran = await client.call_tool("bash", {"command": "pwd; echo made > made.txt"})
        assert not ran.is_error, text(ran)
        assert "/work" in text(ran)
        assert "It wrote in place" in text(ran)
        assert (folder / "made.txt").read_text() == "made\n"
        assert not (await client.call_tool("undo", {"name": "made.txt"})).is_error
        assert not (folder / "made.txt").exists()


@pytest.mark.parametrize("user", [(), ("--user", "4242:4242")], ids=["its own", "any other"])
def test_the_doctor_of_the_image_says_what_confines_there(user):
    words = ["docker", "run", "--rm", "--network", "none", *user, IMAGE, "doctor", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert "bwrap can't confine here" in said.stdout, said
    assert "landlock" in said.stdout
