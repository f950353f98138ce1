"""Private files that appear while a command or a job runs: nothing that could come from them is passed on."""

import os
import subprocess
import sys

import anyio
import pytest

from handtools import Call, Policy, Toolbox
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace
from tests.e2e.test_network import identity, pythons, variables

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

SECRET = "hunter2-in-a-file"


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    if overlay_problem(made, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return made


@pytest.fixture
async def box(root, tmp_path):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="deny")) as made:
        yield made


async def called(box, tool, **args):
    return await box.call(Call(tool=tool, args=args, session="s"))


async def run_beside(box, root, script, act):
    """Run a script in the foreground; when it has made `begun` in its session's /tmp, do something beside it."""
    result = None

    async def run():
        nonlocal result
        result = await called(box, "bash", command=f"touch /tmp/begun; {script}", timeout=30)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until_begun(box)
        await anyio.to_thread.run_sync(act)
    return result


async def until_begun(box):
    """Wait until a command has made `begun` in the /tmp of its session."""
    scratch = box.workspace.commands._scratch._folder
    with anyio.fail_after(30):
        while not [*scratch.glob("sessions/*/tmp/begun")]:
            await anyio.sleep(0)


def plant(path, content=SECRET):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


# A name that was looked up in vain is not looked up again in a layer: listings show what is new.
WAIT_FOR_IT = "until ls -A svc | grep -q env; do :; done; cat svc/.env"


async def test_a_command_that_reads_it_at_once_tells_nothing_and_changes_nothing(box, root):
    (root / "svc").mkdir()
    script = (
        f"echo early > made; {WAIT_FOR_IT}; cat svc/.env > copy; cp copy ~/copy; export GOT=$(cat copy)"
    )
    result = await run_beside(box, root, script, lambda: plant(root / "svc" / ".env"))
    assert SECRET not in result.text
    assert "the private file `svc/.env` appeared" in result.text
    assert sorted(path.name for path in root.iterdir()) == ["svc"]
    later = await called(box, "bash", command='cat ~/copy /tmp/copy copy svc/.env; echo "[$GOT]"')
    assert SECRET not in later.text
    assert "[]" in later.text


async def test_it_is_noticed_though_it_is_gone_when_the_command_ends(box, root):
    def act():
        plant(root / "key.pem")
        (root / "key.pem").unlink()

    result = await run_beside(box, root, "sleep 0.3; echo after", act)
    assert "the private file `key.pem` appeared" in result.text
    assert "after" not in result.text.splitlines()


async def test_a_folder_that_is_moved_brings_no_private_file_into_view(box, root):
    plant(root / "conf" / ".env")
    result = await run_beside(
        box,
        root,
        "until ls | grep -q old; do :; done; cat old/.env",
        lambda: (root / "conf").rename(root / "old"),
    )
    assert SECRET not in result.text
    assert "`old/.env`" in result.text


async def test_a_hidden_file_may_be_saved_in_any_way_while_a_command_runs(box, root):
    plant(root / ".env", "old")

    def act():
        plant(root / ".env")
        (root / ".env").unlink()
        plant(root / "plain")
        (root / "plain").rename(root / ".env")
        plant(root / "done", "")

    result = await run_beside(box, root, "until ls | grep -q done; do :; done; cat .env; echo after", act)
    assert SECRET not in result.text
    assert "after" in result.text.splitlines()


async def test_what_another_command_makes_ends_no_command(box):
    async def write():
        await until_begun(box)
        await called(box, "bash", command="echo KEY=made up > .env.local")

    script = "touch /tmp/begun; until ls -A | grep -q env; do :; done; cat .env.local; echo after"
    async with anyio.create_task_group() as group:
        group.start_soon(write)
        answer = await called(box, "bash", command=script, timeout=30)
    assert "KEY=made up\nafter" in answer.text


async def test_a_job_is_ended_and_tells_nothing(box, root):
    (root / "svc").mkdir()
    started = await called(
        box, "bash", command=f"touch /tmp/begun; {WAIT_FOR_IT}; sleep 60", background=True
    )
    await until_begun(box)
    plant(root / "svc" / ".env")
    ended = await called(box, "jobs", action="output", job=started.details.job, timeout=30)
    with anyio.fail_after(30):
        while ended.details.running:
            ended = await called(box, "jobs", action="output", job=started.details.job, timeout=30)
    assert SECRET not in ended.text
    assert "the private file `svc/.env` appeared" in ended.text


CLOSED_FOLDER = """
import os, sys, tempfile, anyio
from pathlib import Path
from handtools import coding

async def main():
    folder = Path(tempfile.mkdtemp())
    locked = folder / "work" / "locked"
    locked.mkdir(parents=True)
    (folder / "work" / "notes.txt").write_text("notes")
    (locked / ".env").write_text(sys.argv[1])
    (locked / "plain.txt").write_text("plain")
    locked.chmod(0o000)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    box = coding(folder / "work")
    told = [await box.call("bash", {"command": "chmod 755 locked; cat locked/.env; cat notes.txt"})]
    locked.chmod(0o311)
    told.append(await box.call("bash", {"command": "cat locked/.env; cat notes.txt"}))
    locked.chmod(0o755)
    told.append(await box.call("bash", {"command": "cat locked/.env; cat locked/plain.txt; cat notes.txt"}))
    await box.aclose()
    print(os.geteuid(), [(sys.argv[1] in each.text, "notes" in each.text) for each in told])
    print("plain" in told[-1].text)

anyio.run(main)
"""


def test_no_command_sees_a_name_in_a_folder_that_we_can_not_list():
    if os.geteuid() != 0:
        pytest.skip("machine: only root can become another user")
    user = 65534
    program = next(iter(pythons(user)), None) or pytest.skip("machine: no interpreter for that user")
    done = subprocess.run(
        [program, "-c", CLOSED_FOLDER, SECRET], env=variables(), capture_output=True, text=True,
        timeout=100, check=False, cwd="/", **identity(user),
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{user} {[(False, True)] * 3}", "True"], done.stderr
