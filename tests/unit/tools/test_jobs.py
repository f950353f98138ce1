"""Jobs as a model calls them, over commands that run nothing."""

import pytest

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands


async def started(answer: CannedOutput, **args):
    box = memory_toolbox(commands=MemoryCommands({"go": answer}))
    assert (await box.call("bash", {"command": "go", "background": True, **args})).ok
    return box


async def test_jobs_are_listed_with_their_state():
    box = await started(CannedOutput(b"abc"), description="a server")
    result = await box.call("jobs", {})
    assert result.details.jobs == ["job1"]
    assert result.text == "job1: running for 1 s, 3 bytes of output: a server"


async def test_no_jobs_is_said():
    result = await memory_toolbox(commands=MemoryCommands()).call("jobs", {})
    assert result.text == "No jobs."


@pytest.mark.claim("jobs.cursor")
async def test_output_goes_on_from_the_cursor():
    box = await started(CannedOutput(b"one\n", reaction=lambda _: b"two\n"))
    first = await box.call("jobs", {"action": "output", "job": "job1"})
    assert first.text.startswith("one\n")
    assert f"since={first.details.cursor}" in first.text
    await box.call("jobs", {"action": "send", "job": "job1", "text": "x\n"})
    again = await box.call("jobs", {"action": "output", "job": "job1", "since": first.details.cursor})
    assert "two" in again.text
    assert "one" not in again.text


async def test_without_a_cursor_the_newest_comes():
    box = await started(CannedOutput(b"old\n" + b"x" * 40_000 + b"\nnew\n"))
    result = await box.call("jobs", {"action": "output", "job": "job1"})
    assert "old" not in result.text
    assert "new" in result.text
    assert "full output: `output:" in result.text


@pytest.mark.claim("jobs.send")
async def test_text_is_typed_and_then_keys_are_pressed():
    sent = []
    box = await started(CannedOutput(reaction=lambda data: sent.append(data) or b""))
    await box.call(
        "jobs", {"action": "send", "job": "job1", "text": "ls", "keys": ["enter", "ctrl-c", "up"]}
    )
    assert sent == [b"ls\r\x03\x1b[A"]


async def test_an_unknown_key_names_the_known_ones():
    box = await started(CannedOutput())
    result = await box.call("jobs", {"action": "send", "job": "job1", "keys": ["entr"]})
    assert result.fault.code == "invalid_input"
    assert "enter" in result.fault.hint


@pytest.mark.claim("jobs.screen")
async def test_the_screen_is_what_a_person_would_see():
    box = await started(CannedOutput(b"\x1b[2J\x1b[2;3Hmenu\x1b[1;1Htitle"), pty=True)
    result = await box.call("jobs", {"action": "screen", "job": "job1"})
    assert result.text.startswith("title\n  menu\n(Cursor at line 1, column 6.)")


async def test_a_job_without_a_terminal_has_no_screen():
    box = await started(CannedOutput())
    result = await box.call("jobs", {"action": "screen", "job": "job1"})
    assert result.fault.code == "invalid_input"


async def test_a_killed_job_says_so():
    box = await started(CannedOutput(b"x"))
    result = await box.call("jobs", {"action": "kill", "job": "job1"})
    assert not result.details.running
    assert "killed" in result.text


@pytest.mark.parametrize("action", ["output", "wait", "send", "kill", "screen", "publish", "unpublish"])
async def test_every_action_needs_a_job_of_this_session(action):
    box = await started(CannedOutput())
    missing = await box.call("jobs", {"action": action})
    assert missing.fault.code == "invalid_input"
    foreign = Call(tool="jobs", args={"action": action, "job": "job1"}, session="other")
    assert (await box.call(foreign)).fault.code == "not_found"


def serving(policy: Policy | None = None, **facts):
    commands = MemoryCommands({"go": CannedOutput(ports=(3000,))}, **facts)
    return memory_toolbox(commands=commands, policy=policy or Policy(defaults={"publish": "allow"}))


async def test_the_only_port_is_published_without_its_number():
    box = serving()
    await box.call("bash", {"command": "go", "background": True})
    result = await box.call("jobs", {"action": "publish", "job": "job1"})
    assert result.text.startswith(
        "The user can reach port 3000 of job1 at http://127.0.0.1:3000/.\njob1: running"
    )
    assert result.details.urls == ["http://127.0.0.1:3000/"]
    ended = await box.call("jobs", {"action": "unpublish", "job": "job1", "port": 3000})
    assert ended.details.urls == []
    assert ended.details.ports == [3000]


async def test_another_number_outside_is_said():
    box = serving(taken=frozenset({3000, 3001}))
    await box.call("bash", {"command": "go", "background": True})
    result = await box.call("jobs", {"action": "publish", "job": "job1", "port": 3000})
    assert "at http://127.0.0.1:3002/ (3000 is not available there)" in result.text


async def test_publishing_is_asked_about_and_remembered_by_its_port():
    asked = []

    async def yes(approval):
        asked.append(approval)
        return Reply(allow=True, remember="session")

    commands = MemoryCommands({"go": CannedOutput(ports=(3000,))})
    box = memory_toolbox(commands=commands, approver=yes)
    for number in (1, 2):
        await box.call("bash", {"command": "go", "background": True})
        result = await box.call("jobs", {"action": "publish", "job": f"job{number}"})
        assert result.ok, result.text
    assert [each.remembered for each in asked] == ["publish port 3000 (default for publish)"]


async def test_what_is_denied_is_not_published():
    box = serving(Policy(defaults={"publish": "deny"}))
    await box.call("bash", {"command": "go", "background": True})
    result = await box.call("jobs", {"action": "publish", "job": "job1"})
    assert result.status == "denied"
    assert "published" not in (await box.call("jobs", {})).text
