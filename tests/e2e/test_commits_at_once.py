"""Several agents and a person commit to one repository at once: no commit is lost without a word."""

import subprocess
import sys
import threading

import anyio
import anyio.to_thread
import pytest

from handtools import Call, Toolbox
from handtools.core.events import Progressed
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux"),
]
NOT_APPLIED = "None of its changes were applied."
AGENTS, COMMITS = 3, 4


def git(root, *words):
    command = ["git", "-c", "user.name=p", "-c", "user.email=p@x", *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "agent")
    git(folder, "config", "user.email", "agent@x")
    (folder / "gate").write_text("wait\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    if overlay_problem(folder, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return folder


def opened(root, listeners=()):
    workspace = local_workspace(root, state=root.parent / "state")
    return Toolbox(CODING, workspace=workspace, listeners=listeners)


async def ran(box, command, session="s"):
    return await box.call(Call(tool="bash", args={"command": command}, session=session))


async def test_every_commit_of_several_agents_is_kept_or_said_to_be_lost(root):
    async def work(name):
        async with opened(root) as box:
            for number in range(COMMITS):
                one = f"{name}-{number}"
                script = f"echo {one} > {one}; git add {one}; git commit -qm {one}"
                while (result := await ran(box, script, name)).status != "ok":
                    assert NOT_APPLIED in result.text, result.text

    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            for number in range(AGENTS):
                group.start_soon(work, f"agent{number}")
    wanted = sorted(f"agent{agent}-{number}" for agent in range(AGENTS) for number in range(COMMITS))
    assert sorted(git(root, "log", "--format=%s").split()) == sorted(["first", *wanted])
    assert git(root, "status", "--porcelain") == ""
    log = git(root, "log", "--name-only", "--format=%s")
    assert all(f"{one}\n\n{one}" in log for one in wanted), log
    git(root, "fsck", "--strict")


async def test_a_commit_beside_a_persons_commit_fails_with_its_output_and_changes_nothing(root):
    ready = threading.Event()

    def listen(event):
        if isinstance(event, Progressed) and "ready" in event.text:
            ready.set()

    commit = "echo x > new; git add new; git commit -qm agent"
    script = f"{commit}; until grep -q go gate; do echo re''ady; sleep 0.1; done"
    async with opened(root, [listen]) as box:
        results = []
        async with anyio.create_task_group() as group:

            async def call():
                results.append(await ran(box, script))

            group.start_soon(call)
            assert await anyio.to_thread.run_sync(ready.wait, 60)
            git(root, "commit", "-q", "--allow-empty", "-m", "person")
            with (root / "gate").open("r+") as gate:
                gate.write("go\n")
        [result] = results
        assert result.status == "error"
        assert "ready" in result.text and NOT_APPLIED in result.text and "Run it again." in result.text
        assert git(root, "log", "--format=%s").split() == ["person", "first"]
        assert not (root / "new").exists()
        again = await ran(box, script)
        assert again.status == "ok", again.text
        assert git(root, "log", "--format=%s").split() == ["agent", "person", "first"]
