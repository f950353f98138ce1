"""Putting tools, a machine and a policy together."""

import gc
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import anyio
import pytest
from pydantic import BaseModel

from handtools import (
    BlockingToolbox,
    Call,
    Context,
    Image,
    Policy,
    Result,
    Rule,
    Text,
    Toolbox,
    UsageError,
    coding,
    reading,
    tool,
)
from handtools.core.events import Event, Settled
from handtools.core.result import block_to_json
from handtools.core.tool import with_tool_names
from handtools.mcp.remote_toolbox import intersect_policies
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
from handtools.tools.edit import edit
from handtools.tools.read import read


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))


async def test_coding_works_on_a_folder_with_no_configuration(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    async with coding(root) as box:
        assert (await box.call("write", {"path": "a.txt", "content": "hi\n"})).ok
        assert (await box.call("undo", {"name": "a.txt"})).ok
    assert list(root.iterdir()) == []


class Nothing(BaseModel):
    """No parameters, no details."""


@tool(effects=())
async def deploy(params: Nothing, ctx: Context) -> Result[Nothing]:
    """Deploy."""
    return Result(details=Nothing())


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Policy(block=("Bash",)), "`Bash` is a vendor's name for `bash`."),
        (
            Policy(block=("BASH",)),
            "'BASH' is not a tool. Did you mean `bash`? Known: attach, bash, deploy, ",
        ),
        (Policy(block=("shell",)), "`shell` is a vendor's name for `bash`."),
        (Policy(allow=("reed",)), "Did you mean `read`?"),
        (Policy(block=("apply_patch",)), "`apply_patch` is a vendor's name for `patch`."),
        (Policy(rules=(Rule("x", "deny", "r", tools=("deploi",)),)), "Did you mean `deploy`?"),
        (Policy(block=("nothing_like_it",)), "'nothing_like_it' is not a tool. Known: "),
    ],
)
def test_a_policy_that_names_a_tool_that_is_not_there_is_refused(policy, told):
    box = Toolbox([read, edit, deploy], workspace=memory_workspace())
    for make in (
        lambda: Toolbox([read, edit, deploy], workspace=memory_workspace(), policy=policy),
        lambda: box.under(policy),
        lambda: intersect_policies(Policy(), policy, box.tools.values()),
    ):
        with pytest.raises(UsageError) as refused:
            make()
        assert told in str(refused.value)


def test_a_policy_may_name_the_toolboxs_own_tools_and_those_that_others_have():
    policy = Policy(block=("bash", "deploy", "str_replace_based_edit_tool"))
    box = Toolbox([read, deploy], workspace=memory_workspace(), policy=policy)
    assert [definition.name for definition in box.definitions()] == ["read"]


async def test_reading_offers_nothing_that_changes(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    box = reading(root, policy=Policy(excluded=("*.log",)))
    offered = {definition.name: definition.reads_only for definition in box.definitions()}
    assert all(offered.values())
    assert "fetch" in offered
    assert (await box.call("read", {"path": "a.log"})).status == "denied"


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(UsageError, match="same name"):
        Toolbox([read, read], workspace=memory_workspace())


def test_the_blocking_toolbox_has_the_same_answers():
    box = BlockingToolbox(memory_toolbox({"a": b"one\n"}))
    assert "one" in box.call("read", {"path": "a"}).text
    assert box.why("read", {"path": ".env"}).rule == "private"
    assert box.waiting() == []
    box.close()


class ClockParams(BaseModel):
    ends: bool


async def test_a_toolbox_under_another_policy_keeps_listeners_time_limit_and_clock():
    heard: list[Event] = []
    then = datetime(2030, 1, 2, tzinfo=UTC)

    @tool(effects=("read",))
    async def hang(ctx: Context, params: ClockParams) -> Result[ClockParams]:
        """Tell the time, or never end."""
        if not params.ends:
            await anyio.sleep_forever()
        return Result(ctx.clock().isoformat(), params)

    wide = memory_toolbox(tools=[hang, edit], listeners=[heard.append], timeout=0.01, clock=lambda: then)
    narrow = wide.under(Policy(tools="read_only"))
    assert (await narrow.call(Call(tool="hang", args={"ends": True}, deadline=30.0))).text.startswith(
        "2030"
    )
    assert (await narrow.call("hang", {"ends": False})).status == "timeout"
    await narrow.aclose()
    assert any(isinstance(event, Settled) for event in heard)
    assert [one.name for one in narrow.definitions()] == ["hang"]
    assert [one.name for one in wide.definitions()] == ["hang", "edit"]


async def test_tools_are_offered_and_called_under_other_names_and_prompts_follow():
    box = memory_toolbox({"a": b"one\n"})
    other = box.renamed(lambda name: f"ht_{name}")
    offered = {one.name: one for one in other.definitions()}
    assert set(offered) == {f"ht_{name}" for name in box.tools if f"ht_{name}" in offered}
    assert "`ht_grep`" in offered["ht_list"].description
    assert "`grep`" not in offered["ht_list"].description
    call = Call(tool="ht_read", args={"path": "a"}, id="one")
    assert "one" in (await other.call(call)).text
    assert box.workspace.journal.calls.find("one").tool == "read"
    missing = await other.call("ht_raed", {})
    assert "ht_read" in missing.text
    assert (await other.why("ht_read", {"path": ".env"})).rule == "private"
    with pytest.raises(UsageError, match="same name"):
        box.renamed(lambda name: "one")


def test_a_parameter_is_no_tool_even_if_it_has_the_name_of_one():
    assert (
        with_tool_names("`patch` and `read`", {"patch": "p", "read": "r"}, ["patch"]) == "`patch` and `r`"
    )


def test_schemas_are_made_once_and_handed_out_as_copies(monkeypatch):
    box = memory_toolbox()
    first = box.definitions("strict")
    first[0].input_schema["properties"].clear()
    made = []
    monkeypatch.setattr(BaseModel, "model_json_schema", lambda *_, **__: made.append(1))
    again = box.definitions("strict")
    assert made == []
    assert again[0].input_schema["properties"]
    assert again[1:] == first[1:]


def lines(word: str, count: int) -> str:
    return "".join(f"{word} {number}\n" for number in range(count))


def change_line(box: BlockingToolbox, number: int) -> str:
    args = {"path": "n.txt", "old_string": f"line {number}\n", "new_string": f"LINE {number}\n"}
    return box.call("edit", args).status


def test_threads_that_edit_one_file_all_get_their_turn(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "n.txt").write_text(lines("line", 40))
    box = BlockingToolbox(coding(root))
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(partial(change_line, box), range(40))) == ["ok"] * 40
    box.close()
    assert (root / "n.txt").read_text() == lines("LINE", 40)


class GreetingParams(BaseModel):
    path: str


class GreetingDetails(BaseModel):
    pass


async def test_other_tools_take_the_place_of_those_with_their_name_and_the_policy_knows_them(tmp_path):
    @tool(effects=("read",))
    async def read(ctx: Context, params: GreetingParams) -> Result[GreetingDetails]:
        """Greet in place of reading."""
        return Result(f"Hello, {params.path}.", GreetingDetails())

    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("text\n")
    box = coding(root, policy=Policy(allow=frozenset({"read"})))
    other = box.in_dialect("claude_code").with_tools(read)
    assert (await other.call("read", {"path": "a.txt"})).text == "Hello, a.txt."
    assert [one.name for one in other.definitions()] == ["read"]
    assert (await other.call("write", {"path": "b.txt", "content": "x"})).fault.code == "unknown_tool"
    assert "text" in (await box.call("read", {"path": "a.txt"})).text


async def test_blocking_calls_work_where_a_loop_runs_and_through_several_blocking_toolboxes():
    shared = memory_toolbox({"n.txt": lines("line", 20).encode()})
    assert "line 1" in BlockingToolbox(shared).call("read", {"path": "n.txt"}).text
    with ThreadPoolExecutor(4) as threads:
        boxes = [BlockingToolbox(shared) for _ in range(20)]
        assert list(threads.map(change_line, boxes, range(20))) == ["ok"] * 20
    assert shared.workspace.files.read("n.txt") == lines("LINE", 20).encode()


def test_a_toolbox_at_rest_holds_no_thread_and_no_file(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    gc.collect()
    before, files = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    boxes = [coding(root) for _ in range(200)]
    # What earlier tests left may end meanwhile.
    assert set(threading.enumerate()) <= before
    assert set(os.listdir("/proc/self/fd")) <= files
    assert len(boxes) == 200


def test_the_content_of_a_result_is_safe_for_any_encoder():
    result = Result([Text("odd \udcff name"), Image(b"\x89", "image/png")], None)
    safe = result.safe_content
    assert json.dumps([block_to_json(block) for block in safe]).encode()
    assert safe[0].text.encode() == "odd \ufffd name".encode()
    assert safe[1].base64 == "iQ=="
