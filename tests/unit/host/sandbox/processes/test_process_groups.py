"""Commands where there are no supervisors: run here, on Linux, by a thread and a process group."""

import os
import signal
import time
from contextlib import nullcontext
from dataclasses import replace

import anyio
import pytest

from handtools.core.commands import CommandLimits
from handtools.host.sandbox.launch import Launch, Mount
from handtools.host.sandbox.processes.running_process import run_process
from handtools.host.sandbox.processes.unsupervised_process_groups import PROCESS_GROUPS
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="machine: no process groups")


@pytest.fixture
def run(tmp_path):
    def ran(script, mounts=(), **values):
        launch = Launch(
            argv=("bash", "-c", script),
            env={"PATH": os.environ["PATH"]},
            root=str(tmp_path),
            **{"cwd": str(tmp_path), **values},
        )
        confined = replace(UnconfinedRunner().confine(launch), pool=PROCESS_GROUPS, mounts=mounts)
        ended = anyio.run(run_process, launch, tmp_path / "output", None, lambda _: nullcontext(confined))
        return ended, (ended.output.head + ended.output.tail).decode()

    return ran


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ends_soon(pid, seconds=20.0):
    """Whether a process is gone within some time: who adopts it has to collect it first."""
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                return True
    return not is_running(pid)


def test_a_command_prints_and_ends_with_its_code(run):
    ended, text = run("echo out; echo err >&2; exit 3")
    assert (ended.code, ended.ended, text) == (3, "exited", "out\nerr\n")


def test_the_signal_that_ended_a_command_is_told(run):
    ended, _ = run("kill -SEGV $$")
    assert (ended.code, ended.signal) == (None, 11)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_signals_that_our_process_ignores_are_not_ignored_by_a_command(run, number):
    _, usual = run("env | grep -v ^HANDTOOLS_RUN= | sort")
    before = signal.signal(number, signal.SIG_IGN)  # as under nohup, or in the background of a script
    try:
        ended, _ = run(f"kill -{int(number)} $$; echo ignored")
        _, same = run("env | grep -v ^HANDTOOLS_RUN= | sort")
    finally:
        signal.signal(number, before)
    assert (ended.code, ended.signal) == (None, number)
    assert same == usual


@pytest.mark.linux("supervisors")
def test_what_a_command_left_running_ends_with_it(run):
    ended, text = run("sleep 600 >/dev/null 2>&1 & echo $!")
    assert ended.code == 0
    assert ended.left
    assert ends_soon(int(text))


@pytest.mark.linux("supervisors")
def test_a_command_that_takes_too_long_ends_with_all_it_started(run):
    ended, text = run("sleep 600 & echo $!; wait", limits=CommandLimits(seconds=1))
    assert ended.ended == "timeout"
    assert ends_soon(int(text))


def test_a_command_that_ignores_the_first_signal_is_killed(run):
    ended, _ = run("trap '' TERM; while :; do sleep 600; done", limits=CommandLimits(seconds=1))
    assert (ended.ended, ended.code) == ("timeout", None)


def test_a_terminal_is_the_commands_own_and_has_its_size(run):
    _, text = run("stty size; tty </dev/tty >/dev/null && echo controlled", terminal=(30, 90))
    assert text.replace("\r", "") == "30 90\ncontrolled\n"


def test_a_descriptor_is_passed_under_its_number(run, tmp_path):
    fd = os.open(tmp_path / "slip", os.O_RDWR | os.O_CREAT)
    try:
        ended, _ = run(f"echo told >&{fd}", pass_fds=(fd,))
    finally:
        os.close(fd)
    assert ended.code == 0
    assert (tmp_path / "slip").read_text() == "told\n"


def test_a_file_that_grows_too_large_ends_the_command_that_writes_it(run, tmp_path):
    run("head -c 100000 /dev/zero > big", limits=CommandLimits(written_bytes=8192))
    assert (tmp_path / "big").stat().st_size <= 8192


def test_a_launch_that_needs_linux_is_refused_and_nothing_runs(run, tmp_path):
    ended, _ = run("touch ran", mounts=(Mount("none", "/mnt"),))
    assert "needs a supervisor" in ended.fault
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_gone_is_a_clear_refusal(run, tmp_path):
    ended, _ = run("true", cwd=str(tmp_path / "gone"))
    assert "gone" in ended.fault
