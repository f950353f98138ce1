"""Real MCP clients on a workspace of a host: over stdio in a process of its own, and over HTTP."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import HostClient
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspace_mcp import ADDRESS_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE
from handtools.fleet.workspaces import WorkspaceStore
from handtools.mcp.http_access import token_digest
from handtools.mcp.http_server import HttpConfig, McpHttpApp, TokenGrant, TokenGrants
from handtools.runtime.policy import DEFAULTS, Policy

CURRENT, OLDER = "2026-07-28", "legacy"
WEB_TOKEN = "a-token-of-the-web-server-0123456789"
ASKED = {"command": "echo done > asked.txt"}


@pytest.fixture(params=[CURRENT, OLDER])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def hosted(store: WorkspaceStore, **policy: Any) -> AsyncIterator[FleetToolbox]:
    """A workspace on a host of its own."""
    host = WorkspaceHost(store, policy=Policy(**policy))
    server = HostServer(host, {"token": ""})
    client = HostClient(await server.start(f"unix:{store.folder}/socket"), "token")
    try:
        async with FleetToolbox(client, await client.create(store.templates.digests()[0])) as toolbox:
            yield toolbox
    finally:
        await client.aclose()
        await server.aclose()
        await host.aclose()


@asynccontextmanager
async def on_stdio(toolbox: FleetToolbox, era: str, **options: Any) -> AsyncIterator[Client]:
    address, token = await toolbox.client.address_and_token()
    named = {ADDRESS_VARIABLE: address, TOKEN_VARIABLE: token, WORKSPACE_VARIABLE: toolbox.workspace_name}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "handtools.fleet.workspace_mcp"], env=dict(os.environ) | named
    )
    async with Client(server, mode=era, **options) as client:
        yield client


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def answering(decisions: list[str], asked: list[str]) -> Any:
    """A person who answers one form after another."""

    async def answer(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": decisions[len(asked) - 1]})

    return answer


async def test_a_client_works_in_a_workspace_on_a_host(files: WorkspaceStore) -> None:
    async with hosted(files) as toolbox, on_stdio(toolbox, CURRENT) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {each.name for each in toolbox.definitions()}
        assert listed["read"].annotations.read_only_hint and listed["edit"].annotations.destructive_hint
        edit = {"path": "a.txt", "old_string": "line 3\n", "new_string": "three\n"}
        assert not (await client.call_tool("edit", edit)).is_error
        root = files.files_folder(toolbox.workspace_name)
        assert "three\n" in (root / "a.txt").read_text()
        missing = await client.call_tool("read", {"path": "nothing.txt"})
        assert missing.is_error and "nothing.txt" in text(missing)
        assert not (await client.call_tool("undo", {})).is_error
        assert "three" not in (root / "a.txt").read_text()
        assert "Did you mean read" in text(await client.call_tool("raed", {}))


async def test_only_what_there_is_is_offered(files: WorkspaceStore) -> None:
    async with hosted(files) as toolbox, on_stdio(toolbox, OLDER) as client:
        offered = client.server_capabilities
        assert (offered.tools is not None, offered.resources, offered.prompts) == (True, None, None)
        with pytest.raises(MCPError, match=r"[Mm]ethod not found"):
            await client.list_resources()


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_the_clients_person_is_asked_and_the_call_goes_on_on_the_host(
    files: WorkspaceStore, era: str
) -> None:
    asked: list[str] = []
    person = answering(["no", "once"], asked)
    async with (
        hosted(files, defaults=DEFAULTS | {"run": "ask"}) as toolbox,
        on_stdio(toolbox, era, elicitation_callback=person) as client,
    ):
        root = files.files_folder(toolbox.workspace_name)
        assert (await client.call_tool("bash", ASKED)).is_error
        assert not (root / "asked.txt").exists()
        allowed = await client.call_tool("bash", ASKED)
        assert not allowed.is_error, text(allowed)
        assert (root / "asked.txt").read_text() == "done\n"
    assert len(asked) == 2 and "asked.txt" in asked[1]


async def test_a_client_that_can_ask_nobody_is_told_that_the_call_waits(files: WorkspaceStore) -> None:
    async with hosted(files, defaults=DEFAULTS | {"run": "ask"}) as toolbox:
        async with on_stdio(toolbox, OLDER) as client:
            told = await client.call_tool("bash", ASKED)
        assert told.is_error and "Needs the user's approval" in text(told)
        assert len(await toolbox.waiting()) == 1


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_progress_comes_from_the_host_and_the_same_id_runs_once(files: WorkspaceStore) -> None:
    heard: list[str] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(str(message))

    async with (
        hosted(files, defaults=DEFAULTS | {"run": "allow"}) as toolbox,
        on_stdio(toolbox, CURRENT) as client,
    ):
        once = {"command": "echo said; sleep 1; echo once >> log.txt"}
        for _ in range(2):
            done = await client.call_tool(
                "bash", once, progress_callback=hear, meta={"handtools/call_id": "one"}
            )
            assert not done.is_error, text(done)
        assert any("said" in each for each in heard)
        assert (files.files_folder(toolbox.workspace_name) / "log.txt").read_text() == "once\n"


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_cancelled_call_ends_on_the_host(files: WorkspaceStore, era: str) -> None:
    async with (
        hosted(files, defaults=DEFAULTS | {"run": "allow"}) as toolbox,
        on_stdio(toolbox, era) as client,
    ):
        with anyio.fail_after(120):
            with anyio.CancelScope() as waiting:

                async def stop_waiting(*_: object) -> None:
                    assert (await toolbox.client.request("status", {}))["running"] == 1
                    waiting.cancel()

                long = {"command": "echo begun; sleep 600"}
                await client.call_tool("bash", long, progress_callback=stop_waiting)
            assert waiting.cancelled_caught
            while (await toolbox.client.request("status", {}))["running"]:
                await anyio.lowlevel.checkpoint()


async def test_a_token_of_the_http_server_opens_a_workspace_on_a_host(
    files: WorkspaceStore, era: str
) -> None:
    grant = TokenGrant(name="web", sha256=token_digest(WEB_TOKEN), workspace=Path("/nowhere"))
    async with hosted(files) as toolbox:
        site = McpHttpApp(TokenGrants([grant]), HttpConfig(), {"web": toolbox})
        async with (
            site.open() as door,
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(door),
                headers={"authorization": f"Bearer {WEB_TOKEN}"},
            ) as http,
            Client(
                streamable_http_client("http://127.0.0.1:8765/mcp", http_client=http), mode=era
            ) as client,
        ):
            written = await client.call_tool("write", {"path": "n.txt", "content": "over HTTP\n"})
            assert not written.is_error, text(written)
            assert "over HTTP" in text(await client.call_tool("read", {"path": "n.txt"}))
        assert 'tool="write",status="ok"' in site.metrics.text()
    assert files.workspace_names()
