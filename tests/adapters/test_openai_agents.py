"""OpenAI's built-in tools over a toolbox: the SDK's patch editor and shells, recorded, undoable, with a pause."""

import json
import os
import runpy
from pathlib import Path

import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "openai_agents":
    pytest.skip("needs the OpenAI Agents SDK", allow_module_level=True)

from agents import Agent, Runner, RunState
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall
from openai.types.responses.response_output_item import LocalShellCall

from handtools import Policy, coding, reading
from handtools.adapters.openai_agents import questions, run_config
from handtools.adapters.openai_agents_builtin_tools import apply_patch_and_shell_tools, local_shell_tool
from tests.adapters.new_process import ASK, RUN

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "openai_agents" / "builtin_tools_agent.py"
MAKE = {"type": "create_file", "path": "made.txt", "diff": "+x\n"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


def patch_call(operation, call_id="call_1"):
    fields = {"id": call_id, "call_id": call_id, "status": "completed", "type": "apply_patch_call"}
    return ResponseApplyPatchToolCall.model_validate(fields | {"operation": operation})


def shell_call(*commands, call_id="call_1", **action):
    fields = {"id": call_id, "call_id": call_id, "status": "completed", "type": "shell_call"}
    return ResponseFunctionShellToolCall.model_validate(
        fields | {"action": {"commands": list(commands), **action}}
    )


def local_shell_call(*command, call_id="call_1", **action):
    fields = {"id": call_id, "call_id": call_id, "status": "completed", "type": "local_shell_call"}
    exec_action = {"type": "exec", "command": list(command), "env": {}} | action
    return LocalShellCall.model_validate(fields | {"action": exec_action})


def agent(offered, *calls):
    return Agent(
        name="coder",
        model=ScriptedModel([*([call] for call in calls), [assistant_message("done")]]),
        tools=offered,
    )


async def run(box, started, given="go"):
    return await Runner.run(started, given, run_config=run_config(box, tracing_disabled=True))


def outputs(done):
    return [item.raw_item for item in done.new_items if item.type == "tool_call_output_item"]


async def test_the_editor_creates_changes_moves_and_deletes_files_and_all_of_it_can_be_undone(root):
    change = {
        "type": "update_file",
        "path": "a.txt",
        "diff": "@@\n one\n-two\n+three\n",
        "move_to": "b.txt",
    }
    operations = [MAKE, change, {"type": "delete_file", "path": "made.txt"}]
    async with coding(root) as box:
        calls = [patch_call(one, f"call_{number}") for number, one in enumerate(operations)]
        done = await run(box, agent(apply_patch_and_shell_tools(box), *calls))
        assert done.final_output == "done"
        assert [one["status"] for one in outputs(done)] == ["completed"] * 3
        assert (root / "b.txt").read_text() == "one\nthree\n"
        assert not (root / "a.txt").exists()
        assert not (root / "made.txt").exists()
        assert [one.tool for one in box.workspace.journal.calls.page()] == ["patch"] * 3
        assert (await box.call("undo", {"scope": "session", "name": "default"})).ok
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert not (root / "b.txt").exists()


async def test_a_patch_that_does_not_fit_is_told_in_our_words_and_the_run_goes_on(root):
    wrong = {"type": "update_file", "path": "a.txt", "diff": "@@\n-four\n+five\n"}
    async with coding(root) as box:
        done = await run(box, agent(apply_patch_and_shell_tools(box), patch_call(wrong)))
    [told] = outputs(done)
    assert told["status"] == "failed"
    assert "Nothing was written." in told["output"]
    assert done.final_output == "done"


async def test_the_shell_runs_commands_confined_and_what_they_changed_can_be_undone(root):
    async with coding(root, policy=RUN) as box:
        call = shell_call("echo x > made.txt; echo out", "exit 3")
        [told] = outputs(await run(box, agent(apply_patch_and_shell_tools(box), call)))
        assert [one["outcome"] for one in told["output"]] == [
            {"type": "exit", "exit_code": 0},
            {"type": "exit", "exit_code": 3},
        ]
        assert told["output"][0]["stdout"] == "out\n"
        assert (root / "made.txt").read_text() == "x\n"
        assert (await box.call("undo", {"scope": "session", "name": "default"})).ok
    assert not (root / "made.txt").exists()


async def test_a_command_that_takes_too_long_is_ended_as_a_timeout(root):
    async with coding(root, policy=RUN) as box:
        [told] = outputs(
            await run(box, agent(apply_patch_and_shell_tools(box), shell_call("sleep 600", timeout_ms=500)))
        )
    assert told["output"][0]["outcome"]["type"] == "timeout"


@pytest.mark.parametrize(
    "call", [patch_call(MAKE), shell_call("echo x > made.txt")], ids=["patch", "shell"]
)
async def test_a_question_pauses_the_run_and_a_yes_is_given_to_another_toolbox(root, call):
    async with coding(root, policy=ASK) as box:
        paused = await run(box, agent(apply_patch_and_shell_tools(box), call))
        [question] = await questions(box, paused.interruptions)
        assert "made.txt" in question.title
        stored = json.dumps(paused.to_state().to_json())
    assert not (root / "made.txt").exists()
    async with coding(root, policy=ASK) as box:
        later = agent(apply_patch_and_shell_tools(box))
        state = await RunState.from_json(later, json.loads(stored))
        state.approve(state.get_interruptions()[0])
        done = await run(box, later, state)
        assert done.final_output == "done"
        assert await box.waiting() == []
        assert len(box.workspace.journal.calls.page()) == 1
    assert (root / "made.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    "call", [patch_call(MAKE), shell_call("echo x > made.txt")], ids=["patch", "shell"]
)
async def test_a_no_leaves_nothing_waiting(root, call):
    async with coding(root, policy=ASK) as box:
        later = agent(apply_patch_and_shell_tools(box), call)
        state = (await run(box, later)).to_state()
        state.reject(state.get_interruptions()[0], rejection_message="Not now.")
        done = await run(box, later, state)
        assert done.final_output == "done"
        assert await box.waiting() == []
    assert not (root / "made.txt").exists()


async def test_two_equal_operations_are_two_calls(root):
    """The SDK gives an editor no id; the second one must not be taken for the first."""
    more = {"type": "update_file", "path": "a.txt", "diff": "@@\n two\n+again\n"}
    async with coding(root) as box:
        calls = [patch_call(more, "call_1"), patch_call(more, "call_2")]
        done = await run(box, agent(apply_patch_and_shell_tools(box), *calls))
        assert len(outputs(done)) == 2
        assert len(box.workspace.journal.calls.page()) == 2


async def test_always_approve_answers_our_later_questions(root):
    other = MAKE | {"path": "other.txt"}
    async with coding(root, policy=ASK) as box:
        later = agent(apply_patch_and_shell_tools(box), patch_call(MAKE), patch_call(other, "call_2"))
        state = (await run(box, later)).to_state()
        state.approve(state.get_interruptions()[0], always_approve=True)
        done = await run(box, later, state)
        assert done.final_output == "done"
        assert await box.waiting() == []
    assert (root / "other.txt").read_text() == "x\n"


async def test_the_older_shell_runs_a_program_with_its_variables(root):
    call = local_shell_call(
        "sh", "-c", 'echo "$TEA" > made.txt', env={"TEA": "green"}, working_directory="."
    )
    async with coding(root, policy=RUN) as box:
        [told] = outputs(await run(box, agent([local_shell_tool(box)], call)))
        assert json.loads(told["output"])["metadata"]["exit_code"] == 0
        assert (root / "made.txt").read_text() == "green\n"
        assert (await box.call("undo", {"scope": "session", "name": "default"})).ok
    assert not (root / "made.txt").exists()


async def test_the_older_shell_tells_the_model_what_waits_and_what_is_wrong(root):
    async with coding(root, policy=ASK) as box:
        calls = [
            local_shell_call("touch", "made.txt"),
            local_shell_call("true", call_id="call_2", env={"A B": "x"}),
        ]
        waits, wrong = outputs(await run(box, agent([local_shell_tool(box)], *calls)))
    assert "Needs the user's approval" in waits["output"]
    assert "variable" in wrong["output"]
    assert not (root / "made.txt").exists()


async def test_only_what_the_toolbox_offers_is_made(root):
    assert apply_patch_and_shell_tools(reading(root)) == []
    async with coding(root, policy=Policy(tools="read_only")) as box:
        assert apply_patch_and_shell_tools(box) == []


@pytest.mark.parametrize("yes", [True, False])
async def test_the_example_works_with_the_built_in_tools_and_asks_the_person(root, yes):
    model = agent([], patch_call(MAKE), shell_call("cat made.txt", call_id="call_2")).model
    asked = []
    work = runpy.run_path(str(EXAMPLE))["work"]
    said = await work(root, model, "Make a file.", lambda title, preview: asked.append(preview) or yes)
    assert said == "done"
    assert "+x" in asked[0]
    assert (root / "made.txt").exists() is yes
