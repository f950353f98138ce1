"""Commands that ended and whose changes wait for a person's word."""

from dataclasses import dataclass, replace

import pytest

from handtools import Call, Change, Node, Reply
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands

YES, NO = Reply(allow=True), Reply(allow=False, message="Not now.")


@dataclass
class CapturedCommands(MemoryCommands):
    """Commands whose changes, at first a file `made`, are kept apart until they land."""

    delta: tuple[Change, ...] = (Change.of("made", before=None, after=b"new\n"),)
    let_go: int = 0
    """How often what was kept apart was let go of."""

    async def run(self, command, **given):
        ran = await super().run(command, **given)
        return replace(ran, delta=self.delta, coverage="overlay", discard=self.discard)

    async def start(self, command, *, settle, **given):
        def captured(ran):
            return settle(replace(ran, delta=self.delta, coverage="overlay", discard=self.discard))

        return await super().start(command, settle=captured, **given)

    def discard(self):
        self.let_go += 1


def made(answer=None, approver=None):
    commands = CapturedCommands({"make": answer or CannedOutput(b"built\n")})
    return memory_toolbox({"a": b""}, commands=commands, approver=approver), commands


async def held(box):
    return await box.call(Call(tool="bash", args={"command": "make", "review": True}, id="c"))


async def test_a_yes_lands_what_was_held_and_runs_nothing_again():
    box, commands = made()
    assert (await held(box)).status == "pending"
    assert "made" not in box.workspace.files.files
    assert (await box.resume("c", YES)).text.startswith("built\nExit code 0")
    assert box.workspace.files.files["made"] == b"new\n"
    assert len(commands.ran) == 1


async def test_a_no_denies_the_call_and_lets_go_of_what_was_captured():
    async def no(_):
        return NO

    box, commands = made(approver=no)
    result = await held(box)
    assert result.status == "denied"
    assert "Not now." in result.text
    assert "made" not in box.workspace.files.files
    assert commands.let_go == 1


async def test_what_landed_is_let_go_of():
    async def yes(_):
        return YES

    box, commands = made(approver=yes)
    assert (await held(box)).ok
    assert box.workspace.files.files["made"] == b"new\n"
    assert commands.let_go == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            CannedOutput(b"no\n", code=2),
            "no\nIt ran and ended with exit code 2; what it changed has not landed",
        ),
        (
            CannedOutput(code=None, signal=9),
            "It ran and ended with signal 9; what it changed has not landed",
        ),
        (CannedOutput(notes=("It was slow.",)), "(It was slow.)"),
    ],
)
async def test_how_it_ended_is_told_before_its_changes_land(answer, told):
    box, _ = made(answer)
    assert told in (await held(box)).text


@pytest.mark.parametrize(
    ("output", "named"),
    [
        (
            b"".join(b"line %d\n" % number for number in range(10_000)),
            ["(The whole output is `output:c.log`.)"],
        ),
        (
            b"".join(b"%d of 9000\r" % number for number in range(9_000)),
            ["(The whole output is `output:c.log`.)"],
        ),
        (b"line\n" * 500, []),
        (b"line\n" * 10, []),
    ],
    ids=["long", "a bar that draws over itself", "not stored", "short"],
)
async def test_output_that_is_not_shown_as_a_whole_names_its_path(output, named):
    box, _ = made(CannedOutput(output))
    lines = (await held(box)).text.splitlines()
    assert [line for line in lines if "output:" in line] == named


@pytest.mark.parametrize(("target", "status"), [(b"a", "ok"), (b"/elsewhere", "pending")])
async def test_a_link_that_a_command_makes_is_asked_about_where_it_leads_out(target, status):
    box, commands = made()
    commands.delta = (Change("link", None, Node("link", target)),)
    assert (await box.call("bash", {"command": "make"})).status == status


async def test_what_a_job_changed_lands_at_its_end_and_is_let_go_of():
    box, commands = made()
    await box.call("bash", {"command": "make", "background": True})
    assert "made" not in box.workspace.files.files
    await box.call("jobs", {"action": "kill", "job": "job1"})
    assert box.workspace.files.files["made"] == b"new\n"
    assert commands.let_go == 1
