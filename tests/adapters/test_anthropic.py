"""What Anthropic's package has beside a loop of one's own: the tool runner, and replies that are cut off."""

import os

import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "anthropic":
    pytest.skip("needs Anthropic's package", allow_module_level=True)

from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

from handtools import coding
from handtools.adapters.anthropic import definitions, tool_results, tools
from tests.adapters.driver_anthropic import content, said, scripted_model
from tests.adapters.drivers import Wanted
from tests.adapters.new_process import ASK, RUN

pytestmark = pytest.mark.anyio
WRITE = {"path": "made.txt", "content": "x\n"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def run_tools(runnables, *calls):
    client = scripted_model(calls, "done")
    runner = client.beta.messages.tool_runner(
        model="scripted", max_tokens=1000, messages=[{"role": "user", "content": "go"}], tools=runnables
    )
    last = await runner.until_done()
    assert last.content[0].text == "done"
    return said([{"is_error": False, **one} for one in client.requests[-1]["messages"][-1]["content"]])


async def test_the_tool_runner_runs_our_tools_and_the_model_reads_our_words(root):
    async with coding(root) as box:
        made, wrong, unknown = await run_tools(
            tools(box),
            Wanted("write", WRITE, "call_1"),
            Wanted("edit", {"pth": "made.txt"}, "call_2"),
            Wanted("raed", {}, "call_3"),
        )
    assert not made.error
    assert (root / "made.txt").read_text() == "x\n"
    assert wrong.error
    assert "did you mean `path`?" in wrong.text
    assert unknown.error


async def test_a_runner_that_can_not_pause_waits_for_the_person_or_tells_the_model(root):
    async def yes(approval):
        return "made.txt" in approval.title

    async with coding(root, policy=ASK) as box:
        [waits] = await run_tools(tools(box), Wanted("write", WRITE, "call_1"))
        assert waits.error
        assert "Needs the user's approval" in waits.text
        assert not (root / "made.txt").exists()
        [done] = await run_tools(tools(box, ask=yes), Wanted("write", WRITE, "call_1"))
    assert not done.error
    assert (root / "made.txt").exists()


async def test_a_call_that_was_cut_off_is_not_run(root):
    calls = [
        Wanted("write", {"path": "whole.txt", "content": "x"}, "call_1"),
        Wanted("write", WRITE, "call_2"),
    ]
    message = {"role": "assistant", "content": content(calls), "stop_reason": "max_tokens"}
    async with coding(root) as box:
        whole, cut = said((await tool_results(box, message)).content)
    assert not whole.error
    assert cut.error
    assert "cut off" in cut.text
    assert not (root / "made.txt").exists()


async def test_a_message_without_calls_has_no_results(root):
    async with coding(root) as box:
        assert (await tool_results(box, {"role": "assistant", "content": "done"})).content == []


async def test_tools_in_anthropics_own_shapes_are_sent_by_their_type_and_run(root):
    async with coding(root, policy=RUN) as box:
        own = box.in_dialect("anthropic")
        assert {"type": "bash_20250124", "name": "bash"} in definitions(own)
        [done] = await run_tools(tools(own), Wanted("bash", {"command": "echo x > made.txt"}, "call_1"))
    assert not done.error
    assert (root / "made.txt").read_text() == "x\n"


async def test_a_worker_can_be_given_the_toolset_of_a_managed_agent(root):
    theirs = beta_agent_toolset_20260401(AgentToolContext(workdir=str(root)))
    async with coding(root) as box:
        ours = {one.name: one for one in tools(box.in_dialect("agent_toolset_20260401"))}
        assert {one.name for one in theirs} <= set(ours)
        await ours["write"].call({"file_path": str(root / "made.txt"), "content": "x\n"})
    assert (root / "made.txt").read_text() == "x\n"
