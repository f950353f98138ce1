"""The contract of commands on this machine, held under every runner that works here."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from handtools.core.call import Call
from handtools.core.commands import Command, CommandLimits
from handtools.core.errors import InvalidInput, NotFound, TooLarge, Unavailable
from handtools.host.commands import background_jobs
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.runner_selection import runners_by_strength

RUNNERS = {runner.name: runner for runner in (*runners_by_strength(), ContainerRunner())}


@pytest.fixture(params=RUNNERS)
def runner(request):
    """Each runner of the ladder."""
    found = RUNNERS[request.param]
    if found.unavailable_reason():
        # .ci/run starts an engine, so without one in CI something is broken.
        pytest.skip(
            found.unavailable_reason()
            if found.name == "container"
            else f"machine: {found.unavailable_reason()}"
        )
    return found


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sub").mkdir()
    (folder / "given.txt").write_text("given\n")
    return folder


@pytest.fixture
def outputs(tmp_path) -> FolderBlobStore:
    return FolderBlobStore(tmp_path / "state" / "outputs")


@pytest.fixture
def commands(root, tmp_path, outputs, runner):
    made = LocalCommands(root, state=tmp_path / "state", output_blobs=outputs, runner=runner)
    yield made
    made.close()


async def run(commands, script, *, session="s", seconds=30.0, show=lambda _: None, **facts):
    command = Command(script=script, limits=CommandLimits(seconds=seconds), **facts)
    call = Call(tool="bash", args={}, session=session)
    ran = await commands.run(command, call=call, show=show, private_globs=(), read_only_globs=())
    ran.discard()
    return ran.exit


def text(done) -> str:
    return (done.output.head + done.output.tail).decode()


async def test_output_and_exit_code_come_back(commands):
    done = await run(commands, "cat given.txt; echo oops >&2; exit 3")
    assert text(done) == "given\noops\n"
    assert (done.code, done.signal, done.ended) == (3, None, "exited")
    assert done.output.lines == 2


async def test_the_signal_that_ended_it_is_known(commands):
    done = await run(commands, "bash -c 'kill -SEGV $$'; exit $?")
    assert done.code == 128 + signal.SIGSEGV


async def test_it_writes_to_the_workspace(commands, root):
    await run(commands, "echo new > sub/new.txt; rm given.txt")
    assert (root / "sub" / "new.txt").read_text() == "new\n"
    assert not (root / "given.txt").exists()


async def test_its_input_is_empty_and_no_terminal_is_there(commands):
    done = await run(
        commands,
        "cat; read x; echo $?; [ -t 0 ] || [ -t 1 ] || echo none; tty -s < /dev/tty || echo no tty",
    )
    assert text(done).startswith("1\nnone\n")
    assert text(done).endswith("no tty\n")


async def test_secrets_of_ours_are_not_in_its_environment(commands, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    done = await run(
        commands, "env; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'"
    )
    assert "hunter2" not in text(done)
    for asks_nothing in ("PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb", "NO_COLOR=1"):
        assert asks_nothing in text(done)


async def test_what_is_given_is_in_its_environment(commands):
    assert text(await run(commands, "echo $GIVEN", env={"GIVEN": "a b"})) == "a b\n"


async def test_only_its_own_descriptors_are_open(commands, tmp_path):
    with (tmp_path / "ours").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        done = await run(commands, "ls -l /proc/self/fd | sed 's/.* //' | grep -c ours")
    assert text(done) == "0\n"


async def test_folder_exports_and_functions_stay_in_the_session(commands):
    await run(commands, "cd sub; export KEPT='a b'; hello() { echo hello; }")
    done = await run(commands, 'basename "$PWD"; echo "$KEPT"; hello')
    assert text(done) == "sub\na b\nhello\n"
    assert done.cwd == "sub"
    other = await run(commands, 'basename "$PWD"; echo "[$KEPT]"', session="other")
    assert text(other) == "work\n[]\n"


async def test_a_given_folder_goes_before_the_sessions(commands):
    done = await run(commands, "pwd", cwd="sub")
    assert text(done).strip().endswith("/work/sub")
    with pytest.raises(InvalidInput):
        await run(commands, "pwd", cwd="given.txt")


async def test_the_folder_of_the_session_may_be_gone(commands, root):
    await run(commands, "cd sub")
    (root / "sub").rmdir()
    assert text(await run(commands, "pwd")).strip().endswith("/work")


async def test_a_folder_outside_does_not_stay(commands):
    assert (await run(commands, "cd /")).cwd == "."
    assert text(await run(commands, "pwd")).strip().endswith("/work")


async def test_a_child_that_holds_the_output_does_not_hold_the_call(commands):
    with anyio.fail_after(60):
        done = await run(commands, "sleep 1000 & setsid sleep 1000 & echo out")
    assert text(done) == "out\n"
    assert done.code == 0


async def test_a_timeout_ends_it(commands):
    done = await run(commands, "echo begun; trap '' TERM; while :; do sleep 1000; done", seconds=2)
    assert done.ended == "timeout"
    assert text(done) == "begun\n"


async def test_progress_is_shown_while_it_runs(commands):
    seen = []
    await run(commands, "echo first; sleep 0.4; echo second", show=seen.append)
    assert seen[0].tail == "first\n"
    assert seen[0].bytes == 6


async def test_long_output_is_in_the_store_and_both_ends_at_hand(commands, outputs):
    done = await run(commands, "seq 1 50000")
    whole = "".join(f"{number}\n" for number in range(1, 50001)).encode()
    assert done.output.bytes == len(whole)
    assert done.output.lines == 50000
    assert outputs.get(done.output.kept) == whole
    assert whole.startswith(done.output.head)
    assert whole.endswith(done.output.tail)


async def test_any_bytes_come_back(commands):
    done = await run(commands, r"printf '\377\000\033[31mx'")
    assert done.output.head == b"\xff\x00\x1b[31mx"


@pytest.mark.linux("supervisors")
async def test_a_limit_on_processes_holds(commands):
    command = Command(
        script="seq 120 | xargs -P 120 -I@ sleep 0.5", limits=CommandLimits(seconds=20, processes=40)
    )
    call = Call(tool="bash", args={})
    ran = await commands.run(command, call=call, show=lambda _: None, private_globs=(), read_only_globs=())
    ran.discard()
    assert ran.exit.seconds > 1.2, "all at once would take half a second"


async def start(commands, script, **facts):
    command = Command(script=script, limits=CommandLimits(seconds=60), **facts)
    call = Call(tool="bash", args={}, session="s")
    return await commands.start(
        command,
        call=call,
        description="",
        private_globs=(),
        read_only_globs=(),
        show=lambda _: None,
        settle=lambda ran: ran.exit,
    )


async def printed(commands, job, wanted: bytes) -> bytes:
    """Wait until a job has printed something; by asking, since nothing else tells."""
    with anyio.fail_after(60):
        while True:
            page = await commands.page(job, "s", 0, 1 << 20)
            if wanted in page.data:
                return page.data
            await commands.job(job, "s", timeout=0.02)


async def test_a_job_is_fed_and_ends_by_itself(commands):
    job = await start(commands, "read line; echo got $line")
    await commands.send(job.id, "s", b"this\n")
    done = await commands.job(job.id, "s", timeout=20)
    assert done.exit is not None
    assert done.exit.code == 0
    assert done.exit.output.head == b"got this\n"


async def test_a_job_is_killed_with_all_it_started(commands):
    job = await start(commands, "setsid sleep 1000 & echo ready; wait")
    await printed(commands, job.id, b"ready")
    with anyio.fail_after(60):
        done = await commands.kill(job.id, "s")
    assert done.exit is not None
    assert done.exit.ended == "killed"


async def test_a_job_in_a_terminal_has_one(commands):
    job = await start(
        commands, "tty; stty size; read -p 'name: ' name; echo hello $name", terminal=(30, 90)
    )
    await printed(commands, job.id, b"name: ")
    await commands.send(job.id, "s", b"you\r")
    data = await printed(commands, job.id, b"hello you")
    assert b"not a tty" not in data
    assert b"30 90" in data


async def test_ctrl_c_lets_a_program_on_a_terminal_clean_up(commands):
    program = "trap 'sleep 0.2; echo cleaned > cleaned.txt; exit 3' INT; echo ready; read line"
    job = await start(commands, f'sh -c "{program}"; cat cleaned.txt; exit 4', terminal=(30, 90))
    await printed(commands, job.id, b"ready")
    await commands.send(job.id, "s", b"\x03")
    done = await commands.job(job.id, "s", timeout=20)
    assert done.exit is not None
    assert done.exit.code == 4
    assert b"cleaned" in done.exit.output.head


async def test_jobs_are_listed_newest_first_and_only_to_their_session(commands):
    first, second = await start(commands, "sleep 1000"), await start(commands, "sleep 1000")
    assert [job.id for job in await commands.jobs("s")] == [second.id, first.id]
    assert await commands.jobs("other") == []
    with pytest.raises(NotFound):
        await commands.kill(first.id, "other")


async def test_the_number_of_jobs_is_limited(commands, monkeypatch):
    monkeypatch.setattr(background_jobs, "MAX_RUNNING_JOBS", 2)
    await start(commands, "sleep 1000")
    await start(commands, "sleep 1000")
    with pytest.raises(TooLarge):
        await start(commands, "sleep 1000")


async def test_a_port_on_which_a_job_does_not_listen_is_not_published(commands):
    job = await start(commands, "sleep 1000")
    with pytest.raises((InvalidInput, Unavailable)):
        await commands.publishable(job.id, "s", 4321)
    assert (await commands.unpublish(job.id, "s", None)).published == ()
    with pytest.raises(NotFound):
        await commands.publishable(job.id, "other", 4321)
    with pytest.raises(NotFound):
        await commands.unpublish(job.id, "other", None)


async def test_an_ended_job_takes_no_input(commands):
    job = await start(commands, "true")
    await commands.job(job.id, "s", timeout=20)
    with pytest.raises(InvalidInput):
        await commands.send(job.id, "s", b"x")


async def test_a_runner_is_honest_about_its_boundary(runner):
    assert len(runner.boundary) > 20
    assert runner.name
    assert "No sandbox" in runner.boundary or runner.name != "plain"
    assert not (runner.confined and runner.name == "plain")
