"""Two servers without sessions on one workspace: whichever is asked, a call runs once."""

import anyio
import httpx2
import pytest

from handtools import Call, Reply
from handtools.mcp.remote_toolbox import RemoteToolbox
from tests.e2e.mcp.conftest import CURRENT, appears, sites

pytestmark = pytest.mark.anyio

KEYS = "io.modelcontextprotocol/"


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    with sites(tmp_path_factory.mktemp("replicas")) as start:
        yield start("work", stateless=True), start("work", stateless=True)


@pytest.fixture
def token(replicas):
    return next(iter(replicas[0].folders))


async def posted(site, token, name, args, *, meta=None, timeout=30.0, headers=None, **more):
    """`tools/call` of the current protocol, from a client that can be asked."""
    envelope = {f"{KEYS}protocolVersion": CURRENT, f"{KEYS}clientCapabilities": {"elicitation": {}}}
    params = {"name": name, "arguments": args, "_meta": envelope | (meta or {}), **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    given = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
        "mcp-protocol-version": CURRENT,
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    async with httpx2.AsyncClient() as http:
        answer = await http.post(site.url, json=body, headers=given | (headers or {}), timeout=timeout)
    return answer.json()["result"]


async def test_a_question_of_one_is_answered_at_the_other(replicas, token):
    first, second = replicas
    args = {"path": "one/.envrc", "content": "x\n"}
    asked = await posted(first, token, "write", args)
    assert asked["resultType"] == "input_required"
    yes = {"approval": {"action": "accept", "content": {"decision": "once"}}}
    state = asked["requestState"]
    done = await posted(second, token, "write", args, inputResponses=yes, requestState=state)
    assert not done["isError"], done
    assert (first.folders[token] / "one/.envrc").read_text() == "x\n"
    again = await posted(first, token, "write", args, inputResponses=yes, requestState=state)
    assert again["content"] == done["content"]


async def test_a_pending_call_is_resumed_and_fetched_through_the_other(replicas, token):
    call = Call(tool="write", args={"path": "two/.envrc", "content": "y\n"})
    async with RemoteToolbox(replicas[0].url, token) as one, RemoteToolbox(replicas[1].url, token) as two:
        asked = await one.call(call)
        assert asked.status == "pending"
        assert asked.request.call_id in {approval.call_id for approval in await two.waiting()}
        done = await two.resume(call.id, Reply(allow=True))
        assert done.ok, done.text
        assert await one.call(call) == done


async def test_the_same_id_sent_to_both_at_once_runs_once(replicas, token, tmp_path):
    marks, results = tmp_path / "marks", []
    call = Call(tool="mark", args={"path": str(marks), "seconds": 1.0})

    async def make(site):
        async with RemoteToolbox(site.url, token) as box:
            results.append(await box.call(call))

    async with anyio.create_task_group() as group:
        for site in replicas * 2:
            group.start_soon(make, site)
    assert marks.read_text() == "ran\n"
    assert [result.text for result in results] == ["marked"] * 4


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_an_answer_given_to_both_at_once_runs_the_call_once(replicas, token):
    call = Call(tool="bash", args={"command": "echo ran >> runs; cat runs", "hosts": ["a.invalid"]})
    results = []
    async with RemoteToolbox(replicas[0].url, token) as one, RemoteToolbox(replicas[1].url, token) as two:
        assert (await one.call(call)).status == "pending"

        async def answer(box):
            results.append(await box.resume(call.id, Reply(allow=True)))

        async with anyio.create_task_group() as group:
            for box in (one, two):
                group.start_soon(answer, box)
    assert results[0] == results[1]
    assert results[0].ok, results[0].text
    assert results[0].text.count("ran") == 1


async def test_whoever_reconnects_to_the_other_gets_what_the_first_recorded(replicas, token, tmp_path):
    marks = tmp_path / "marks"
    args, meta = {"path": str(marks), "seconds": 2.0}, {"handtools/call_id": "moved-over"}
    async with anyio.create_task_group() as group:

        async def leave():
            with anyio.move_on_after(30):
                await posted(replicas[0], token, "mark", args, meta=meta)

        group.start_soon(leave)
        await appears(marks)
        group.cancel_scope.cancel()
    result = await posted(replicas[1], token, "mark", args, meta=meta)
    assert result["content"][0]["text"] == "marked"
    assert marks.read_text() == "ran\n"


async def test_a_request_with_an_idempotency_key_runs_once(replicas, token, tmp_path):
    marks = tmp_path / "marks"
    key = {"idempotency-key": "a key with spaces and / in it"}
    for site in replicas * 2:
        result = await posted(site, token, "mark", {"path": str(marks)}, headers=key)
        assert result["content"][0]["text"] == "marked"
    assert marks.read_text() == "ran\n"
