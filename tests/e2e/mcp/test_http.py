"""The SDK's client against an HTTP server, in both eras of the protocol."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest

from handtools.mcp.tool_and_result_json import DETAILS_META_KEY
from tests.e2e.mcp.conftest import CURRENT, OLDER, appears, text
from tests.e2e.mcp.test_stdio import CALL_ID, answering

pytestmark = pytest.mark.anyio


@pytest.fixture
def site(on_http):
    return on_http("work")


@pytest.fixture
def token(site):
    return next(iter(site.folders))


async def test_tools_work_over_http(site, token, era):
    async with site.connect(token, era) as client:
        await client.list_tools()
        made = await client.call_tool("write", {"path": "a.txt", "content": "one\n"})
        assert not made.is_error, text(made)
        assert "one" in text(await client.call_tool("read", {"path": "a.txt"}))
        wrong = await client.call_tool("read", {"pth": "a.txt"})
        assert "did you mean `path`?" in text(wrong)
        assert (await client.call_tool("picture", {})).content[0].type == "image"
        large = await client.call_tool("large", {"bytes": 1_000_000}, meta={DETAILS_META_KEY: True})
        page = await client.call_tool("read", {"path": large.meta["handtools/output"], "start_line": 9_000})
        assert "9000\t0123456789" in text(page)


async def test_progress_arrives_before_the_result(site, token, era):
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    async with site.connect(token, era) as client:
        await client.call_tool("steps", {"steps": 10}, progress_callback=hear)
        assert heard == [f"step {number}" for number in range(10)]


async def test_approval_travels_over_http(site, token, era):
    asked = []
    async with site.connect(token, era, elicitation_callback=answering("once", asked)) as client:
        result = await client.call_tool("write", {"path": ".envrc", "content": "x\n"})
    assert not result.is_error, text(result)
    assert len(asked) == 1


async def test_a_call_with_an_id_survives_a_lost_connection_and_never_runs_twice(
    site, token, era, tmp_path
):
    marks = tmp_path / "marks"
    args, meta = {"path": str(marks), "seconds": 1.5}, {CALL_ID: "lost-and-found"}
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "mark",
                "arguments": args,
                "_meta": meta
                | {
                    "io.modelcontextprotocol/protocolVersion": CURRENT,
                    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        }
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": CURRENT,
            "mcp-method": "tools/call",
            "mcp-name": "mark",
        }
        with anyio.move_on_after(20) as scope, pytest.raises(httpx2.ReadTimeout):
            await http.post(site.url, json=body, headers=headers, timeout=0.7)
        assert not scope.cancelled_caught
    await appears(marks)
    async with site.connect(token, era) as client:
        assert text(await client.call_tool("mark", args, meta=meta)) == "marked"
    assert marks.read_text() == "ran\n"


async def test_cancelling_reaches_the_tool(site, token, era):
    begun = anyio.Event()

    async def hear(*_):
        begun.set()

    async with site.connect(token, era) as client:
        with anyio.move_on_after(30) as scope:

            async def stop():
                await begun.wait()
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                script = "echo begun; sleep 30"
                await client.call_tool("bash", {"command": script}, progress_callback=hear)
        with anyio.fail_after(60):
            while True:
                journal = await client.read_resource("handtools://journal")
                calls = [c for c in json.loads(journal.contents[0].text) if c["tool"] == "bash"]
                if calls:
                    break
    assert calls[0]["status"] == "cancelled"


async def test_each_token_opens_its_own_workspace(on_http):
    site = on_http("first", "second")
    (first, second) = site.folders
    async with site.connect(first) as client:
        await client.call_tool("write", {"path": "mine.txt", "content": "secret\n"})
    async with site.connect(second) as client:
        assert (await client.call_tool("read", {"path": "mine.txt"})).is_error
        journal = json.loads((await client.read_resource("handtools://journal")).contents[0].text)
    assert {call["tool"] for call in journal} == {"read"}
    assert (site.folders[first] / "mine.txt").exists()
    assert not (site.folders[second] / "mine.txt").exists()


async def test_a_session_of_one_token_is_closed_to_another(on_http):
    site = on_http("first", "second")
    first, second = site.folders
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient() as http:
        opened = await http.post(
            site.url, json=hello, headers=accept | {"authorization": f"Bearer {first}"}
        )
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        stolen = await http.post(
            site.url, json=listing, headers=accept | session | {"authorization": f"Bearer {second}"}
        )
    assert stolen.status_code == 404


async def test_questions_for_a_person_are_not_put_to_the_client(on_http):
    site = on_http("work", work={"asks": "person"})
    (token,) = site.folders
    asked = []
    async with site.connect(token, elicitation_callback=answering("once", asked)) as client:
        result = await client.call_tool("write", {"path": ".envrc", "content": "x\n"})
    assert result.is_error
    assert "handtools approve" in text(result)
    assert asked == []


async def test_stopping_lets_a_running_call_end(on_http, tmp_path):
    site = on_http("work")
    (token,) = site.folders
    args = {"path": str(tmp_path / "marks"), "seconds": 1.0}
    async with site.connect(token) as client, anyio.create_task_group() as group:
        await client.list_tools()  # the client would fetch it after the call, when the door is closed

        async def stop():
            await appears(tmp_path / "marks")
            site.process.send_signal(signal.SIGTERM)

        group.start_soon(stop)
        assert text(await client.call_tool("mark", args)) == "marked"
    assert await anyio.to_thread.run_sync(lambda: site.process.wait(60)) == 0


async def test_a_call_that_outlasts_the_grace_is_recorded_as_cancelled(on_http, tmp_path):
    site = on_http("work", grace=0.2)
    (token,) = site.folders
    args = {"path": str(tmp_path / "marks"), "seconds": 60.0}
    with pytest.raises(Exception):  # noqa: B017 - whichever way a client says that its server went away
        async with site.connect(token) as client, anyio.create_task_group() as group:

            async def stop():
                await appears(tmp_path / "marks")
                site.process.send_signal(signal.SIGTERM)

            group.start_soon(stop)
            await client.call_tool("mark", args, meta={CALL_ID: "too-long"})
    await anyio.to_thread.run_sync(lambda: site.process.wait(60))
    program = [Path(sys.executable).with_name("handtools"), "log", "--json", "-C", site.folders[token]]
    environment = os.environ | {"HANDTOOLS_STATE": str(tmp_path / "state")}
    log = subprocess.run(program, env=environment, stdout=subprocess.PIPE, check=True).stdout
    assert [json.loads(row)["status"] for row in log.splitlines()] == ["cancelled"]


async def test_health_and_metrics_tell_how_it_goes(site, token):
    async with site.connect(token) as client:
        await client.call_tool("noop", {})
        await client.call_tool("no-such-tool-" + "x" * 100, {})
    async with httpx2.AsyncClient() as http:
        root = site.url.removesuffix("/mcp")
        assert (await http.get(f"{root}/health")).json() == {"status": "ok"}
        assert (await http.get(f"{root}/metrics")).status_code == 401
        told = (await http.get(f"{root}/metrics", headers={"authorization": f"Bearer {token}"})).text
    assert 'handtools_calls_total{tool="noop",status="ok"} 1' in told
    assert 'tool="unknown",status="error"} 1' in told
    assert "handtools_running 0" in told


@pytest.mark.parametrize("era", [OLDER])
async def test_a_request_sent_again_in_its_session_is_the_same_call(site, token, era, tmp_path):
    marks = tmp_path / "marks"
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    call = {"name": "mark", "arguments": {"path": str(marks)}}
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        http.headers["mcp-session-id"] = (await http.post(site.url, json=opening)).headers["mcp-session-id"]
        http.headers["mcp-protocol-version"] = "2025-11-25"
        await http.post(site.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        for _ in range(3):
            request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
            assert "marked" in (await http.post(site.url, json=request)).text
    assert marks.read_text() == "ran\n"
