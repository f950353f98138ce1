"""A toolbox in a dialect: what is offered, approval, ids, names, refusals."""

import json

import pytest

from handtools import Call, Policy, Reply, Rule, UsageError, coding, reading
from handtools.core.call import CancelToken
from handtools.core.events import Settled
from handtools.core.tool import STRICT_DROPS
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING

ASK = Policy(rules=(Rule("ask", "ask", "Look first.", effects=frozenset({"run"})),))
FILES = {"a.txt": b"one\ntwo\n"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_bytes(FILES["a.txt"])
    return folder


def names(box):
    return [each.name for each in box.definitions()]


def test_a_vendors_tool_is_offered_where_ours_are(root):
    assert names(reading(root).in_dialect("claude_code")) == ["Read", "Glob", "Grep"]
    assert names(coding(root).in_dialect("codex"))[0] == "exec_command"
    assert names(
        memory_toolbox(FILES, tools=[name for name in CODING if name != "jobs"]).in_dialect("codex")
    ) == [
        "apply_patch",
        "view_image",
    ]


def test_definitions_take_the_name_of_a_dialect():
    box = memory_toolbox(FILES, tools=CODING)
    assert box.definitions("gemini_cli") == box.in_dialect("gemini_cli").definitions()
    with pytest.raises(UsageError, match="claude_code"):
        box.definitions("klingon")


def test_a_built_in_tool_has_what_a_request_names_instead_of_a_schema(root):
    box = coding(root).in_dialect("anthropic")
    sent = {each.name: dict(each.vendor_definition) for each in box.definitions()}
    assert sent["bash"] == {"type": "bash_20250124", "name": "bash"}
    assert [each.type for each in box.definitions()] == [
        "bash_20250124",
        "text_editor_20250728",
        "memory_20250818",
    ]


def test_a_vendors_schemas_come_in_the_dialects_of_schemas_too_and_as_copies():
    box = memory_toolbox(FILES, tools=CODING).in_dialect("claude_code")
    strict = {each.name: each.input_schema for each in box.definitions("strict")}
    assert set(strict["Read"]["required"]) == set(strict["Read"]["properties"])
    assert not STRICT_DROPS & set(json.dumps(strict["Edit"]).replace('"', " ").split())
    box.definitions()[0].input_schema["properties"].clear()
    assert box.definitions()[0].input_schema["properties"]


async def test_null_stands_for_an_argument_that_is_left_out():
    box = memory_toolbox(FILES, tools=CODING).in_dialect("claude_code")
    nulls = {"offset": None, "limit": None, "pages": None, "allow_large": None}
    assert (await box.call("Read", {"file_path": "a.txt", **nulls})).ok


async def test_policy_and_journal_know_our_tools():
    box = memory_toolbox(
        FILES, tools=CODING, policy=Policy(rules=(Rule("no", "deny", "No.", tools=("edit",)),))
    )
    view = box.in_dialect("claude_code")
    args = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
    assert (await view.call("Edit", args)).status == "denied"
    assert (await view.why("Edit", args)).rule == "no"
    assert (await view.why("Edit", {})).verdict == "deny"


async def test_a_wrong_argument_is_named_as_the_vendor_does():
    view = memory_toolbox(FILES, tools=CODING).in_dialect("claude_code")
    unknown = await view.call("Grep", {"pattern": "one", "path": ".", "-Z": 1})
    assert unknown.fault.code == "invalid_input"
    assert "`Grep` takes: pattern, path, glob" in unknown.text
    later = await view.call("Read", {"file_path": "", "pages": "first"})
    assert "`file_path`" in later.text or "`pages`" in later.text
    assert "`path`" not in later.text


async def test_a_name_that_the_dialect_has_not_is_ours_and_one_that_nobody_has_is_refused():
    view = memory_toolbox(FILES, tools=CODING).in_dialect("claude_code")
    assert (
        await view.call(
            "multi_edit", {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}
        )
    ).ok
    assert (await view.call("undo", {})).ok
    unknown = await view.call("Raed", {})
    assert unknown.fault.code == "unknown_tool"
    assert "Read" in unknown.text


async def test_a_dialect_can_be_renamed():
    view = memory_toolbox(FILES, tools=CODING).in_dialect("pi").renamed(lambda name: f"my_{name}")
    assert names(view)[0] == "my_read"
    assert "one" in (await view.call("my_read", {"path": "a.txt"})).text


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_the_same_id_again_runs_nothing_again(root):
    async with coding(root) as box:
        view = box.in_dialect("openai")
        call = Call(tool="shell", args={"action": {"commands": ["echo x >> a.txt", "cat a.txt"]}}, id="one")
        first = await view.call(call)
        again = await view.call(call)
    assert json.loads(again.text) == json.loads(first.text)
    assert (root / "a.txt").read_text() == "one\ntwo\nx\n"
    assert [change.path for change in first.changes.touched] == ["a.txt"]


async def test_each_command_of_a_call_is_asked_for_and_a_yes_is_for_one(root):
    commands = ["echo x >> a.txt", "echo y >> a.txt"]
    call = Call(tool="shell", args={"action": {"commands": commands}}, id="two")
    async with coding(root, policy=ASK) as box:
        first = await box.in_dialect("openai").call(call)
        assert first.status == "pending"
    async with coding(root, policy=ASK) as box:
        view = box.in_dialect("openai")
        second = await view.call(call, reply=Reply(True))
        assert second.status == "pending"
        assert second.request.call_id != first.request.call_id
        assert "y" not in (root / "a.txt").read_text()
        third = await view.call(call, reply=Reply(True))
        assert third.ok
        assert await box.waiting() == []
    assert len(json.loads(third.text)["output"]) == 2
    assert (root / "a.txt").read_text() == "one\ntwo\nx\ny\n"


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_cancelled_call_runs_none_of_its_later_commands(root):
    token, heard = CancelToken(), []

    def listen(event):
        heard.append(event)
        if isinstance(event, Settled):
            token.cancel()

    async with coding(root) as box:
        view = box.in_dialect("openai")
        action = {"commands": ["echo x >> a.txt", "sleep 600; echo y >> a.txt"]}
        result = await view.call("shell", {"action": action}, cancel=token, listener=listen)
    assert result.status == "cancelled"
    assert (root / "a.txt").read_text() == "one\ntwo\nx\n"


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_command_that_takes_too_long_is_a_timeout_in_the_vendors_shape(root):
    async with coding(root) as box:
        action = {"commands": ["sleep 600"], "timeout_ms": 300}
        result = await box.in_dialect("openai").call("shell", {"action": action})
        told = await box.in_dialect("claude_code").call("Bash", {"command": "sleep 600", "timeout": 300})
    assert json.loads(result.text)["output"][0]["outcome"] == {"type": "timeout"}
    assert told.text.startswith("Command timed out after")
