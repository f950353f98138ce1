"""Starting: what help costs, what a large record costs, what a broken part looks like."""

import contextlib
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handtools.cli.main import COMMANDS
from tests.e2e.cli.conftest import HANDTOOLS

NAMES = list(COMMANDS)


def loaded(*words):
    program = "import sys; from handtools.cli.main import main\ntry: main()\nfinally: print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in NAMES)])
def test_help_is_answered_without_pydantic_and_rich(words):
    modules = loaded(*words)
    assert "handtools.cli.main" in modules
    assert not {"pydantic", "rich", "anyio", "sqlite3"} & set(modules)


def test_help_lists_every_command_with_a_whole_sentence(shell):
    out = shell.run("--help").out
    listed = {line.split()[0]: line for line in out.split("Commands:\n")[1].splitlines()}
    assert set(listed) == {*NAMES, "fleet"}
    assert all(line.endswith(".") and not line.endswith("...") for line in listed.values())


def test_output_has_no_colours_in_a_pipe_and_has_them_when_forced(shell):
    shell.write("a.txt", "x\n")
    assert "\x1b" not in shell.run("diff").out + shell.run("log").out
    assert "\x1b[32m+x" in shell.run("diff", FORCE_COLOR="1").out


def test_a_file_can_not_steer_the_terminal(shell):
    (shell.folder / "evil.txt").write_bytes(b"\x1b]0;owned\x07 text\n")
    seen = shell.run("call", "read", "path=evil.txt", FORCE_COLOR="1").out
    assert "\x1b]" not in seen
    assert "␛]0;owned␇ text" in seen


HIDDEN = "\x1b]0;owned\x07\x1b[2K\u202e\u200b\x9b31m"


def test_nothing_that_a_call_holds_steers_the_terminal_at_the_end_of_a_pipe(shell):
    """But for the answer of `call` and the diff of `diff`, which other programs read."""
    call_id = shell.write("a\u202e.txt", f"{HIDDEN}\n", "--session", f"s{HIDDEN}", "--agent", HIDDEN)
    lists = [
        "log",
        "sessions",
        "stats",
        "pending",
        "review --list",
        "diff --stat",
        "doctor",
        "config",
        "gc --dry-run",
    ]
    shown = [shell.run(*words.split()) for words in lists]
    shown += [
        shell.run("show", call_id),
        shell.run("versions", "a\u202e.txt"),
        shell.run("show", HIDDEN),
    ]
    for ran in shown:
        assert not {*HIDDEN} - {*"]0;owned[2K31m"} & {*ran.out, *ran.err}, ran
    assert "␛]0;owned␇␛[2K⟨U+202E⟩⟨U+200B⟩⟨U+009B⟩31m" in shown[-3].out
    assert HIDDEN in shell.run("diff", call_id).out
    assert HIDDEN in shell.run("call", "read", "path=a\u202e.txt").out


def test_doctor_finds_nothing_broken_and_says_how_changes_are_captured(shell):
    shell.write("a.txt", "x")
    ran = shell.run("doctor", "--json")
    rows = {row["name"]: row for row in ran.json["findings"]}
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert {
        "workspace",
        "state",
        "journal",
        "capture",
        "openat2",
        "renameat2",
        "leases",
        "rg",
        "web",
    } <= set(rows)
    capture = rows["capture"]
    assert capture["told"].startswith("overlay: ") if capture["state"] == "ok" else capture["step"]
    assert rows["journal"]["told"].startswith("1 calls")
    assert "Nothing is broken." in shell.run("doctor").err


def test_doctor_leaves_nothing_behind(shell):
    shell.run("doctor")
    assert list(shell.folder.iterdir()) == []
    assert [file for file in shell.state.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("variable", "step"), [("nonsense", "Unset HANDTOOLS_RUNNER"), ("", "handtools config edit")]
)
def test_doctor_says_where_a_runner_is_named_that_can_not_be_had(variable, step, shell, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('runner = "nonsense"\n')
    ran = shell.run("doctor", "--json", HANDTOOLS_RUNNER=variable, HANDTOOLS_CONFIG=str(config))
    found = {row["name"]: row for row in ran.json["findings"]}
    assert ran.code == 1
    assert found["sandbox"]["state"] == "broken"
    assert "no runner called nonsense" in found["sandbox"]["told"]
    assert step in found["sandbox"]["step"]
    assert found["rg"]["state"] == "ok"


def test_doctor_calls_a_damaged_journal_broken_once(shell):
    shell.write("a.txt", "x")
    (journal,) = shell.state.rglob("journal.sqlite")
    journal.write_bytes(b"not a database, at all" * 100)
    ran = shell.run("doctor")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "Broken: journal." in ran.err
    assert "was damaged and set aside" in shell.run("doctor").out
    assert shell.text("a.txt") == "x"


def test_a_plugin_that_does_not_load_is_named_without_a_traceback(shell, tmp_path):
    package = tmp_path / "site" / "bad_tools-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-tools\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[handtools.tools]\nbad = bad_tools.nowhere:bad\n")
    ran = shell.run("tools", PYTHONPATH=str(package.parent))
    assert ran.code == 1
    assert "bad_tools" in ran.err
    assert "Traceback" not in ran.err
    doctor = shell.run("doctor", PYTHONPATH=str(package.parent))
    assert doctor.code == 1
    assert "Update or remove bad-tools." in doctor.out
    assert shell.run("log", PYTHONPATH=str(package.parent)).err.startswith("✗ No call is recorded")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="machine: root may write everywhere")
def test_a_state_folder_that_can_not_be_made_is_one_clear_line(shell, tmp_path):
    tmp_path.chmod(0o500)
    ran = shell.run("log")
    tmp_path.chmod(0o700)
    assert ran.code == 1
    assert "HANDTOOLS_STATE" in ran.err
    assert "Traceback" not in ran.err


def test_the_state_inside_the_workspace_is_refused_in_one_clear_line(shell):
    ran = shell.run("log", HANDTOOLS_STATE=str(shell.folder / "state"))
    assert ran.code == 1
    assert ran.err.startswith("✗ The log of ")
    assert "Traceback" not in ran.err


def test_doctor_says_what_is_wrong_with_the_state_folder(shell, tmp_path):
    (tmp_path / "file").write_text("")
    ran = shell.run("doctor", "--json", HANDTOOLS_STATE=str(tmp_path / "file"))
    rows = {row["name"]: row for row in ran.json["findings"]}
    assert ran.code == 1
    assert rows["state"]["state"] == "broken"
    assert "HANDTOOLS_STATE" in rows["state"]["told"]


def test_a_damaged_journal_is_told_by_the_command_that_finds_it(shell):
    shell.write("a.txt", "x")
    (journal,) = shell.state.rglob("journal.sqlite")
    journal.write_bytes(b"not a database, at all" * 100)
    ran = shell.run("log")
    assert "damaged" in ran.err
    assert "damaged" not in shell.run("log").err


def test_a_page_of_a_large_log_reads_no_more_than_the_page(shell):
    shell.write("a.txt", "x")
    (journal,) = shell.state.rglob("journal.sqlite")
    with sqlite3.connect(journal) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
            "INSERT INTO calls (id, session, turn, agent, parent, tool, args, started, ended, status, code, "
            "result) SELECT lower(hex(randomblob(16))), 's', '', '', '', 'think', "
            "CASE i WHEN 5 THEN 'not JSON' ELSE '{}' END, i, i, 'ok', '', x'' FROM n"
        )
    connection.close()
    # The fifth row can't be read: a log that loaded everything would fail on it.
    assert len(shell.run("log", "--json").rows) == 20
    assert shell.run("undo").code == 0
    assert shell.run("log", "-n", "30000").code != 0


def test_the_log_is_read_without_loading_the_tools(shell):
    shell.write("a.txt", "x\n")
    program = "import sys; from handtools.cli.entry import main\ntry: main()\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", program, "-C", str(shell.folder), "log"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=shell.environment, timeout=60, check=True
    )
    assert "a.txt" in done.stdout
    modules = done.stdout.splitlines()[-1].split()
    assert not {"handtools.toolbox", "handtools.runtime.executor", "handtools.tools.bash"} & set(modules)


def test_the_folder_can_be_named_before_the_command(shell, tmp_path):
    call = shell.write("a.txt", "x\n")
    there = tmp_path.parent
    assert shell.run("-C", str(shell.folder), "log", "--json", cwd=there).rows[0]["id"] == call
    ran = shell.run("-C", str(shell.folder), "undo", cwd=there)
    assert ran.code == 0, ran
    assert not (shell.folder / "a.txt").exists()
    # The steps to go on with name the folder, too.
    assert str(shell.folder) in shell.run("-C", str(shell.folder), "show", "none", cwd=there).err
    assert shell.run("-C", str(shell.folder / "none"), "log").code == 2


def test_the_folder_that_the_command_names_itself_counts(shell, tmp_path):
    call = shell.write("a.txt", "x\n")
    rows = shell.run("-C", str(tmp_path), "log", "-C", str(shell.folder), "--json").rows
    assert rows[0]["id"] == call


def test_without_typer_a_sentence_says_what_to_install(shell):
    program = "import sys; sys.modules['typer'] = None; from handtools.cli.entry import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "handtools: the command line needs `typer`: pip install 'handtools-slim[cli]'\n"


def test_ctrl_c_is_said_and_the_call_is_recorded_as_cancelled(shell):
    words = ["call", "bash", "--yes", "--id", "stopped", "command=sleep 61.0707"]
    with subprocess.Popen(
        [HANDTOOLS, *words], cwd=shell.folder, env=shell.environment, stderr=subprocess.PIPE
    ) as child:
        _runs("sleep\x0061.0707")
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"Stopped." in said
    assert shell.run("log", "--json").rows[0]["status"] == "cancelled"


def _runs(words):
    """Return when a process with these words is there."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if words in place.read_text():
                    return
        select.select([], [], [], 0.05)
    raise AssertionError(f"{words!r} does not run")


def test_the_policy_file_is_obeyed(shell, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[[rule]]\nname = "frozen"\nverdict = "deny"\neffects = ["change"]\npaths = ["kept/**"]\n'
    )
    ran = shell.run("why", "write", "path=kept/a.txt", "content=x", HANDTOOLS_POLICY=str(policy))
    assert "frozen" in ran.out
    denied = shell.run("call", "write", "path=kept/a.txt", "content=x", HANDTOOLS_POLICY=str(policy))
    assert denied.code == 1
    assert not (shell.folder / "kept").exists()
    policy.write_text("nonsense = 1")
    broken = shell.run("call", "now", HANDTOOLS_POLICY=str(policy))
    assert broken.code == 1
    assert "is not a known key" in broken.err
    assert "Fix that" in broken.err


def test_doctor_lists_language_servers_with_versions_and_how_to_get_those_that_are_missing(shell):
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = shell.run("doctor", "--language", "--json", PATH=beside)
    rows = {row["name"]: row for row in json.loads(ran.out)["findings"]}
    assert {"pyright", "ty", "ruff", "gopls", "clangd"} <= rows.keys()
    assert all(any(sign.isdigit() for sign in row["told"]) for row in rows.values() if row["state"] == "ok")
    missing = [
        row for name, row in rows.items() if row["state"] == "missing" and name not in {"sandbox", "switch"}
    ]
    assert all("install" in row["step"] or "rustup" in row["step"] for row in missing)
    assert "HANDTOOLS_LANGUAGE is off" in rows["switch"]["told"]
