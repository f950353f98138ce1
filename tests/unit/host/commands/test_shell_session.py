"""What stays from one command of a session to the next."""

import os
import subprocess

import pytest

from handtools.core.commands import InheritedShellState
from handtools.host.commands.shell_state import (
    SHELL_STATE_BYTES,
    ShellSessions,
    ShellStateFile,
    ShellStateReport,
)

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "GIVEN": "as it was", "GONE": "soon"}


def ran(
    script: str, left: InheritedShellState | None = None
) -> tuple[subprocess.CompletedProcess[str], ShellStateReport | None]:
    """A script as commands run it, without any of the rest."""
    slip = ShellStateFile(left or InheritedShellState(), script)
    argv = ["bash", "--noprofile", "--norc", "-c", slip.bootstrap_code, "bash"]
    done = subprocess.run(
        argv, pass_fds=[slip.fd], env=ENVIRONMENT, capture_output=True, text=True, check=False, cwd="/"
    )
    notes = slip.read_report()
    slip.close()
    return done, notes


def next_of(notes: ShellStateReport | None) -> InheritedShellState:
    assert notes is not None
    return InheritedShellState(exports=notes.exports, functions=notes.functions, aliases=notes.aliases)


@pytest.mark.parametrize(
    "value",
    ["plain", "two words", "quo'te\"s", "line\nbreak", "$(false) `x` \\ !", "tab\tand\x01", "ünï", ""],
)
def test_any_exported_value_comes_back(value):
    script = f"export KEPT={value_of(value)}"
    _, notes = ran(script)
    done, _ = ran('printf %s "$KEPT"', next_of(notes))
    assert done.stdout == value


def value_of(text: str) -> str:
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + "'"


def test_functions_and_aliases_come_back():
    _, notes = ran("greet() { echo hello $1; }\nalias shout='greet loud'")
    done, _ = ran("greet you; shout", next_of(notes))
    assert done.stdout == "hello you\nhello loud\n"


def test_what_was_unset_stays_unset():
    _, notes = ran("unset GONE")
    done, _ = ran("echo [${GONE-nothing}]", next_of(notes))
    assert done.stdout == "[nothing]\n"


def test_only_what_changed_is_written_down():
    _, notes = ran("export NEW=1")
    assert notes is not None
    assert notes.exports == {"NEW": '"1"'}


def test_the_folder_is_written_down():
    _, notes = ran("cd /usr/bin")
    assert notes is not None
    assert notes.cwd == "/usr/bin"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 7", 7),
        ("false", 1),
        ("set -e; false; true", 1),
        ("if", 2),
        ("nonsense_", 127),
        ("(exit 3)", 3),
    ],
)
def test_the_exit_code_is_exact_and_the_state_still_saved(script, code):
    done, notes = ran(f"export X=1\n{script}" if script != "if" else script)
    assert done.returncode == code
    assert notes is not None


@pytest.mark.parametrize("script", ["kill -9 $$", "exec true"])
def test_a_shell_that_does_not_come_to_its_end_changes_nothing(script):
    _, notes = ran(f"export X=1; {script}")
    assert notes is None


def test_line_numbers_in_messages_are_those_of_the_script():
    done, _ = ran("true\nnonsense_here\n", next_of(ran("f() { :; }\nexport A=1")[1]))
    assert "line 2: nonsense_here" in done.stderr


def test_the_script_sees_no_trace_of_how_it_was_started():
    done, _ = ran('echo "$0 $# [${REPLY-}] $-"')
    assert done.stdout.startswith("bash 0 [] ")


def test_shell_options_do_not_stay():
    _, notes = ran("set -e; shopt -s extglob")
    done, _ = ran("false; echo still here", next_of(notes))
    assert done.stdout == "still here\n"


def test_output_can_not_pretend_to_be_state():
    done, notes = ran('printf "\\0/etc\\0declare -x EVIL=1\\0\\0\\0"')
    assert notes is not None
    assert notes.cwd == "/"
    assert notes.exports == {}
    assert "EVIL" in done.stdout


def test_too_much_state_is_not_kept():
    _, notes = ran(f"export BIG=$(head -c {SHELL_STATE_BYTES + 1} /dev/zero | tr '\\0' x); :")
    assert notes is None


def test_a_script_of_a_megabyte_runs():
    done, _ = ran(": " + "x" * 1_000_000 + "\necho done")
    assert done.stdout == "done\n"


def test_sessions_are_apart_and_survive_a_restart(tmp_path):
    ShellSessions(tmp_path).keep(
        "one", ShellStateReport(exports={"A": '"1"'}, functions="f() { :; }"), "sub"
    )
    again = ShellSessions(tmp_path)
    assert again.find("one").exports == {"A": '"1"'}
    assert again.find("one").cwd == "sub"
    assert again.find("two") == InheritedShellState()


def test_commands_side_by_side_do_not_undo_each_others_exports(tmp_path):
    sessions = ShellSessions(tmp_path)
    sessions.keep("s", ShellStateReport(exports={"A": '"1"'}), None)
    sessions.keep("s", ShellStateReport(exports={"B": '"2"'}), None)
    assert sessions.find("s").exports == {"A": '"1"', "B": '"2"'}


def test_only_the_owner_can_read_a_session(tmp_path):
    ShellSessions(tmp_path / "sessions").keep("s", ShellStateReport(exports={"A": "1"}), None)
    [path] = (tmp_path / "sessions").iterdir()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_damaged_session_is_an_empty_one(tmp_path):
    sessions = ShellSessions(tmp_path)
    sessions.keep("s", ShellStateReport(exports={"A": "1"}), None)
    [path] = tmp_path.iterdir()
    path.write_text("{broken")
    assert sessions.find("s") == InheritedShellState()
