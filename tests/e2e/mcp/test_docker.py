"""The image that the Dockerfile makes, spoken to by the SDK's client over stdio and HTTP."""

import os
import subprocess
from contextlib import asynccontextmanager, contextmanager

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from tests.e2e.mcp.conftest import Site, appears, come_up, free_port, text

IMAGE = os.environ.get("HANDTOOLS_SERVER_IMAGE", "")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not IMAGE, reason="no image of the Dockerfile: see .ci/server-image"),
]


OWNER = f"{os.getuid()}:{os.getgid()}"
TOKEN = "token-of-the-container-0123456789"


def docker(*words):
    return subprocess.run(
        ["docker", *words], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()


async def agree(_context, _params):
    return ElicitResult(action="accept", content={"decision": "once"})


@pytest.fixture
def in_container(folder):
    """Connect to a server in a container without a network, as the owner of the mounted folder."""

    @asynccontextmanager
    async def connect(era):
        words = ["run", "-i", "--rm", "--network", "none", "--user", OWNER, "-v", f"{folder}:/work", IMAGE]
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


@contextmanager
def reached(container):
    """A port of this machine that leads to the server's: what `-p` does, for an engine without a bridge."""
    pid, port = docker("inspect", "--format", "{{.State.Pid}}", container), free_port()
    inside = f"nsenter --net=/proc/{pid}/ns/net socat STDIO TCP:127.0.0.1:8765"
    listening = ["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f'EXEC:"{inside}"']
    with subprocess.Popen(listening, stderr=subprocess.DEVNULL) as process:
        try:
            yield come_up(Site(port, process, {}, name="localhost"))
        finally:
            process.terminate()


@pytest.fixture
def container(folder, monkeypatch):
    """A server over HTTP, started as the Dockerfile says."""
    monkeypatch.setenv("HANDTOOLS_TOKEN", TOKEN)
    about = ["--network", "none", "--user", OWNER, "-e", "HANDTOOLS_TOKEN", "-v", f"{folder}:/work"]
    words = ["serve", "--http", "0.0.0.0:8765", "--allow-host", "localhost", "-C", "/work"]
    name = docker("run", "--detach", *about, IMAGE, *words)
    try:
        yield name
    finally:
        docker("rm", "--force", name)


async def test_the_image_serves_the_mounted_folder_over_http(container, era, folder):
    with reached(container) as site:
        async with site.connect(TOKEN, era, elicitation_callback=agree) as client:
            made = await client.call_tool("write", {"path": "a.txt", "content": "one\n"})
            assert not made.is_error, text(made)
            assert (folder / "a.txt").read_text() == "one\n"
            assert (folder / "a.txt").stat().st_uid == os.getuid()
            assert not (await client.call_tool("undo", {"name": "a.txt"})).is_error
            assert not (folder / "a.txt").exists()


@pytest.mark.parametrize(
    ("host", "token", "status"), [("localhost", "x" * 32, b"401"), ("elsewhere", TOKEN, b"421")]
)
def test_the_image_refuses_who_has_no_token_or_calls_it_by_another_name(container, host, token, status):
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
    )
    with reached(container) as site:
        assert site.send(head.encode()).split()[1] == status


async def test_stopping_the_container_lets_a_running_call_end(container, folder):
    ended = []
    with reached(container) as site:
        async with (
            site.connect(TOKEN, elicitation_callback=agree) as client,
            anyio.create_task_group() as group,
        ):

            async def run():
                script = "touch begun; until [ -e go ]; do read -t 0.1 <> <(:) || :; done; echo done"
                ended.append(await client.call_tool("bash", {"command": script}))

            await client.list_tools()  # the client would ask for it later, when the door is closed
            group.start_soon(run)
            await appears(folder / "begun")
            docker("kill", "--signal", "TERM", container)
            (folder / "go").touch()
        assert "done" in text(ended[0])
    assert docker("wait", container) == "0"
