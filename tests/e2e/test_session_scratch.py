"""Scratch of a session: $HOME, /tmp and package caches that stay, have a quota, and are nobody else's."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from handtools import Call, Policy, Toolbox
from handtools.core.commands import Command, CommandLimits
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.commands.session_scratch import KEPT_SCRATCH_SECONDS, ScratchQuota
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.capture_selection import BestCapture
from handtools.host.sandbox.runners.runner_selection import runner_named, runners_by_strength
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: commands need Linux")
WORKING = [runner.name for runner in runners_by_strength() if not runner.unavailable_reason()]
confined = pytest.mark.skipif("bubblewrap" not in WORKING, reason="machine: bubblewrap does not work")


class Session:
    """Commands of one session of a workspace; a new one is like a new process."""

    def __init__(self, base, name="s", *, owner="", runner="bubblewrap", **options):
        self.root, self.state = base / "work", base / "state"
        self.root.mkdir(exist_ok=True)
        self.name, self.owner = name, owner
        self.commands = LocalCommands(
            self.root,
            state=self.state,
            output_blobs=FolderBlobStore(self.state / "outputs"),
            runner=runner_named(runner),
            capture=BestCapture(self.root, FolderBackups(self.state / "vault")),
            **options,
        )

    def call(self):
        return Call(tool="bash", args={}, session=self.name, owner=self.owner)

    async def run(self, script, limits=None):
        command = Command(script=script, limits=limits or CommandLimits())
        ran = await self.commands.run(
            command, call=self.call(), show=lambda _: None, private_globs=(), read_only_globs=()
        )
        ran.discard()
        return ran.exit

    async def start(self, script):
        return await self.commands.start(
            Command(script=script),
            call=self.call(),
            description="",
            private_globs=(),
            read_only_globs=(),
            show=lambda _: None,
            settle=lambda ran: ran.exit,
        )

    async def said(self, script):
        end = await self.run(script)
        return (end.output.head + end.output.tail).decode()

    @property
    def room(self):
        """Where the session's folders are on disk; there is one session."""
        [room] = (self.state / "scratch" / "sessions").iterdir()
        return room


def wheel(folder: Path) -> None:
    """A package of one module and one program, as pip installs it."""
    with zipfile.ZipFile(folder / "lasting-1-py3-none-any.whl", "w") as file:
        file.writestr("lasting.py", "def main():\n    print('it lasts')\n")
        about = "lasting-1.dist-info"
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: lasting\nVersion: 1\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/entry_points.txt", "[console_scripts]\nlasting = lasting:main\n")
        file.writestr(f"{about}/RECORD", "")


@confined
async def test_what_a_command_leaves_in_tmp_and_home_is_there_for_the_next_and_after_a_restart(tmp_path):
    first = Session(tmp_path)
    await first.run("echo one > /tmp/a; echo two > ~/b; echo three > $TMPDIR/c")
    assert await first.said("cat /tmp/a ~/b /var/tmp/c") == "one\ntwo\nthree\n"
    assert await Session(tmp_path).said("cat /tmp/a ~/b") == "one\ntwo\n"


@confined
async def test_a_package_that_a_command_installs_for_its_user_can_be_imported_and_run_by_the_next(tmp_path):
    session = Session(tmp_path)
    wheel(session.root)
    pip = "/usr/bin/python3 -m pip install --user --no-index --no-cache-dir --no-warn-script-location"
    installed = await session.run(f"{pip} --break-system-packages ./lasting-1-py3-none-any.whl")
    if b"No module named pip" in installed.output.head:
        pytest.skip("machine: the system's Python has no pip")
    assert installed.code == 0, installed.output.head
    assert await session.said("/usr/bin/python3 -c 'import lasting; lasting.main()'; lasting") == (
        "it lasts\nit lasts\n"
    )


@confined
async def test_scratch_is_not_part_of_what_a_command_changed(tmp_path):
    session = Session(tmp_path)
    ran = await session.commands.run(
        Command(script="echo x > /tmp/a; echo x > ~/a"),
        call=session.call(),
        show=lambda _: None,
        private_globs=(),
        read_only_globs=(),
    )
    assert ran.delta == ()
    ran.discard()


@pytest.mark.claim("bash.scratch")
@confined
async def test_undo_takes_back_what_a_command_did_to_the_workspace_and_leaves_scratch_alone(tmp_path):
    (tmp_path / "work").mkdir()
    workspace = local_workspace(tmp_path / "work", state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as box:
        call = Call(tool="bash", args={"command": "echo kept | tee ~/a /tmp/b c"})
        assert (await box.call(call)).ok
        await box.call("undo", {"scope": "call", "name": call.id})
        result = await box.call("bash", {"command": "cat ~/a /tmp/b c"})
    assert result.text.startswith("kept\nkept\ncat: c: No such file")


@confined
async def test_sessions_do_not_see_each_others_scratch_but_share_package_caches(tmp_path):
    await Session(tmp_path, "one").run(
        "echo secret > /tmp/a; echo secret > ~/b; echo kept > ~/.cache/wheel"
    )
    other = Session(tmp_path, "two")
    assert await other.said("cat /tmp/a ~/b 2>/dev/null; cat ~/.cache/wheel") == "kept\n"
    search = f"grep -rs secret /tmp /home /mnt {tmp_path}/state; true"
    assert "secret" not in await other.said(search)


@confined
async def test_owners_share_neither_scratch_nor_caches(tmp_path):
    await Session(tmp_path, owner="one").run("echo secret > /tmp/a; echo secret > ~/.cache/wheel")
    assert await Session(tmp_path, owner="two").said("cat /tmp/a ~/.cache/wheel 2>/dev/null; true") == ""


@confined
async def test_a_command_that_fills_scratch_is_ended_and_the_answer_says_so(tmp_path):
    session = Session(tmp_path, scratch_quota=ScratchQuota(bytes=64 << 20))
    await session.run("echo kept > ~/b")
    end = await session.run("head -c 200M /dev/zero > /tmp/big; for i in $(seq 600); do sleep 0.1; done")
    assert end.ended == "limit"
    assert any("wrote more to $HOME, /tmp" in note for note in end.notes)
    assert any("exceeded 64 MiB" in note for note in end.notes)
    assert await session.said("ls /tmp/big 2>/dev/null; cat ~/b") == "kept\n"


@confined
async def test_what_a_command_may_write_counts_for_scratch_too(tmp_path):
    session = Session(tmp_path)
    await session.run("head -c 40M /dev/zero > ~/before")
    slow = "head -c 20M /dev/zero | tee /tmp/a > ~/b; for i in $(seq 600); do sleep 0.1; done"
    end = await session.run(slow, CommandLimits(written_bytes=30 << 20))
    assert end.ended == "limit"
    assert await session.said("stat -c %s ~/before") == f"{40 << 20}\n"


@confined
@pytest.mark.parametrize(
    "script",
    [
        "seq 3000 | (cd ~; xargs touch)",
        "cd ~; touch one; python3 -c 'import os; [os.link(\"one\", str(at)) for at in range(3000)]'",
        "mkdir ~/shut; (cd ~/shut; seq 3000 | xargs touch); chmod 0 ~/shut",
        "cd ~; d=$(printf x%.0s {1..200}); for i in $(seq 60); do mkdir $d; cd $d; done; seq 3000 | xargs touch",
    ],
    ids=["files", "hard links", "a folder that can't be read", "deeper than a path"],
)
async def test_what_many_files_are_made_of_does_not_help_over_the_quota(tmp_path, script):
    session = Session(tmp_path, scratch_quota=ScratchQuota(files=2000))
    end = await session.run(script)
    assert any("exceeded" in note for note in end.notes), end
    assert await session.said("ls ~") == "go\n"


@confined
async def test_sparse_files_count_as_what_they_take(tmp_path):
    session = Session(tmp_path, scratch_quota=ScratchQuota(bytes=64 << 20))
    end = await session.run("truncate -s 1G ~/sparse && ls ~/sparse")
    assert end.notes == ()
    assert await session.said("ls ~/sparse") == f"{await session.said('echo -n ~')}/sparse\n"


@confined
async def test_scratch_that_nobody_used_for_a_week_goes_and_links_in_it_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    old = Session(tmp_path, "old")
    deep = "mkdir -p " + "/".join(["d" * 100] * 30)
    await old.run(
        f"ln -s {outside} ~/out; ln -s {outside} /tmp/out; cd ~; {deep}; chmod 0 ~/ddd* /tmp; true"
    )
    room = old.room
    ago = time.time() - KEPT_SCRATCH_SECONDS - 1
    os.utime(room, (ago, ago))
    await Session(tmp_path, "new").run("true")
    deadline = time.monotonic() + 20
    while len(list((old.state / "scratch" / "sessions").iterdir())) > 1 and time.monotonic() < deadline:
        await Session(tmp_path, "new").run("true")
    assert not room.exists()
    assert [path.name for path in (old.state / "scratch" / "sessions").iterdir()] == [old.room.name]
    assert (outside / "file").read_text() == "mine"


@confined
async def test_scratch_goes_with_a_session_that_has_ended(tmp_path):
    one, other = Session(tmp_path, "one"), Session(tmp_path, "other")
    await one.run("echo x > /tmp/a; mkdir ~/d; chmod 0 ~/d")
    await other.run("echo kept > /tmp/a")
    one.commands.end_session("one")
    assert len(list((one.state / "scratch" / "sessions").iterdir())) == 1
    assert await other.said("cat /tmp/a") == "kept\n"


@confined
def test_the_scratch_of_a_client_goes_when_its_server_ends(tmp_path):
    (tmp_path / "work").mkdir()
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    called = {"name": "bash", "arguments": {"command": "echo x > /tmp/a; ls /tmp/a"}}
    messages = (
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": called},
    )
    with subprocess.Popen(
        [sys.executable, "-m", "handtools", "mcp", str(tmp_path / "work")],
        env=os.environ | {"HANDTOOLS_STATE": str(tmp_path / "state")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        answers = iter(server.stdout.readline, b"")
        assert any(json.loads(line).get("id") == 2 and b"/tmp/a" in line for line in answers)
        server.stdin.close()
        assert server.wait(30) == 0
    assert list((tmp_path / "state").glob("*/scratch/sessions/*")) == []
    assert list((tmp_path / "state").glob("*/scratch/sessions")) != []


@confined
async def test_scratch_that_a_job_uses_does_not_go(tmp_path):
    session = Session(tmp_path)
    job = await session.start("read line; cat /tmp/a")
    await session.run("echo kept > /tmp/a")
    ago = time.time() - KEPT_SCRATCH_SECONDS - 1
    os.utime(session.room, (ago, ago))
    await Session(tmp_path, "new").run("true")
    await session.commands.send(job.id, "s", b"\n")
    ended = await session.commands.job(job.id, "s", timeout=20)
    assert ended.output.head == b"kept\n"
    session.commands.close()


@confined
async def test_no_command_can_put_a_link_where_the_next_ones_workspace_is_mounted(tmp_path):
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("machine: temporary folders are elsewhere")
    outside = tmp_path / "outside"
    outside.mkdir()
    session, name = Session(tmp_path), tmp_path.parts[2]
    tried = await session.said(
        f"mv /tmp/{name} /tmp/moved; rm -rf /tmp/{name}; rmdir /tmp/{name}; "
        f"ln -sfnT /oldroot{outside} /tmp/{name}; mv -T --exchange /tmp/{name} /tmp/moved; stat -c %F /tmp/{name}"
    )
    assert tried.endswith("directory\n")
    assert await session.said("pwd; echo x > made; cat made") == f"{session.root}\nx\n"
    assert list(outside.iterdir()) == []


@confined
async def test_a_name_that_a_command_took_first_is_not_mounted_at_while_it_runs(tmp_path):
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("machine: temporary folders are elsewhere")
    outside, tools = tmp_path / "outside", Path(f"/tmp/{tmp_path.name}-{os.getpid()}-tools")
    outside.mkdir()
    tools.mkdir()
    (tools / "word").write_text("shown")
    try:
        session = Session(tmp_path)
        await session.run(f"ln -s /oldroot{outside} {tools}")
        job = await session.start("read line")
        later = Session(tmp_path, readable=[str(tools)])
        assert "shown" not in await later.said(f"cat {tools}/word")
        await session.commands.kill(job.id, "s")
        session.commands.close()
        assert await later.said(f"cat {tools}/word") == "shown"
        assert list(outside.iterdir()) == []
    finally:
        (tools / "word").unlink()
        tools.rmdir()


@confined
async def test_programs_of_ours_find_no_setting_that_a_command_left_in_its_home(tmp_path):
    session = Session(tmp_path)
    mark = session.root / "mark"
    await session.run(
        f"for f in .bashrc .profile .bash_profile .bash_login .bash_env; do echo 'touch {mark}' > ~/$f; done; "
        f"printf '[core]\\n\\tfsmonitor = touch {mark}\\n' > ~/.gitconfig; git init -q . 2>/dev/null; true"
    )
    await session.run("git status; true")
    await Session(tmp_path, "other").run("git status; true")
    assert not (tmp_path / "work" / "mark").exists()
    assert not Path(os.path.expanduser("~"), ".bash_env").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")
@confined
async def test_scratch_belongs_to_the_owner_of_the_workspace(tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder not in {Path("/tmp"), Path("/")}:
            folder.chmod(folder.stat().st_mode | 0o011)
    session = Session(tmp_path)
    os.chown(session.root, 5001, 5001)
    session.state.mkdir(mode=0o700)
    await session.run("id -u > /tmp/a; cp /bin/true ~/elevated; chmod u+s ~/elevated")
    assert await session.said("cat /tmp/a; stat -c %u ~ /tmp ~/.cache/") == "5001\n5001\n5001\n5001\n"
    assert (session.room / "tmp" / "a").stat().st_uid == 5001
    assert session.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif("landlock" not in WORKING, reason="machine: no Landlock")
async def test_under_landlock_the_home_and_temporary_folder_stay_too(tmp_path):
    session = Session(tmp_path, runner="landlock")
    await session.run("echo one > $TMPDIR/a; echo two > ~/b; echo three > ~/.cache/c")
    assert await session.said("cat $TMPDIR/a ~/b") == "one\ntwo\n"
    other = Session(tmp_path, "other", runner="landlock")
    assert (
        await other.said(f"cat $TMPDIR/a {session.state}/scratch/sessions/*/tmp/a 2>&1; cat ~/.cache/c")
        != ""
    )
    assert "one" not in await other.said(f"cat {session.state}/scratch/sessions/*/tmp/a 2>&1; true")
    assert await other.said("cat ~/.cache/c") == "three\n"
