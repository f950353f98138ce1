"""Commands as they go wrong: floods, trees that will not die, supervisors and owners that do."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from bench.kill import TREES, alive
from handtools.core.call import Call, CancelToken
from handtools.core.commands import Command, CommandLimits
from handtools.core.events import Progressed
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.toolbox import CODING, Toolbox, coding, local_workspace
from tests.e2e.nasty_trees import nothing_survives

ALLOWED = Policy(defaults=DEFAULTS | {"run": "allow"})
SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def outputs(tmp_path):
    return FolderBlobStore(tmp_path / "state" / "outputs")


@pytest.fixture
def commands(root, tmp_path, outputs):
    made = LocalCommands(root, state=tmp_path / "state", output_blobs=outputs, runner=UnconfinedRunner())
    yield made
    made.close()


@pytest.fixture
def box(root, tmp_path):
    """A toolbox whose commands are not confined: here the plain runner must hold by itself."""
    state = tmp_path / "state"
    made = LocalCommands(
        root, state=state, output_blobs=FolderBlobStore(state / "outputs"), runner=UnconfinedRunner()
    )
    workspace = local_workspace(root, state=state, commands=made)
    toolbox = Toolbox(CODING, workspace=workspace, policy=ALLOWED)
    yield toolbox
    anyio.run(toolbox.aclose)


async def run(commands, script, **limits):
    command = Command(script=script, limits=CommandLimits(**{"seconds": 60.0} | limits))
    call = Call(tool="bash", args={})
    ran = await commands.run(command, call=call, show=lambda _: None, private_globs=(), read_only_globs=())
    return ran.exit


@pytest.mark.parametrize("ending", ["exit", "timeout", "cancel"])
@pytest.mark.parametrize("tree", TREES)
async def test_nothing_of_a_nasty_tree_survives(commands, tree, ending):
    await nothing_survives(commands, tree, ending, seconds=20)


async def test_a_fork_bomb_is_stopped_by_its_limit_and_ended(commands):
    done = await run(commands, "bomb() { bomb | bomb & }; bomb; sleep 30", seconds=1.0, processes=150)
    assert done.ended == "timeout"
    assert done.seconds < 20
    again = await run(commands, "echo still fine")
    assert again.output.head == b"still fine\n"


async def test_a_command_that_kills_its_supervisor_gains_nothing(commands):
    token = f"5{os.getpid():06d}"
    done = await run(
        commands, f"setsid sleep {token}1 & nohup sleep {token}2 & kill -9 $PPID; sleep {token}3"
    )
    assert done.ended == "killed"
    assert alive(token) == []
    assert (await run(commands, "echo fine")).code == 0


def test_when_we_are_killed_everything_we_started_ends(root, tmp_path):
    token = f"4{os.getpid():06d}"
    program = f"""
import anyio
from pathlib import Path
from handtools.core.call import Call
from handtools.core.commands import Command
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner
from handtools.host.files.folder_blob_store import FolderBlobStore
state = Path({str(tmp_path / "state")!r})
outputs = FolderBlobStore(state / "o")
commands = LocalCommands({str(root)!r}, state=state, output_blobs=outputs, runner=UnconfinedRunner())
script = "trap '' TERM HUP; setsid sleep {token}1 & (setsid nohup sleep {token}2 &); echo up > up; sleep {token}3"
async def main():
    async with anyio.create_task_group() as group:
        start = dict(call=Call(tool="bash", args={{}}), private_globs=(), read_only_globs=())
        start["show"] = print
        await commands.start(
            Command(script="sleep {token}4"), description="", settle=lambda ran: ran.exit, **start
        )
        await commands.run(Command(script=script), **start)
anyio.run(main)
"""
    owner = subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(SRC)})
    until(lambda: (root / "up").exists() and len(alive(token)) >= 4)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until(lambda: not alive(token))


def until(condition) -> None:
    """Look again and again; the suite's own time limit ends what never comes."""
    while not condition():
        os.sched_yield()


async def test_a_flood_is_bounded_in_memory_and_on_disk(commands, outputs):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total, limit = 400 << 20, 32 << 20
    done = await run(commands, f"yes 'a line of output' | head -c {total}", output_bytes=limit)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert done.output.bytes == total
    assert done.output.dropped_bytes == total - limit
    assert grown < 50 * 1024, f"{grown} kB"
    assert limit <= outputs.size(done.output.kept) <= limit + 200


async def test_a_line_without_an_end_is_taken(commands):
    done = await run(commands, "head -c 30000000 /dev/zero | tr '\\0' x")
    assert (done.output.bytes, done.output.lines) == (30_000_000, 1)


async def test_a_million_lines_can_be_read_by_page_and_searched(box):
    result = await box.call("bash", {"command": "seq 1 1000000"})
    assert result.details.output_lines == 1_000_000
    assert result.text.startswith("1\n2\n")
    assert "\n1000000\nExit code 0" in result.text
    page = await box.call(
        "read", {"path": result.details.output_path, "start_line": 777_777, "end_line": 777_779}
    )
    assert "777777" in page.text
    assert "777779" in page.text
    found = await box.call("grep", {"path": result.details.output_path, "pattern": "^65432[12]$"})
    assert "654321:654321" in found.text
    assert result.details.output_path in found.text
    counted = await box.call(
        "grep", {"path": result.details.output_path, "pattern": "7$", "mode": "counts"}
    )
    assert "100000" in counted.text.replace(",", "")


async def test_an_output_that_is_gone_is_said_to_be(box):
    for tool, args in (("read", {}), ("grep", {"pattern": "x"})):
        result = await box.call(tool, {"path": "output:nothing.log", **args})
        assert result.fault.code == "not_found"
        assert "no longer stored" in result.text


async def test_a_slow_listener_does_not_slow_the_command(root, tmp_path, commands):
    waiting = []

    def slow(shown):
        waiting.append(shown)

    command = Command(script="yes | head -c 50000000; echo; echo end")
    call = Call(tool="bash", args={})
    ran = await commands.run(command, call=call, show=slow, private_globs=(), read_only_globs=())
    assert ran.exit.code == 0
    assert len(waiting) <= ran.exit.seconds / 0.1 + 2


@pytest.mark.claim("bash.session")
async def test_the_session_goes_on_where_it_was(box, root):
    (root / "sub").mkdir()
    await box.call("bash", {"command": "cd sub; export KEPT=1; hi() { echo hi; }; alias hello=hi; set -e"})
    result = await box.call("bash", {"command": 'false; basename "$PWD"; echo $KEPT; hi; hello'})
    assert result.text.startswith("sub\n1\nhi\nhi\n")


async def test_the_variables_of_a_call_are_its_own(box):
    async def told(env, script="echo =$CHAT"):
        result = await box.call(Call(tool="bash", args={"command": script}, env=env))
        return result.text.partition("\n")[0]

    assert await told({"CHAT": "a 'b' $c"}) == "=a 'b' $c"
    assert await told({}) == "="
    await told({}, "export CHAT=spoofed")
    assert await told({"CHAT": "8"}) == "=8", "the caller's word goes before what a script exported"
    assert await told({}) == "=spoofed"


async def test_progress_names_the_path_of_the_whole_output(box):
    heard = []
    script = "seq 1 20000; until [ -e go ]; do :; done"
    call = Call(tool="bash", args={"command": script, "timeout": 30})

    def listen(event):
        if isinstance(event, Progressed) and event.path:
            heard.append(event)
            box.cancel(call.id)

    await box.call(call, listener=listen)
    assert heard[0].clipped
    page = await box.call("read", {"path": heard[0].path, "limit": 3})
    assert "3\t3" in page.text


@pytest.mark.claim("bash.no_input")
async def test_nothing_waits_for_an_answer(box, root):
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    script = (
        "cat; read x; python3 -c 'input()' 2>/dev/null; git log | cat; git commit; git help -a | head -n 1"
    )
    with anyio.fail_after(60):
        result = await box.call("bash", {"command": script, "timeout": 20})
    assert result.details.ended == "exited"


@pytest.mark.claim("bash.timeout")
async def test_a_timeout_kills_it_and_everything_it_started(box):
    token = f"3{os.getpid():06d}"
    result = await box.call(
        "bash", {"command": f"setsid nohup sleep {token}1 & sleep {token}2", "timeout": 0.3}
    )
    assert result.details.ended == "timeout"
    assert "killed" in result.text
    assert alive(token) == []


@pytest.mark.claim("bash.leftovers")
async def test_what_it_leaves_running_is_ended_and_that_is_said(box):
    token = f"2{os.getpid():06d}"
    result = await box.call("bash", {"command": f"sleep {token} & echo started"})
    assert result.details.code == 0
    assert "background=true" in result.text
    assert alive(token) == []


async def test_a_cancelled_call_leaves_nothing_running(box):
    token, cancel = f"1{os.getpid():06d}", CancelToken()
    box.listen(lambda event: cancel.cancel() if getattr(event, "text", "") == "up\n" else None)
    with anyio.fail_after(60):
        result = await box.call("bash", {"command": f"echo up; sleep {token}"}, cancel=cancel)
    assert result.status == "cancelled"
    assert alive(token) == []


@pytest.mark.claim("jobs.wait")
async def test_waiting_for_a_job_does_not_end_it(box):
    await box.call("bash", {"command": "read x; echo got $x", "background": True})
    waited = await box.call("jobs", {"action": "wait", "job": "job1", "timeout": 0.05})
    assert waited.details.running
    await box.call("jobs", {"action": "send", "job": "job1", "text": "it\n"})
    done = await box.call("jobs", {"action": "wait", "job": "job1", "timeout": 20})
    assert done.details.code == 0
    assert "got it" in done.text


@pytest.mark.claim("jobs.kill")
async def test_jobs_end_when_killed_and_when_the_toolbox_is_closed(box):
    token = f"8{os.getpid():06d}"
    for number in (1, 2):
        script = f"setsid sleep {token}{number} & echo up; sleep {token}{number}"
        await box.call("bash", {"command": script, "background": True})
    until(lambda: len(alive(token)) >= 4)
    await box.call("jobs", {"action": "kill", "job": "job1"})
    assert alive(f"{token}1") == []
    assert len(alive(f"{token}2")) >= 2
    await box.aclose()
    assert alive(token) == []


def test_a_job_outlives_the_event_loop_that_started_it(box):
    started = anyio.run(box.call, "bash", {"command": "read x; echo got $x", "background": True})
    sent = {"action": "send", "job": started.details.job, "text": "later\n"}
    anyio.run(box.call, "jobs", sent)
    done = anyio.run(box.call, "jobs", {"action": "wait", "job": started.details.job, "timeout": 20})
    assert "got later" in done.text


async def test_a_program_in_a_terminal_is_used_like_by_a_person(box):
    await box.call("bash", {"command": "python3 -q", "background": True, "pty": True})
    await until_shown(box, ">>>")
    await box.call("jobs", {"action": "send", "job": "job1", "text": "6*7", "keys": ["enter"]})
    await until_shown(box, "\n42\n")
    await box.call("jobs", {"action": "send", "job": "job1", "keys": ["ctrl-d"]})
    done = await box.call("jobs", {"action": "wait", "job": "job1", "timeout": 20})
    assert done.details.code == 0


async def until_shown(box, wanted):
    with anyio.fail_after(60):
        while wanted not in (await box.call("jobs", {"action": "screen", "job": "job1"})).text:
            await box.call("jobs", {"action": "wait", "job": "job1", "timeout": 0.05})


async def test_by_default_the_strongest_runner_is_taken(root, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    async with coding(root, policy=ALLOWED) as box:
        result = await box.call("bash", {"command": "echo hello"})
    assert result.text.startswith("hello\n")


def another_user() -> list[str]:
    """How to run Python as somebody without rights, where there is a Python that they can reach."""
    site = [path for path in sys.path if path.endswith("site-packages")]
    paths = os.pathsep.join([str(SRC.parent), str(SRC), *site])
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"PYTHONPATH={paths}"]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        command = [*become, "PYTHONDONTWRITEBYTECODE=1", python]
        tried = subprocess.run(
            [*command, "-c", "import anyio, bench.kill"], capture_output=True, check=False
        )
        if not tried.returncode:
            return command
    return []


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: the other tests run without rights already")
@pytest.mark.parametrize("runner", ["plain", "bubblewrap"])
def test_nothing_survives_without_rights_either(runner):
    python = another_user()
    if not python:
        pytest.skip("machine: no Python that another user can reach")
    bench = [*python, "-m", "bench", "kill", "--runs", "27", "--runner", runner]
    done = subprocess.run(bench, cwd=SRC.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
