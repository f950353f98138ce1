"""A running job sees the present: what tools and people change, by polling and by inotify, through its layer."""

import os
import subprocess
import sys
import threading
import time

import anyio
import pytest

from handtools import Call, Policy, Toolbox
from handtools.core.approval import Reply
from handtools.host.files.backups import FolderBackups
from handtools.host.files.tree_watch import TreeWatch
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace
from tests.e2e.test_network import identity, interpreter, pythons, variables

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

POLLING = """
import os, time
def one(path): return os.stat(path).st_mtime_ns, open(path).read()
def state(): return {n: one(f"src/{n}") for n in sorted(os.listdir("src"))}
def safe():
    try: return state()
    except OSError: return None
seen = state(); print("ready", flush=True)
while True:
    now = safe()
    if now is not None and now != seen:
        seen = now; print("noticed", {n: text for n, (_, text) in now.items()}, flush=True)
    time.sleep(0.02)
"""
NOTIFIED = """
import ctypes, os, struct
libc = ctypes.CDLL(None); fd = libc.inotify_init()
libc.inotify_add_watch(fd, b"src", 0x8 | 0x80 | 0x100 | 0x200 | 0x40)
[open(f"src/{n}").read() for n in os.listdir("src")]; print("ready", flush=True)
while True:
    data, at, names = os.read(fd, 65536), 0, set()
    while at < len(data):
        size = struct.unpack_from("iIII", data, at)[3]
        names.add(data[at + 16 : at + 16 + size].rstrip(b"\\0").decode()); at += 16 + size
    for name in sorted(n for n in names if not n.startswith(".")):
        try: print("noticed", name, open(f"src/{name}").read(), flush=True)
        except OSError: print("noticed", name, "is gone", flush=True)
"""


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "work"
    (made / "src").mkdir(parents=True)
    (made / "src" / "a.py").write_text("one")
    (made / "src" / "b.py").write_text("bee")
    (made / "polling.py").write_text(POLLING)
    (made / "notified.py").write_text(NOTIFIED)
    if overlay_problem(made, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return made


@pytest.fixture
async def box(root, tmp_path):
    async def nobody(_):
        pytest.fail("a person was asked")
        return Reply(allow=False)

    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(), approver=nobody) as made:
        yield made


async def called(box, tool, **args):
    result = await box.call(Call(tool=tool, args=args, session="s"))
    assert result.ok, result.text
    return result


async def started(box, script):
    call = Call(tool="bash", args={"command": script, "background": True}, session="s")
    result = await box.call(call)
    assert result.ok, result.text
    return call, result.details.job


async def printed(box, job, *words):
    with anyio.fail_after(60):
        while True:
            text = (await called(box, "jobs", action="output", job=job)).text
            if all(word in text for word in words):
                return text
            await anyio.lowlevel.checkpoint()


def saved(path, text):
    """As many editors save: a new file in the place of the old one."""
    (path.parent / ".saving").write_text(text)
    os.replace(path.parent / ".saving", path)


@pytest.mark.claim("bash.job_sees")
@pytest.mark.parametrize("program", ["polling.py", "notified.py"])
async def test_a_reloader_notices_what_a_tool_and_a_person_change(box, root, program):
    _, job = await started(box, f"exec {interpreter()} {program}")
    await printed(box, job, "ready")
    await called(box, "edit", path="src/a.py", old_string="one", new_string="by a tool")
    await printed(box, job, "by a tool")
    saved(root / "src" / "a.py", "by a person")
    await printed(box, job, "by a person")
    with (root / "src" / "a.py").open("w") as file:
        file.write("in place")
    await printed(box, job, "in place")
    (root / "src" / "new.py").write_text("brand new")
    await printed(box, job, "brand new")
    await called(box, "bash", command="echo from a command > src/b.py")
    await printed(box, job, "from a command")
    (root / "src" / "b.py").unlink()
    gone = "b.py is gone" if program == "notified.py" else "'a.py': 'in place', 'new.py': 'brand new'}"
    await printed(box, job, gone)
    ended = await called(box, "jobs", action="kill", job=job)
    assert "Files:" not in ended.text, "it changed nothing itself"
    assert "another program changed them" not in ended.text
    assert sorted(path.name for path in (root / "src").iterdir()) == ["a.py", "new.py"]


async def test_what_the_job_itself_writes_is_recorded_and_undone(box, root):
    wait = "until grep -q edited src/a.py; do sleep 0.02; done"
    writes = "echo mine >> src/a.py; echo log > src/log; echo wro''te"
    script = f"cat src/a.py; echo re''ady; {wait}; {writes}; sleep 1000"
    call, job = await started(box, script)
    await printed(box, job, "ready")
    await called(box, "bash", command="mkdir src/deep; echo deeper > src/deep/f")
    await called(box, "edit", path="src/a.py", old_string="one", new_string="edited\n")
    await printed(box, job, "wrote")
    await called(box, "jobs", action="kill", job=job)
    assert (root / "src" / "a.py").read_text() == "edited\nmine\n", "it added to what it was shown"
    assert (root / "src" / "log").read_text() == "log\n"
    assert (root / "src" / "deep" / "f").read_text() == "deeper\n"
    await called(box, "undo", scope="call", name=call.id)
    assert (root / "src" / "a.py").read_text() == "edited\n"
    assert not (root / "src" / "log").exists()


async def test_what_the_job_wrote_stays_as_it_wrote_it(box, root):
    _, job = await started(
        box, "echo the job > src/a.py; rm src/b.py; echo re''ady; while sleep 0.02; do cat src/*; done"
    )
    await printed(box, job, "ready")
    saved(root / "src" / "a.py", "a person")
    saved(root / "src" / "b.py", "a person")
    saved(root / "src" / "c.py", "it is here")
    text = await printed(box, job, "it is here")
    assert "a person" not in text
    ended = await called(box, "jobs", action="kill", job=job)
    assert "another program changed them" in ended.text
    assert (root / "src" / "a.py").read_text() == "a person"


async def test_folders_come_and_go(box, root):
    look = "ls src/pkg 2>/dev/null | tr '\\n' ' '; [ -d src/pkg ] || echo no folder"
    _, job = await started(box, f"echo re''ady; while sleep 0.02; do {look}; done")
    await printed(box, job, "ready", "no folder")
    (root / "src" / "pkg" / "inner").mkdir(parents=True)
    (root / "src" / "pkg" / "inner" / "x").write_text("x")
    (root / "src" / "pkg" / "y").write_text("y")
    await printed(box, job, "inner y")
    os.rename(root / "src" / "pkg", root / "away")
    size = (await called(box, "jobs", action="output", job=job)).details.output_bytes
    with anyio.fail_after(60):
        while "no folder" not in (await called(box, "jobs", action="output", job=job, since=size)).text:
            await anyio.lowlevel.checkpoint()
    ended = await called(box, "jobs", action="kill", job=job)
    assert "Files:" not in ended.text
    assert (root / "away" / "inner" / "x").read_text() == "x"


async def test_a_private_file_that_is_saved_again_stays_hidden(box, root):
    (root / ".env").write_text("KEY=first")
    _, job = await started(box, "echo re''ady; while sleep 0.02; do cat .env src/signal; done 2>/dev/null")
    await printed(box, job, "ready")
    saved(root / ".env", "KEY=second")
    saved(root / "src" / "signal", "it is here")
    text = await printed(box, job, "it is here")
    assert "KEY" not in text


async def test_a_link_that_the_job_made_leads_no_change_elsewhere(box, root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("outside")
    script = (
        f"rm -r src; ln -s {outside} src; echo re''ady; while sleep 0.02; do cat signal; done 2>/dev/null"
    )
    _, job = await started(box, script)
    await printed(box, job, "ready")
    saved(root / "src" / "a.py", "changed")
    saved(root / "signal", "it is here")
    await printed(box, job, "it is here")
    assert (outside / "a.py").read_text() == "outside"
    assert sorted(os.listdir(outside)) == ["a.py"]


async def test_nothing_of_it_is_left_when_the_job_has_ended(box, root):
    _, job = await started(box, "cat src/a.py; echo re''ady; while sleep 0.02; do cat src/a.py; done")
    await printed(box, job, "ready")
    saved(root / "src" / "a.py", "again")
    await printed(box, job, "again")
    await called(box, "jobs", action="kill", job=job)
    assert "handtools-refresh" not in {thread.name for thread in threading.enumerate()}
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    instances = [link for link in links if os.path.islink(link) and "inotify" in os.readlink(link)]
    assert len(instances) == 1  # that of the whole process


def test_a_watch_names_what_changed_and_passes_by_what_is_not_wanted(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    wake, waker = os.pipe()
    watch = TreeWatch(str(tmp_path), lambda path: not path.startswith("out"))
    try:
        assert watch.start(time.time_ns() + 10**9) == set()
        (tmp_path / "out" / "x").write_text("")
        (tmp_path / "in" / "deep").mkdir()
        (tmp_path / "in" / "deep" / "y").write_text("")
        changes = watch.changes(wake)
        seen = next(changes)
        assert "in/deep" in seen
        while "in/deep/y" not in seen:
            seen |= next(changes)
        assert not [path for path in seen if path.startswith("out")]
        os.write(waker, b"x")
        for more in changes:
            seen |= more
    finally:
        watch.close()
        os.close(wake)
        os.close(waker)


AS_USER = """
import os, sys, tempfile, anyio
from pathlib import Path
from handtools import coding

async def main():
    folder = Path(tempfile.mkdtemp())
    (folder / "work" / "src").mkdir(parents=True)
    (folder / "work" / "src" / "a.py").write_text("one")
    (folder / "work" / "notified.py").write_text(sys.argv[2])
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    box = coding(folder / "work")
    started = await box.call("bash", {"command": f"exec {sys.argv[1]} notified.py", "background": True})
    async def until(word):
        while word not in (await box.call("jobs", {"action": "output", "job": started.details.job})).text:
            await anyio.lowlevel.checkpoint()
    await until("ready")
    await box.call("edit", {"path": "src/a.py", "old_string": "one", "new_string": "by a tool"})
    await until("by a tool")
    (folder / "work" / "src" / "b").write_text("by a person")
    os.replace(folder / "work" / "src" / "b", folder / "work" / "src" / "a.py")
    await until("a.py by a person")
    ended = await box.call("jobs", {"action": "kill", "job": started.details.job})
    print(os.geteuid(), "Files:" in ended.text)
    await box.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize("user", [None, 65534], ids=["this user", "nobody"])
def test_it_is_so_for_an_ordinary_user_too(root, user):
    if user is not None and os.geteuid() != 0:
        pytest.skip("machine: only root can become another user")
    program = next(iter(pythons(user)), None) or pytest.skip("machine: no interpreter for that user")
    done = subprocess.run(
        [program, "-c", AS_USER, interpreter(), NOTIFIED], env=variables(),
        capture_output=True, text=True, timeout=100, check=False, cwd="/", **identity(user),
    )  # fmt: skip
    who = os.geteuid() if user is None else user
    assert done.stdout.splitlines() == [f"{who} False"], done.stderr
