"""Bash as a model calls it, over commands that run nothing; the real thing is in e2e."""

import re

import pytest

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.core.events import Visited
from handtools.core.web import Visit
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands
from handtools.toolbox import CODING
from handtools.tools.bash import bash, last_output_line


async def told(answer: CannedOutput, **args):
    commands = MemoryCommands({"go": answer})
    box = memory_toolbox(commands=commands)
    return await box.call("bash", {"command": "go", **args}), commands


@pytest.mark.parametrize("output", [b"0.5\n", b"report\n0.5\n", b"row\n" * 3_000 + b"0.5\n"])
async def test_the_last_line_that_a_command_printed_is_found_in_its_result(output):
    result, _ = await told(CannedOutput(output, 0))
    assert last_output_line(result.text) == "0.5"


async def test_a_command_that_prints_nothing_has_no_last_line():
    result, _ = await told(CannedOutput(b"", 0))
    assert last_output_line(result.text) == ""


@pytest.mark.claim("bash.exit_code")
async def test_a_failing_command_is_a_result_with_its_exit_code():
    result, _ = await told(CannedOutput(b"no\n", 3))
    assert result.ok
    assert result.details.code == 3
    assert result.text.startswith("no\nExit code 3 after 1.0 s.")


async def test_a_signal_is_named():
    result, _ = await told(CannedOutput(b"", None, 11))
    assert "Ended by signal 11" in result.text


@pytest.mark.claim("bash.output")
async def test_long_output_comes_as_both_ends_with_the_place_of_the_whole():
    output = b"".join(b"line %d\n" % number for number in range(20_000))
    result, _ = await told(CannedOutput(output))
    assert result.text.startswith("line 0\nline 1\n")
    assert "line 19999\nExit code 0" in result.text
    assert f"20,000 lines, {len(output):,} bytes" in result.text
    assert result.details.output_path in result.text
    assert result.details.output_path.startswith("output:")
    assert len(result.text) < 40_000


async def test_output_is_shown_without_escape_sequences():
    result, _ = await told(CannedOutput(b"\x1b[31mred\x1b[0m\n10%\r20%\n\xff"))
    assert result.text.startswith("red\n20%\n\ufffd\n")


async def test_the_folder_it_ended_in_is_said():
    result, _ = await told(CannedOutput(cwd="src/deep"))
    assert "Now in src/deep." in result.text


async def test_notes_are_told():
    result, _ = await told(CannedOutput(notes=("Not confined.",)))
    assert "(Not confined.)" in result.text
    assert "Not confined." in result.details.notes


@pytest.mark.parametrize(("given", "seconds"), [(None, 120), (5, 5), (10_000, 590)])
async def test_the_time_is_bounded(given, seconds):
    _, commands = await told(CannedOutput(), **({} if given is None else {"timeout": given}))
    assert commands.commands[0].limits.seconds == seconds


async def test_a_background_command_returns_its_job():
    result, commands = await told(CannedOutput(), background=True, description="a server")
    assert result.details.job == "job1"
    assert commands.commands[0].limits.seconds == 24 * 3600


async def test_a_terminal_without_background_is_refused():
    result, commands = await told(CannedOutput(), pty=True)
    assert result.fault.code == "invalid_input"
    assert commands.commands == []


async def test_a_folder_outside_is_refused_before_anything_runs():
    result, commands = await told(CannedOutput(), cwd="../elsewhere")
    assert result.fault.code == "outside_workspace"
    assert commands.commands == []


async def test_a_folder_that_is_a_file_is_refused():
    commands = MemoryCommands({"go": CannedOutput()})
    box = memory_toolbox({"a.txt": b""}, commands=commands)
    result = await box.call("bash", {"command": "go", "cwd": "a.txt"})
    assert result.fault.code == "wrong_kind"
    assert commands.commands == []


async def test_an_unconfined_command_is_asked_about():
    asked = []

    async def approver(approval):
        asked.append(approval)
        return Reply(allow=False, message="Not today.")

    commands = MemoryCommands({"go": CannedOutput()}, confined=False)
    box = memory_toolbox(commands=commands, approver=approver)
    result = await box.call("bash", {"command": "go"})
    assert result.status == "denied"
    assert "Not today." in result.text
    assert commands.commands == []
    assert asked[0].preview == "# unconfined: it can do what you can\ngo"
    assert asked[0].title == "bash wants to run go"


async def test_an_approved_command_runs():
    async def approver(_):
        return Reply(allow=True)

    commands = MemoryCommands({"go": CannedOutput(b"done\n")}, confined=False)
    result = await memory_toolbox(commands=commands, approver=approver).call("bash", {"command": "go"})
    assert result.ok
    assert len(commands.commands) == 1


async def test_without_commands_the_tools_are_not_offered():
    box = memory_toolbox()
    offered = {definition.name for definition in box.definitions()}
    assert not offered & {"bash", "jobs"}
    result = await box.call("bash", {"command": "go"})
    assert result.fault.code == "unknown_tool"


async def test_progress_is_announced_with_its_counts():
    events = []
    commands = MemoryCommands({"go": CannedOutput(b"some output")})
    box = memory_toolbox(commands=commands, listeners=[events.append])
    async with box:
        await box.call("bash", {"command": "go"})
    [shown] = [event for event in events if type(event).__name__ == "Progressed"]
    assert (shown.text, shown.bytes) == ("some output", 11)


class VisitingCommands(MemoryCommands):
    """Commands that reach a host before they print."""

    async def run(self, command, *, show, **given):
        show(Visit(host="example.com", port=443))
        return await super().run(command, show=show, **given)


async def test_a_host_that_a_command_reaches_is_announced():
    events = []
    box = memory_toolbox(commands=VisitingCommands({"go": CannedOutput()}), listeners=[events.append])
    async with box:
        await box.call(Call(tool="bash", args={"command": "go"}, id="c"))
    visits = [event for event in events if isinstance(event, Visited)]
    assert visits == [Visited("c", Visit(host="example.com", port=443))]


@pytest.mark.claim("bash.dedicated")
def test_the_prompt_steers_to_the_dedicated_tools():
    offered = set(CODING)
    named = re.search(r"For files use (.*), not (.*)\.", bash.prompt)
    assert set(re.findall(r"`(\w+)`", named[1])) == {"read", "write", "edit", "grep", "find"} <= offered
    assert set(re.findall(r"\w+", named[2])) > {"cat", "head", "tail", "echo", "sed"}
    assert "several calls of one message" in bash.prompt


async def test_the_variables_of_a_call_reach_its_commands_and_the_person_who_is_asked():
    asked = []

    async def approver(approval):
        asked.append(approval)
        return Reply(allow=True, remember="session")

    commands = MemoryCommands({"go": CannedOutput()}, confined=False)
    box = memory_toolbox(commands=commands, approver=approver)
    for path in ("one", "one", "two"):
        env = {"TOKEN": "secret", "PATH": path}
        call = Call(tool="bash", args={"command": "go"}, env=env, metadata={"chat": 7})
        assert (await box.call(call)).ok
    assert [ran.env["PATH"] for ran in commands.commands] == ["one", "one", "two"]
    assert len(asked) == 2, "a yes is for this PATH"
    assert "# set: PATH=one\n# set: TOKEN\n" in asked[0].preview
    assert asked[0].metadata == {"chat": 7}
    await box.call("bash", {"command": "go"})
    assert commands.commands[-1].env == {}


async def test_a_job_has_the_variables_of_the_call_that_started_it():
    commands = MemoryCommands({"go": CannedOutput()})
    call = Call(tool="bash", args={"command": "go", "background": True}, env={"A": "1"})
    assert (await memory_toolbox(commands=commands).call(call)).ok
    assert commands.commands[0].env == {"A": "1"}


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (CannedOutput(b"", 0), "ok", ""),
        (CannedOutput(b"", 3), "failed", "exit 3"),
        (CannedOutput(b"", None, 11), "failed", "signal 11"),
    ],
)
async def test_the_log_says_failed_of_a_command_that_failed(answer, status, code):
    commands = MemoryCommands({"go": answer})
    box = memory_toolbox(commands=commands)
    assert (await box.call("bash", {"command": "go"})).ok
    [logged] = box.workspace.journal.calls.page()
    assert (logged.status, logged.code) == (status, code)
