"""A toolbox on another machine behaves as one in this process."""

import contextlib
import threading

import anyio
import httpx2
import pytest

from handtools import Call, CancelToken, Policy, Reply, Rule, UsageError
from handtools.core.errors import HostError
from handtools.core.events import Settled
from handtools.mcp.remote_toolbox import RemoteToolbox
from handtools.runtime.policy import DEFAULTS
from tests.e2e.mcp.conftest import appears, sites

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with sites(tmp_path_factory.mktemp("sites")) as start:
        yield start("first", "second")


@pytest.fixture
async def box(site):
    async with RemoteToolbox(site.url, next(iter(site.folders))) as box:
        yield box


async def test_calls_give_whole_results(box):
    call = Call(tool="write", args={"path": "a.txt", "content": "one\n"}, session="s", turn="1")
    made = await box.call(call)
    assert made.ok, made.text
    assert [touched.path for touched in made.changes.touched] == ["a.txt"]
    assert await box.call(call) == made
    wrong = await box.call("read", {"pth": 1})
    assert wrong.fault.code == "invalid_input"
    assert (await box.call("undo", {"scope": "call", "name": call.id})).ok
    assert (await box.call("read", {"path": "a.txt"})).fault.code == "not_found"


async def test_calls_are_counted_in_the_metrics(box, site):
    async def counted():
        headers = {"authorization": f"Bearer {next(iter(site.folders))}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            told = (await http.get(f"{site.url.removesuffix('/mcp')}/metrics")).text
        rows = [row.rpartition(" ") for row in told.splitlines()]
        return {name: int(count) for name, _, count in rows if "calls_total{" in name}

    before = await counted()
    assert (await box.call("noop", {})).ok
    assert not (await box.call("no-such-tool", {})).ok
    after = await counted()
    assert {
        name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name)
    } == {
        'handtools_calls_total{tool="noop",status="ok"}': 1,
        'handtools_calls_total{tool="unknown",status="error"}': 1,
    }


async def test_pending_calls_are_listed_and_resumed(box, site):
    asked = await box.call("write", {"path": ".envrc", "content": "x\n"})
    assert asked.status == "pending"
    assert asked.request.call_id in {approval.call_id for approval in await box.waiting()}
    async with RemoteToolbox(site.url, list(site.folders)[1]) as other:
        assert await other.waiting() == []
    done = await box.resume(asked.request.call_id, Reply(allow=True))
    assert done.ok, done.text
    assert [a for a in await box.waiting() if a.call_id == asked.request.call_id] == []


async def test_an_answer_in_hand_answers_the_question_of_the_call(box, site):
    call = Call(tool="write", args={"path": "in-hand/.envrc", "content": "x\n"})
    assert (await box.call(call)).status == "pending"
    done = await box.call(call, reply=Reply(allow=True))
    assert done.ok, done.text
    at_once = await box.call(
        "write", {"path": "at-once/.envrc", "content": "x\n"}, reply=Reply(allow=False)
    )
    assert at_once.status == "denied"
    assert not [one for one in await box.waiting() if "in-hand" in one.title or "at-once" in one.title]


async def test_a_withdrawn_question_waits_no_more_and_another_token_cannot_withdraw_it(box, site):
    asked = (await box.call("write", {"path": "withdrawn/.envrc", "content": "x\n"})).request
    async with RemoteToolbox(site.url, list(site.folders)[1]) as other:
        assert not await other.withdraw(asked.call_id)
    assert asked.call_id in {approval.call_id for approval in await box.waiting()}
    assert await box.withdraw(asked.call_id)
    assert not await box.withdraw(asked.call_id)
    assert asked.call_id not in {approval.call_id for approval in await box.waiting()}


async def test_tools_have_other_names_from_here(box):
    async with box.renamed(lambda name: f"ht_{name}") as prefixed:
        described = {one.name: one.description for one in prefixed.definitions()}
        assert "ht_read" in described
        assert "`edit`" not in described["ht_write"]
        assert (await prefixed.call("ht_now", {})).ok
        assert (await prefixed.why("ht_read", {"path": ".env"})).verdict == "deny"
        narrowed = prefixed.under(Policy(block=("edit",)))
        assert "ht_edit" not in {one.name for one in narrowed.definitions()}
    with pytest.raises(UsageError):
        box.renamed(lambda name: "one")


async def test_what_is_offered_and_why(box):
    offered = {definition.name: definition for definition in box.definitions("strict")}
    assert offered["read"].reads_only
    assert offered["read"].input_schema["additionalProperties"] is False
    decision = await box.why("read", {"path": ".env"})
    assert (decision.verdict, decision.rule) == ("deny", "private")


async def test_listeners_hear_of_the_calls_made_here(box):
    heard, ended = [], threading.Event()

    def listen(event):
        heard.append(type(event).__name__)
        if isinstance(event, Settled):
            ended.set()

    box.listen(listen)
    assert (await box.call("write", {"path": "heard.txt", "content": "x\n"})).ok
    assert await anyio.to_thread.run_sync(ended.wait, 10)
    assert heard == ["Started", "Changed", "Settled"]


async def test_another_agent_works_under_a_policy_that_only_narrows(box):
    frozen = Rule("frozen", "deny", "It stays.", effects=frozenset({"change"}), paths=("kept/**",))
    wide = Rule("wide", "allow", "All of it.", paths=("**",))
    policy = Policy(rules=(frozen, wide), block=("bash",), defaults=dict.fromkeys(DEFAULTS, "allow"))
    async with contextlib.aclosing(box.under(policy)) as narrow:
        assert "bash" not in {definition.name for definition in narrow.definitions()}
        denied = await narrow.call("write", {"path": "kept/a.txt", "content": "x\n"})
        assert (denied.status, denied.fault.code) == ("denied", "denied")
        assert (await narrow.call("bash", {"command": "true"})).fault.code == "unknown_tool"
        # What the token's policy asks about or denies, no policy of a client allows.
        assert (await narrow.why("read", {"path": ".env"})).verdict == "deny"
        assert (await narrow.call("write", {"path": "narrow/.envrc", "content": "x"})).status == "pending"
    assert (await box.call("write", {"path": "kept/a.txt", "content": "x\n"})).ok


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_client_that_states_nothing_asks_no_more_than_the_token(box):
    async with contextlib.aclosing(box.under(Policy())) as silent:
        assert (await silent.why("bash", {"command": "true"})).verdict == "allow"
    async with contextlib.aclosing(box.under(Policy(defaults={"run": "ask"}))) as careful:
        assert (await careful.why("bash", {"command": "true"})).verdict == "ask"


async def test_an_approver_answers_from_here(box):
    asked = []

    async def agree(approval):
        asked.append(approval.title)
        return Reply(allow=True)

    async with contextlib.aclosing(box.under(Policy(), approver=agree)) as attended:
        done = await attended.call("write", {"path": "agreed/.envrc", "content": "x\n"})
    assert done.ok, done.text
    assert len(asked) == 1


async def test_a_token_cancels_the_call_there(box, tmp_path):
    token, marks = CancelToken(), tmp_path / "marks"
    async with anyio.create_task_group() as group:

        async def stop():
            await appears(marks)
            token.cancel()

        group.start_soon(stop)
        result = await box.call("mark", {"path": str(marks), "seconds": 60}, cancel=token)
    assert result.status == "cancelled"


async def test_whoever_stops_waiting_cancels_the_call_there(box, tmp_path):
    marks = tmp_path / "marks"
    call = Call(tool="mark", args={"path": str(marks), "seconds": 60})

    async def run_until_marked():
        with anyio.move_on_after(30) as scope:

            async def stop():
                await appears(marks)
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                await box.call(call)
        assert scope.cancelled_caught

    await run_until_marked()
    marks.unlink()
    # It changed nothing, so its id may run again. Were the first still at work, this one would wait for that.
    await run_until_marked()
    assert marks.read_text() == "ran\n"


async def test_a_connection_that_breaks_in_the_middle_is_made_again_and_the_call_runs_once(site, tmp_path):
    marks = tmp_path / "marks"
    cuts, opened = 2, False

    def answered_once():
        return opened

    async def relay(client):
        nonlocal cuts
        server = await anyio.connect_tcp("127.0.0.1", site.port)
        async with client, server, anyio.create_task_group() as group:
            group.start_soon(_pump, client, server)
            if cuts and answered_once():
                cuts -= 1
                await appears(marks)
            else:
                await _pump(server, client)
            group.cancel_scope.cancel()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, relay)
        async with RemoteToolbox(f"http://127.0.0.1:{port}/mcp", next(iter(site.folders))) as box:
            await box.aclose()
            opened = True
            result = await box.call("mark", {"path": str(marks), "seconds": 1.0})
        group.cancel_scope.cancel()
    assert result.ok, result.text
    assert cuts == 0
    assert marks.read_text() == "ran\n"


async def _pump(source, target):
    try:
        async for part in source:
            await target.send(part)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def test_failures_of_the_way_are_told_apart(site):
    stranger = RemoteToolbox(site.url, "no-such-token-0123456789abcdef")
    with pytest.raises(UsageError, match="bearer token"):
        await stranger.call("noop")
    with pytest.raises(UsageError, match="Open the toolbox first"):
        stranger.definitions()
    await stranger.aclose()
    astray = RemoteToolbox("http://127.0.0.1:9/mcp", "x")
    with pytest.raises(HostError, match="Can't reach"):
        await astray.waiting()
    await astray.aclose()


async def test_facts_and_variables_travel_with_a_call(box):
    asked = await box.call(
        Call(
            tool="write",
            args={"path": ".vscode/a.json", "content": "y\n"},
            metadata={"chat": 7},
            session="chats",
        )
    )
    assert asked.request.metadata == {"chat": 7}
    heard, ended = [], threading.Event()

    def listen(event):
        heard.append(type(event).__name__)
        if isinstance(event, Settled):
            ended.set()

    call = Call(tool="bash", args={"command": "echo $CHAT"}, env={"CHAT": "8"})
    made = await box.call(call, listener=listen)
    if made.status == "pending":
        made = await box.resume(call.id, Reply(allow=True))
    assert made.text.startswith("8\n"), made.text
    assert await anyio.to_thread.run_sync(ended.wait, 10)
    assert heard[0] == "Started"
    await box.call("think", {"thought": "quiet"})
    assert heard.count("Started") == 1
