"""Two tokens on one workspace: what one's calls left is not there for the other, whatever it names."""

import json

import pytest
from mcp.shared.exceptions import MCPError

from handtools import Call, Reply
from handtools.core.errors import HandtoolsError
from handtools.mcp.remote_toolbox import RemoteToolbox
from tests.e2e.mcp.conftest import CURRENT, text

CALL_ID, SESSION = "handtools/call_id", "handtools/session"
SECRET = "only ann may know"
NEVER = "0" * 32


@pytest.fixture
def shared(on_http):
    site = on_http("ann@work", "bob@work", bob={"excluded": ["vault/"]})
    folder = next(iter(site.folders.values()))
    (folder / "vault").mkdir()
    (folder / "vault/keys.txt").write_text(f"{SECRET}\n" * 4_000)
    return site


@pytest.fixture
def ann(shared):
    return next(iter(shared.folders))


@pytest.fixture
def bob(shared):
    return list(shared.folders)[1]


async def read(client, uri):
    """What a resource holds, or why not."""
    try:
        return (await client.read_resource(uri)).contents[0].text
    except MCPError as problem:
        return str(problem)


async def everything_listed(client):
    uris = [str(each.uri) for each in (await client.list_resources()).resources]
    prompts = [await client.get_prompt(name) for name in ("review", "pending")]
    return [await read(client, uri) for uri in uris] + [str(prompt) for prompt in prompts]


async def test_what_a_call_printed_is_kept_for_its_token_alone(shared, ann, bob):
    async with shared.connect(ann) as hers, shared.connect(bob) as his:
        printed = await hers.call_tool("bash", {"command": "cat vault/keys.txt"})
        (uri,) = [str(r.uri) for r in (await hers.list_resources()).resources if "/output/" in str(r.uri)]
        name = uri.rpartition("/")[2]
        assert SECRET in text(printed)
        assert SECRET in await read(hers, uri)
        assert not [r for r in (await his.list_resources()).resources if "/output/" in str(r.uri)]
        for path in (f"output:{name}", f"output:{NEVER}.log"):
            answer = text(await his.call_tool("read", {"path": path}))
            assert answer.replace(path, "it") == (
                "The output `it` is no longer stored. Run the command again, or read another output."
            )
            assert (await his.call_tool("grep", {"pattern": "may know", "path": path})).is_error
        missing = (await read(his, uri)).replace(name, "x")
        assert missing == (await read(his, f"handtools://output/{NEVER}.log")).replace(f"{NEVER}.log", "x")


async def test_calls_questions_and_prompts_of_one_are_not_listed_for_the_other(shared, ann, bob):
    async with shared.connect(ann) as hers, shared.connect(bob) as his:
        await hers.call_tool("write", {"path": "notes.txt", "content": f"{SECRET}\n"})
        await hers.call_tool("write", {"path": ".envrc", "content": f"{SECRET}\n"})
        assert sum(SECRET in each for each in await everything_listed(hers)) >= 3
        assert not [each for each in await everything_listed(his) if SECRET in each or "notes" in each]


async def test_an_id_that_another_token_has_used_names_a_call_of_its_own(shared, ann, bob):
    meta = {CALL_ID: "the-first"}
    args = {"command": "cat vault/keys.txt | head -3"}
    async with shared.connect(ann) as hers, shared.connect(bob) as his:
        first = await hers.call_tool("bash", args, meta=meta)
        again = await hers.call_tool("bash", args, meta=meta)
        assert SECRET in text(first)
        assert (again.meta[CALL_ID], text(again)) == (first.meta[CALL_ID], text(first))
        other = await his.call_tool("bash", args, meta=meta)
        assert SECRET not in text(other)
        taken = await his.call_tool("bash", args, meta={CALL_ID: first.meta[CALL_ID]})
        assert SECRET not in text(taken)


@pytest.mark.parametrize("scope", ["call", "session"])
async def test_nobody_undoes_by_naming_what_is_anothers(shared, ann, bob, scope):
    folder = shared.folders[ann]
    async with shared.connect(ann) as hers, shared.connect(bob) as his:
        meta = {SESSION: "hers", CALL_ID: "change"}
        made = await hers.call_tool("write", {"path": "a.txt", "content": "hers\n"}, meta=meta)
        name = {"call": made.meta[CALL_ID], "session": "hers"}[scope]
        undo = await his.call_tool("undo", {"scope": scope, "name": name}, meta={SESSION: "hers"})
        never = await his.call_tool("undo", {"scope": scope, "name": NEVER})
        assert text(undo).replace(name, "x") == text(never).replace(NEVER, "x")
        by_path = await his.call_tool("undo", {"name": "a.txt"})
        assert by_path.is_error
        versions = await his.call_tool("undo", {"name": "a.txt", "action": "versions"})
        assert "No recorded changes of a.txt" in text(versions)
        assert (folder / "a.txt").read_text() == "hers\n"
        own = {"call": "change", "session": "hers"}[scope]
        assert not (await hers.call_tool("undo", {"scope": scope, "name": own})).is_error
        assert not (folder / "a.txt").exists()


@pytest.mark.parametrize("remember", ["session", "project"])
async def test_a_yes_that_lasts_is_for_the_token_that_it_was_given_to(shared, ann, bob, remember):
    call = {"path": ".idea/x.xml", "content": "one"}
    async with RemoteToolbox(shared.url, ann) as hers, RemoteToolbox(shared.url, bob) as his:
        asked = await hers.call(Call(tool="write", args=call, session="s"))
        yes = Reply(allow=True, remember=remember)
        assert (await hers.resume(asked.request.call_id, yes)).ok
        more = {"path": ".idea/x.xml", "mode": "overwrite"}
        for number, session in enumerate(("s", "mcp-ann", "ann\ns")):
            wanted = await his.call(
                Call(tool="write", args={**more, "content": f"his {number}"}, session=session)
            )
            assert wanted.status == "pending"
        assert (await hers.call(Call(tool="write", args={**more, "content": "two"}, session="s"))).ok
    assert (shared.folders[ann] / ".idea/x.xml").read_text() == "two"


async def test_a_question_is_answered_only_by_the_token_that_was_asked(shared, ann, bob):
    async with RemoteToolbox(shared.url, ann) as hers, RemoteToolbox(shared.url, bob) as his:
        asked = await hers.call(Call(tool="write", args={"path": ".envrc", "content": "x"}, id="asked"))
        assert asked.status == "pending"
        for name in ("asked", asked.request.call_id, NEVER):
            with pytest.raises(HandtoolsError, match="is waiting for an answer"):
                await his.resume(name, Reply(allow=True))
        assert await his.waiting() == []
        assert [one.call_id for one in await hers.waiting()] == [asked.request.call_id]
        assert (await hers.resume("asked", Reply(allow=True))).ok


async def test_a_session_of_that_name_is_another_shell(shared, ann, bob):
    meta = {SESSION: "shell"}
    async with shared.connect(ann, CURRENT) as hers, shared.connect(bob, CURRENT) as his:
        await hers.call_tool("bash", {"command": "export KEY=hers; f() { echo f; }; cd vault"}, meta=meta)
        other = await his.call_tool("bash", {"command": 'echo "[$KEY]"; type f; pwd'}, meta=meta)
        assert "[]" in text(other)
        assert "not found" in text(other)
        assert "/vault" not in text(other)
        job = await hers.call_tool("bash", {"command": "cat", "background": True}, meta=meta)
        assert "job1" in text(job)
        assert "job1" not in text(await his.call_tool("jobs", {}, meta=meta))
        assert (await his.call_tool("jobs", {"action": "output", "job": "job1"}, meta=meta)).is_error


async def test_the_local_user_sees_what_every_token_did(shared, ann, tmp_path, monkeypatch):
    from handtools.toolbox import coding

    async with shared.connect(ann) as hers:
        made = await hers.call_tool("write", {"path": ".envrc", "content": "x"})
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    async with coding(shared.folders[ann]) as local:
        (waiting,) = await local.waiting()
        assert waiting.agent == "ann"
        assert json.dumps(waiting.call_id) in json.dumps(made.meta)
        assert (await local.resume(waiting.call_id, Reply(allow=True))).ok
    async with shared.connect(ann) as hers:
        assert "write" in await read(hers, "handtools://journal")
        assert json.loads(await read(hers, "handtools://pending")) == []
