"""What a person sees while an agent works: output as it comes, the log as it grows, sessions, sums."""

import os
import select
import signal
import subprocess

import pytest

from tests.e2e.cli.conftest import HANDTOOLS

PATIENCE = 60


def started(shell, *words):
    return subprocess.Popen(
        [HANDTOOLS, *words], cwd=shell.folder, env=shell.environment, stdout=subprocess.PIPE, bufsize=0
    )


def read_until(process, wanted):
    """What a process has printed, up to and with the wanted text."""
    seen = b""
    while wanted not in seen and select.select([process.stdout], [], [], PATIENCE)[0]:
        more = os.read(process.stdout.fileno(), 65536)
        if not more:
            break
        seen += more
    return seen


@pytest.mark.usefixtures("commands_allowed")
def test_output_comes_while_the_command_runs(shell):
    script = "echo first; tail -f /dev/null"
    with started(shell, "call", "bash", f"command={script}") as running:
        assert read_until(running, b"first\n") == b"first\n"
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        running.stdout.read()


@pytest.mark.usefixtures("commands_allowed")
@pytest.mark.parametrize("rows", [3, 700, 5_000])
def test_streamed_output_is_complete_and_told_once(shell, rows):
    pause = f"[ $((n % {rows // 3})) = 0 ] && sleep 0.3"
    script = f"for n in $(seq {rows}); do echo row $n; {pause}; done; echo; printf end"
    out = shell.run("call", "bash", f"command={script}").out
    lines = out.split("\n")
    assert [line for line in lines if line.startswith("row")] == [f"row {n}" for n in range(1, rows + 1)]
    assert lines.count("end") == 1
    assert sum(line.startswith("Exit code 0 after") for line in lines) == 1
    assert lines.index("end") > lines.index(f"row {rows}")


def test_the_log_is_followed(shell):
    first = shell.write("a.txt", "one\n")
    with started(shell, "log", "--follow", "--json") as following:
        assert first.encode() in read_until(following, first.encode())
        second = shell.write("b.txt", "two\n")
        seen = read_until(following, second.encode())
        assert second.encode() in seen
        assert first.encode() not in seen
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE) == 0


def test_sessions_are_listed_with_what_stands_of_their_changes(shell):
    shell.write("a.txt", "one\n", "--session", "early", "--agent", "ann")
    shell.write("b.txt", "two\n", "--session", "late")
    undone = shell.write("c.txt", "three\n", "--session", "late")
    assert shell.run("undo", undone).code == 0
    rows = {row["name"]: row for row in shell.run("sessions", "--json").rows}
    assert [rows["early"][key] for key in ("calls", "standing", "agents")] == [1, 1, "ann"]
    assert [rows["late"][key] for key in ("calls", "standing")] == [2, 1]
    said = shell.run("sessions").out
    assert said.index("late") < said.index("early")


def test_a_diff_is_summed_up(shell):
    shell.write("a.txt", "--- one\n+++ two\nthree\n")
    shell.edit("a.txt", "three", "3")
    shell.write("b.bin", "x\n")
    stat = shell.run("diff", "--stat", "--json").json
    assert {row["path"]: (row["added"], row["removed"]) for row in stat["files"]} == {
        "a.txt": (3, 0),
        "b.bin": (1, 0),
    }
    assert (stat["added"], stat["removed"]) == (4, 0)
    said = shell.run("diff", "--stat").out
    assert "a.txt  +3 -0\n" in said
    assert said.endswith("2 files, 4 lines added, 0 lines removed\n")
    edited = shell.run("diff", shell.edit("a.txt", "--- one", "1"), "--stat").out
    assert "a.txt  +1 -1" in edited


@pytest.mark.usefixtures("commands_allowed")
def test_a_long_undo_is_summed_up(shell):
    made = "for n in $(seq 200); do echo $n > many/deep/$n.txt; done"
    script = f"mkdir -p many/deep && {made}; echo x > one.txt"
    call = shell.call("bash", command=script)
    planned = shell.run("undo", call, "--dry-run")
    assert "200 in many/deep/" in planned.out
    assert (shell.folder / "one.txt").exists()
    ran = shell.run("undo", call)
    assert ran.code == 0
    assert len(ran.out) < 2_000
    assert "200 in many/deep/" in ran.out
    assert "one.txt" in ran.out
    assert not (shell.folder / "many").exists()
    stat = shell.run("diff", call, "--stat").out
    assert len(stat.splitlines()) < 70
