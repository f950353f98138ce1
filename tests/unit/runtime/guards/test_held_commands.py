"""Commands that ended and whose changes wait for a person's word."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio
import pytest

from handtools import Call, Change, ChangeSet, Node, Policy, Reply, Toolbox
from handtools.core.changes import BackupRef
from handtools.core.errors import Busy
from handtools.runtime.journal.change_entries import Transaction
from handtools.testing.memory_files_and_search import MemoryBackups
from handtools.testing.memory_toolbox import MemoryLocks, memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands
from handtools.toolbox import CODING

YES, NO = Reply(allow=True), Reply(allow=False, message="Not now.")


@dataclass
class CapturedCommands(MemoryCommands):
    """Commands whose changes, at first a file `made`, are kept apart until they land."""

    delta: tuple[Change, ...] = (Change.of("made", before=None, after=b"new\n"),)
    let_go: int = 0
    """How often what was kept apart was let go of."""

    async def run(self, command, **given):
        return self.captured(await super().run(command, **given))

    async def start(self, command, *, settle, **given):
        return await super().start(command, settle=lambda ran: settle(self.captured(ran)), **given)

    async def job(self, job_id, session, *, timeout):
        found = await super().job(job_id, session, timeout=timeout)
        return replace(found, waiting=found.waiting and self.captured(found.waiting))

    def captured(self, ran):
        return replace(ran, delta=self.delta, coverage="overlay", discard=self.discard)

    def discard(self):
        self.let_go += 1


def made(answer=None, **options):
    commands = CapturedCommands({"make": answer or CannedOutput(b"built\n")})
    return memory_toolbox({"a": b""}, commands=commands, **options), commands


async def held(box):
    return await box.call(Call(tool="bash", args={"command": "make", "review": True}, id="c"))


async def ended_job(box, **args):
    """Start a job whose process then ends by itself; nobody looks at it."""
    await box.call("bash", {"command": "make", "background": True, **args})
    await box.workspace.commands.kill("job1", "default")


async def looked_at(box):
    return await box.call("jobs", {"action": "output", "job": "job1"})


def answering(reply):
    """An approver with one answer, and the titles that it was asked."""
    asked = []

    async def approver(approval):
        asked.append(approval.title)
        return reply

    return approver, asked


async def test_a_yes_lands_what_was_held_and_runs_nothing_again():
    box, commands = made()
    assert (await held(box)).status == "pending"
    assert "made" not in box.workspace.files.files
    assert (await box.resume("c", YES)).text.startswith("built\nExit code 0")
    assert box.workspace.files.files["made"] == b"new\n"
    assert len(commands.commands) == 1


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
            "no\nThe command ended with exit code 2; its changes are not applied yet",
        ),
        (
            CannedOutput(code=None, signal=9),
            "The command ended with signal 9; its changes are not applied yet",
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
            ["(Full output: `output:c.log`.)"],
        ),
        (
            b"".join(b"%d of 9000\r" % number for number in range(9_000)),
            ["(Full output: `output:c.log`.)"],
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


@pytest.mark.parametrize(
    ("target", "status"), [(b"a", "ok"), (b"/workspace/a", "ok"), (b"/elsewhere", "pending")]
)
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


@pytest.mark.parametrize(("unattended", "landed"), [("allow", True), ("deny", False), ("ask", False)])
async def test_without_a_person_the_policy_says_whether_what_a_job_changed_lands(unattended, landed):
    box, commands = made(policy=Policy(unattended=unattended))
    await ended_job(box, review=True)
    assert ("made" in box.workspace.files.files) == landed
    assert commands.let_go == (unattended != "ask")
    told = (await looked_at(box)).text
    assert ("None of its changes were applied" in told) == (unattended == "deny")


@pytest.mark.parametrize("reply", [YES, NO])
@pytest.mark.parametrize("unattended", ["ask", "allow"])
async def test_whoever_looks_at_a_job_first_answers_for_what_it_changed(unattended, reply):
    approver, asked = answering(reply)
    box, commands = made(policy=Policy(unattended=unattended), approver=approver)
    await ended_job(box, review=True)
    assert (asked, commands.let_go) == ([], 0)
    first, second = await looked_at(box), await looked_at(box)
    assert len(asked) == commands.let_go == 1
    assert ("made" in box.workspace.files.files) == reply.allow
    for told in (first, second):
        assert ("None of its changes were applied" in told.text) == (not reply.allow)


async def test_a_job_that_changed_nothing_waits_for_nobody():
    approver, asked = answering(NO)
    box, commands = made(approver=approver)
    commands.delta = ()
    await ended_job(box, review=True)
    assert commands.let_go == 1
    await looked_at(box)
    assert asked == []


async def test_a_call_that_is_cancelled_while_a_person_thinks_lets_go_of_what_was_captured():
    async def thinks(_):
        scope.cancel()
        await anyio.sleep_forever()

    box, commands = made(approver=thinks)
    with anyio.CancelScope() as scope:
        await held(box)
    assert commands.let_go == 1
    assert "made" not in box.workspace.files.files


class NotedBackups(MemoryBackups):
    """Backups that note whose remains were deleted."""

    def __init__(self):
        super().__init__()
        self.deleted = []

    def delete_item_leftovers(self, name):
        self.deleted.append(name)


async def test_after_a_no_the_backups_keep_nothing_of_a_command_that_was_held():
    box, commands = made()
    backups = box.workspace.files.backups = NotedBackups()
    commands.delta = (Change("made", None, Node("file", mode=0o644, held=BackupRef("item/up", "mark", 4))),)
    assert (await held(box)).status == "pending"
    assert backups.deleted == []
    await box.resume("c", NO)
    assert backups.deleted == ["item"]


@pytest.mark.parametrize(
    ("output", "is_whole"),
    [
        (b"x\n" * 400, True),
        (b"x\n" * 401, False),
        (b"x" * 15_000, True),
        (b"x" * 15_001, False),
    ],
    ids=["400 lines", "401 lines", "15,000 bytes", "15,001 bytes"],
)
async def test_four_hundred_lines_and_15_000_bytes_are_shown_of_a_command_that_is_held(output, is_whole):
    box, _ = made(CannedOutput(output))
    assert (await held(box)).text.startswith(f"{output.decode().rstrip()}\nThe command ended") == is_whole


class BusyLocks(MemoryLocks):
    """Locks of which another process holds that of `made`, and does not let go."""

    def __init__(self):
        super().__init__()
        self.waited = []

    @asynccontextmanager
    async def hold(self, keys, *, timeout):
        if "made" in keys:
            self.waited.append(timeout)
            raise Busy("made is held by another call.", hint="Try again when it is done.")
        async with super().hold(keys, timeout=timeout):
            yield


async def test_what_a_command_changed_waits_half_a_minute_for_whoever_has_the_file():
    box, commands = made()
    locks = BusyLocks()
    busy = Toolbox(CODING, workspace=replace(box.workspace, locks=locks))
    result = await busy.call("bash", {"command": "make"})
    assert result.fault.code == "busy"
    assert locks.waited == [30.0]
    assert "made" not in box.workspace.files.files
    assert commands.let_go == 1


class InterruptedCommands(CapturedCommands):
    """Commands while which another process is killed in the middle of its changes."""

    async def run(self, command, **given):
        for path in ("a", "b"):
            both = Change.of(path, before=b"1", after=b"2"), Change.of(f"{path}/x", before=None, after=b"")
            steps = self.workspace.files.plan(both)
            self.workspace.journal.entries.intend(
                Call(tool="patch", args={}), Transaction(ChangeSet(both)), steps
            )
            self.workspace.files.perform(steps[:1])
        return await super().run(command, **given)


async def test_what_a_killed_process_left_of_the_same_file_is_taken_back_before_a_command_lands():
    commands = InterruptedCommands({"make": CannedOutput()})
    commands.delta = (Change.of("a", before=b"1", after=b"3"),)
    box = memory_toolbox({"a": b"1", "b": b"1"}, commands=commands)
    commands.workspace = box.workspace
    assert (await box.call("bash", {"command": "make"})).ok
    # The other file is nobody's here: the next start sees to it.
    assert box.workspace.files.files == {"a": b"3", "b": b"2"}
    assert len(box.workspace.journal.entries.open()) == 1
