"""What a job changes: apart while it runs, landed when it ends, undone like any call."""

import os
import subprocess
import sys

import anyio
import pytest

from bench.capture.trees import snapshot
from handtools import Call, Policy, Toolbox
from handtools.core.approval import Reply
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

ATTENDED = Policy(defaults={"read": "allow", "change": "allow", "run": "allow", "visit": "ask"})


@pytest.fixture
def base(tmp_path):
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("old\n")
    (root / "d" / "x").write_text("x")
    if overlay_problem(root, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return tmp_path


@pytest.fixture
async def box(base):
    async with made(base) as toolbox:
        yield toolbox


def made(base, policy=None, approver=None):
    workspace = local_workspace(base / "work", state=base / "state")
    return Toolbox(
        CODING, workspace=workspace, policy=policy or Policy(unattended="allow"), approver=approver
    )


async def started(box, script, **args):
    call = Call(tool="bash", args={"command": script, "background": True, **args}, session="s")
    result = await box.call(call)
    assert result.ok, result.text
    return call, result.details.job


async def jobs(box, action, job, **args):
    return await box.call(
        Call(tool="jobs", args={"action": action, "job": job, "timeout": 60, **args}, session="s")
    )


async def undo(box, call, action="undo"):
    return await box.call("undo", {"scope": "call", "name": call.id, "action": action})


async def printed(box, job, word):
    with anyio.fail_after(60):
        while word not in (await jobs(box, "output", job)).text:
            await anyio.lowlevel.checkpoint()


@pytest.mark.claim("bash.job_lands")
async def test_what_a_job_did_lands_when_it_ends_and_is_undone_and_redone(base, box):
    root = base / "work"
    before = snapshot(root)
    call, job = await started(box, "echo new > a; rm -r d; mkdir n; echo y > n/y; echo do''ne; read x")
    await printed(box, job, "done")
    assert snapshot(root) == before, "nothing lands while it runs"
    await jobs(box, "send", job, text="go\n")
    ended = await jobs(box, "wait", job)
    assert "Files: " in ended.text
    after = snapshot(root)
    assert (root / "n" / "y").read_text() == "y\n"
    assert not (root / "d").exists()
    await undo(box, call)
    assert snapshot(root) == before
    await undo(box, call, "redo")
    assert snapshot(root) == after


async def test_what_a_killed_job_did_lands_too(base, box):
    call, job = await started(box, "echo new > a; echo do''ne; sleep 1000")
    await printed(box, job, "done")
    await jobs(box, "kill", job)
    assert (base / "work" / "a").read_text() == "new\n"
    await undo(box, call)
    assert (base / "work" / "a").read_text() == "old\n"


async def test_a_job_that_nobody_looks_at_lands_as_well(base, box):
    await started(box, "echo new > b")
    with anyio.fail_after(60):
        while not (base / "work" / "b").exists():
            await anyio.lowlevel.checkpoint()


async def test_what_a_person_changed_meanwhile_is_theirs(base, box):
    root = base / "work"
    call, job = await started(box, "echo job > a; echo job > b; echo do''ne; read x")
    await printed(box, job, "done")
    (root / "a").write_text("person\n")
    (root / "mine").write_text("person\n")
    await jobs(box, "send", job, text="go\n")
    ended = await jobs(box, "wait", job)
    assert (root / "a").read_text() == "person\n"
    assert "`a`" in ended.text
    assert (root / "b").read_text() == "job\n"
    await undo(box, call)
    assert not (root / "b").exists()
    assert (root / "a").read_text() == (root / "mine").read_text() == "person\n"


async def test_when_the_toolbox_is_closed_its_jobs_end_and_what_they_did_lands(base):
    async with made(base) as box:
        _, job = await started(box, "echo new > a; echo do''ne; sleep 1000")
        await printed(box, job, "done")
    assert (base / "work" / "a").read_text() == "new\n"
    assert [name for name in os.listdir(base / "state" / "vault") if name.endswith("upper")] == []


async def test_what_needs_a_persons_word_waits_for_whoever_looks_at_the_job(base):
    asked = []

    async def approver(approval):
        asked.append(approval.title)
        return Reply(allow=True)

    async with made(base, ATTENDED, approver) as box:
        call, job = await started(box, "echo x > .envrc; echo y > plain")
        with anyio.fail_after(60):
            while "running" in (await box.call(Call(tool="jobs", args={}, session="s"))).text:
                await anyio.lowlevel.checkpoint()
        assert not (base / "work" / "plain").exists()
        assert asked == []
        await jobs(box, "output", job)
        assert len(asked) == 1
        assert (base / "work" / ".envrc").read_text() == "x\n"
        await undo(box, call)
        assert not (base / "work" / "plain").exists()


async def test_a_no_lets_go_of_what_a_job_did(base):
    async def approver(_):
        return Reply(allow=False)

    async with made(base, ATTENDED, approver) as box:
        _, job = await started(box, "echo x > .envrc; echo y > plain")
        ended = await jobs(box, "wait", job)
        assert "None of its changes were applied" in ended.text
        assert sorted(path.name for path in (base / "work").iterdir()) == ["a", "d"]


@pytest.mark.claim("bash.live")
async def test_a_live_job_sees_later_edits_and_is_not_undone(base, box):
    root = base / "work"
    call, job = await started(box, "cat a; echo do''ne; read x; cat a; echo new > b", live=True)
    await printed(box, job, "done")
    edit = {"path": "a", "old_string": "old", "new_string": "edited"}
    assert (await box.call(Call(tool="edit", args=edit, session="s"))).ok
    await jobs(box, "send", job, text="go\n")
    ended = await jobs(box, "wait", job)
    assert "edited" in ended.text
    assert "can't be undone" in ended.text
    await undo(box, call)
    assert (root / "b").read_text() == "new\n"


async def test_a_live_job_does_not_change_what_a_setting_of_git_names(base, box):
    root = base / "work"
    (root / "tools").mkdir()
    (root / "tools/check").write_text("#!/bin/sh\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "config", "core.hooksPath", "tools"], cwd=root, check=True)
    _, job = await started(
        box, "echo evil >> tools/check; echo evil > tools/new; echo x > plain", live=True
    )
    ended = await jobs(box, "wait", job)
    assert "Read-only file system" in ended.text
    assert [path.name for path in (root / "tools").iterdir()] == ["check"]
    assert (root / "tools/check").read_text() == "#!/bin/sh\n"
    assert (root / "plain").read_text() == "x\n"


async def test_a_live_job_needs_a_persons_word_though_it_is_confined(base):
    asked = []

    async def approver(approval):
        asked.append(approval.title)
        return Reply(allow=False)

    async with made(base, Policy(), approver) as box:
        args = {"command": "touch b", "background": True, "live": True}
        assert (await box.call("bash", args)).status == "denied"
    assert len(asked) == 1


async def test_what_was_undone_is_not_there_for_the_next_command(base, box):
    call = Call(tool="bash", args={"command": "echo made > made.txt; mkdir -p deep; echo x > deep/x"})
    await box.call(call)
    await undo(box, call)
    seen = await box.call("bash", {"command": "ls -A"})
    assert "made.txt" not in seen.text
    assert "deep" not in seen.text
    await undo(box, call, "redo")
    assert (base / "work" / "made.txt").read_text() == "made\n"
    assert "made" in (await box.call("bash", {"command": "cat made.txt"})).text
