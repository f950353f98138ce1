"""Commands as transactions: their changes are judged before they land, can be taken back, and survive crashes."""

import contextlib
import os
import random
import select
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from bench.capture.trees import snapshot
from handtools import Call, Policy, Toolbox
from handtools.core.approval import Reply
from handtools.core.changes import WHOLE_FOLDER_ITEMS
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.overlay.overlay_capture import LayerQuota, OverlayCapture, overlay_problem
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner
from handtools.host.sandbox.scan_capture import ScanBudget, ScanCapture
from handtools.host.workspace_folders import backups_folder
from handtools.toolbox import CODING, local_workspace
from tests.e2e.transaction_crashes import box as crash_box

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

ATTENDED = Policy(defaults={"read": "allow", "change": "allow", "run": "allow", "visit": "ask"})


@pytest.fixture
def base(tmp_path):
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "e").mkdir()
    (root / "a").write_text("old\n")
    (root / "d" / "x").write_text("x")
    if overlay_problem(root, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return tmp_path


def made(base, *, capture=None, policy=None):
    root, state = base / "work", base / "state"
    commands = None
    if capture is not None:
        outputs = FolderBlobStore(state / "outputs")
        commands = LocalCommands(
            root, state=state, output_blobs=outputs, runner=UnconfinedRunner(), capture=capture
        )
    workspace = local_workspace(root, state=state, commands=commands)
    return Toolbox(CODING, workspace=workspace, policy=policy or Policy(unattended="allow"))


async def run(box, script, **args):
    call = Call(tool="bash", args={"command": script, **args})
    return call, await box.call(call)


async def undo(box, call, action="undo"):
    return await box.call("undo", {"scope": "call", "name": call.id, "action": action})


def items(base):
    folder = base / "state" / "vault"
    return [name for name in os.listdir(folder) if len(name) == 16] if folder.exists() else []


async def test_what_a_command_did_is_recorded_and_can_be_taken_back_and_done_again(base):
    box, root = made(base), base / "work"
    before = snapshot(root)
    call, result = await run(box, "echo new > a; rm -r d; mkdir -p n/m; touch n/y; ln -s a l; chmod 700 e")
    assert result.changes.coverage == "overlay"
    after = snapshot(root)
    assert after != before
    await undo(box, call)
    assert snapshot(root) == before
    await undo(box, call, "redo")
    assert snapshot(root) == after


async def test_a_command_that_changes_nothing_leaves_nothing(base):
    box = made(base)
    _, result = await run(box, "cat a; ls -la")
    assert result.changes is None
    await box.aclose()
    assert items(base) == []


async def test_a_layer_that_was_never_written_serves_the_next_command(base):
    box, root = made(base), base / "work"
    await run(box, "cat a")
    [spare] = items(base)
    call, _ = await run(box, "echo new > a")
    assert items(base) == [spare]
    await run(box, "cat a")
    assert len(items(base)) == 2
    await undo(box, call)
    assert (root / "a").read_text() == "old\n"


async def test_what_was_undone_is_not_there_for_the_next_command(base):
    box, root = made(base), base / "work"
    call, _ = await run(box, "echo new > n; mkdir m; echo new > m/n")
    await undo(box, call)
    _, result = await run(box, "cat n m/n; true")
    assert "new" not in result.text
    assert result.changes is None
    await undo(box, call, "redo")
    assert (root / "m" / "n").read_text() == "new\n"


async def test_edits_after_a_command_are_undone_with_it_as_a_session(base):
    box, root = made(base), base / "work"
    before = snapshot(root)
    script = "mkdir big; for i in $(seq 300); do echo line $i > big/$i; done"
    assert (await box.call(Call(tool="bash", args={"command": script}, session="s"))).ok
    edit = {"path": "big/7", "old_string": "line 7", "new_string": "mine"}
    assert (await box.call(Call(tool="edit", args=edit, session="s"))).ok
    result = await box.call("undo", {"scope": "session", "name": "s"})
    assert snapshot(root) == before, result.text


async def test_a_persons_file_in_a_folder_that_a_command_made_stays(base):
    box, root = made(base), base / "work"
    call, _ = await run(box, "mkdir big; for i in $(seq 300); do echo $i > big/$i; done")
    (root / "big" / "mine").write_text("mine")
    result = await undo(box, call)
    assert os.listdir(root / "big") == ["mine"], result.text
    assert [kept.path for kept in result.details.conflicts] == ["big"]


async def test_a_review_shows_a_diff_and_lands_exactly_that_without_running_again(base):
    root = base / "work"
    call, result = await run(
        made(base, policy=ATTENDED), "date +%N > a; cat /proc/sys/kernel/random/uuid > stamp", review=True
    )
    assert result.status == "pending"
    assert "-old" in result.request.preview
    assert (root / "a").read_text() == "old\n"
    shown = next(line for line in result.request.preview.splitlines() if line.count("-") == 4)
    # Another process, after a restart: the layer has waited in the state folder.
    later = made(base, policy=ATTENDED)
    assert (await later.call("think", {"thought": "the first call tidies up"})).ok
    assert (await later.resume(call.id, Reply(True))).ok
    assert shown == f"+{(root / 'stamp').read_text().strip()}"
    await undo(later, call)
    assert (root / "a").read_text() == "old\n"


async def test_a_review_that_is_declined_changes_nothing_and_keeps_nothing(base):
    box, root = made(base, policy=ATTENDED), base / "work"
    before = snapshot(root)
    call, _ = await run(box, "echo new > a", review=True)
    result = await box.resume(call.id, Reply(False))
    assert result.status == "denied"
    assert snapshot(root) == before
    assert items(base) == []


async def test_protected_paths_wait_for_a_person_and_private_ones_that_were_there_never_land(base):
    root = base / "work"
    (root / ".env").write_text("SECRET=0\n")
    box = made(
        base,
        capture=OverlayCapture(root, FolderBackups(backups_folder(root, base / "state"))),
        policy=ATTENDED,
    )
    _, result = await run(box, "mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/pre-commit")
    assert result.status == "pending"
    assert not (root / "sub").exists()
    _, result = await run(box, "echo SECRET=1 > .env; echo fine > fine")
    assert (root / ".env").read_text() == "SECRET=0\n"
    assert (root / "fine").exists()
    assert ".env" in result.text


class Meddling:
    """A capture during which a person is at work."""

    has_isolated_writes = True

    def __init__(self, inner, act):
        self.inner, self.act = inner, act

    def begin(self, launch, *, in_place):
        self.capturing = self.inner.begin(launch, in_place=in_place)
        self.overlays, self.discard = self.capturing.overlays, self.capturing.discard
        return self

    def finish(self):
        self.act()
        return self.capturing.finish()


async def test_what_a_person_changed_while_the_command_ran_is_theirs(base):
    root = base / "work"

    def act():
        (root / "a").write_text("a person's\n")
        (root / "d" / "new").write_text("a person's\n")

    backups = FolderBackups(backups_folder(root, base / "state"))
    box = made(base, capture=Meddling(OverlayCapture(root, backups), act))
    _, result = await run(box, "echo command > a; echo other > other; rm -r d")
    assert (root / "a").read_text() == "a person's\n"
    assert os.listdir(root / "d") == ["new"]
    assert (root / "other").exists()
    assert "`a`" in result.text
    kept = list((backups.folder / "kept").rglob("a"))
    assert [path.read_text() for path in kept] == ["command\n"]


async def test_no_privilege_no_device_and_no_foreign_owner_lands(base):
    root = base / "work"
    box = made(base, capture=OverlayCapture(root, FolderBackups(backups_folder(root, base / "state"))))
    _, result = await run(
        box, "cp /bin/true su; chmod 6755 su; mkfifo pipe; mkdir g; chmod 2755 g; mknod dev c 1 3; true"
    )
    assert (root / "su").stat().st_mode & 0o7777 == 0o755
    assert (root / "g").stat().st_mode & 0o7777 == 0o755
    assert not (root / "pipe").exists()
    assert not (root / "dev").exists()
    assert "`pipe`" in result.text
    owners = {path.lstat().st_uid for path in root.rglob("*")}
    assert owners == {root.stat().st_uid}


async def test_a_layer_over_its_quota_does_not_land(base):
    root = base / "work"
    backups = FolderBackups(backups_folder(root, base / "state"))
    box = made(base, capture=OverlayCapture(root, backups, quota=LayerQuota(bytes=1 << 20, files=50)))
    _, result = await run(box, "head -c 3000000 /dev/urandom > large")
    assert not (root / "large").exists()
    assert "MiB" in result.text
    await run(box, "for i in $(seq 100); do : > f$i; done")
    assert not list(root.glob("f*"))


async def test_a_command_that_fills_its_layer_is_ended_while_it_runs(base):
    root = base / "work"
    backups = FolderBackups(backups_folder(root, base / "state"))
    box = made(base, capture=OverlayCapture(root, backups, quota=LayerQuota(bytes=8 << 20, files=50)))
    _, result = await run(box, "while :; do head -c 1M /dev/zero >> large$((n++ % 40)); done", timeout=60)
    assert result.details.ended == "limit"
    assert "wrote more to the workspace than allowed" in result.text
    _, result = await run(box, "while :; do : > f$((n++)); done", timeout=60)
    assert "created too many files in the workspace" in result.text
    assert [path.name for path in root.iterdir() if path.name[0] in "fl"] == []


async def test_without_layers_a_scan_sees_changes_and_lists_what_it_could_not_keep(base):
    root = base / "work"
    (root / "large").write_bytes(random.Random(1).randbytes(5000))
    before = snapshot(root)
    capture = ScanCapture(
        root, FolderBackups(backups_folder(root, base / "state")), budget=ScanBudget(file_bytes=1000)
    )
    box = made(base, capture=capture)
    call, result = await run(
        box, "echo new > a; rm -r d; mkdir n; echo y > n/y; ln -s a l; chmod 700 e; : > large"
    )
    assert result.changes.coverage == "scan"
    assert result.changes.omitted == ("large",)
    (root / "large").write_bytes(random.Random(1).randbytes(5000))
    after = snapshot(root)
    told = await undo(box, call)
    assert snapshot(root) == before, told.text
    await undo(box, call, "redo")
    assert snapshot(root) == after


def crashed(base, moment, number):
    """Run a process that dies; what it printed."""
    argv = [sys.executable, "-m", "tests.e2e.transaction_crashes", str(base), moment, str(number)]
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": f"{root}/src:{root}"}
    return subprocess.Popen(argv, cwd=root, env=env, stdout=subprocess.PIPE, text=True)


def left_mounts(base):
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(base) in line]


def started(word, but):
    """Handles of the processes that have a word among their arguments, as soon as there is one."""
    found = []
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0") and int(pid) != but:
                    found.append(os.pidfd_open(int(pid)))
    assert found, "it never ran"
    return found


def test_a_crash_while_a_command_runs_leaves_no_process_no_mount_and_no_change(base):
    number = 100_000 + os.getpid()
    before = snapshot(base / "work")
    process = crashed(base, "running", number)
    for line in process.stdout:
        if line.startswith("Progressed"):
            break
    try:
        running = started(str(number), but=process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    for pidfd in running:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        assert waiting.poll(20_000), "it outlived us"
        os.close(pidfd)

    async def tidy():
        await crash_box(base).call("think", {"thought": "the first call tidies up"})

    anyio.run(tidy)
    assert snapshot(base / "work") == before
    assert left_mounts(base) == []
    assert items(base) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7])
def test_a_crash_while_landing_is_finished_or_taken_back_at_the_next_start(base, moment, number):
    root = base / "work"
    before = snapshot(root)
    process = crashed(base, moment, number)
    said = process.communicate()[0]

    async def check():
        box = crash_box(base)
        await box.call("think", {"thought": "the first call settles what was left"})
        now = snapshot(root)
        if now == before:
            assert "survived" not in said
            return
        assert (root / "a").read_text() == "new\n"
        assert len(list((root / "big").iterdir())) == 300
        result = await box.call("undo", {"scope": "call", "name": "the-call"})
        assert snapshot(root) == before, result.text
        await box.call("undo", {"scope": "call", "name": "the-call", "action": "redo"})
        assert snapshot(root) == now

    anyio.run(check)
    assert not list(root.rglob(".handtools*"))
    assert left_mounts(base) == []


async def test_a_name_like_our_temporaries_never_lands_not_even_in_a_large_new_folder(base):
    root, own = base / "work", ".handtools-" + "0123456789ab" * 2
    script = f"mkdir -p big/{own}; for i in $(seq 300); do echo $i > big/$i; done; ln -s /etc big/{own}/out"
    _, result = await run(made(base), f"{script}; ln -s /etc {own}")
    assert (root / "big" / "300").read_text() == "300\n"
    assert not os.path.lexists(root / "big" / own)
    assert not os.path.lexists(root / own)
    assert own in result.text


async def test_an_undo_and_a_redo_that_make_a_repository_are_asked_about(base):
    head = base / "work" / "bare" / "HEAD"
    box = made(base, policy=ATTENDED)
    await box.call("write", {"path": "bare/HEAD", "content": "ref: refs/heads/main\n"})
    name = {"scope": "path", "name": "bare/HEAD"}
    assert (await box.call("undo", name)).ok
    await run(box, "mkdir -p bare/objects bare/refs; echo > bare/config")
    again = await box.call("undo", {**name, "action": "redo"})
    assert again.request is not None
    assert "treat as a repository" in again.request.rule
    assert not head.exists()


@pytest.mark.parametrize("count", [40, WHOLE_FOLDER_ITEMS + 1])
async def test_one_file_of_a_folder_that_a_command_removed_comes_back_alone(base, count):
    folder = base / "work" / "many"
    folder.mkdir()
    for number in range(count):
        (folder / f"f{number}").write_text(str(number))
    async with made(base) as box:
        removal, _ = await run(box, "rm -r many")
        assert not folder.exists()
        told = await box.call("undo", {"scope": "path", "name": "many/f7", "dry_run": True})
        assert told.ok, told.text
        assert not folder.exists()
        undone = await box.call("undo", {"scope": "path", "name": "many/f7"})
        assert undone.ok, undone.text
        assert [path.name for path in folder.iterdir()] == ["f7"]
        whole = await box.call("undo", {"scope": "call", "name": removal.id})
        assert whole.ok, whole.text
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        f"f{n}": str(n) for n in range(count)
    }
