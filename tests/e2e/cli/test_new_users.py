"""What a new user meets: wrong words, a machine that is not as expected; every refusal says what to do next."""

import subprocess

import pytest

from tests.e2e.cli.conftest import HANDTOOLS, Ran

WAYS = ["log", "undo --path x", "skills", "tools", "doctor", "mcp"]
"""One command for each way in which a folder and its record are opened."""
WRONG = [
    "nope", "log --limit x", "undo x", "undo --path x --version 3", "undo --version 1", "redo", "show x",
    "approve x", "call nope", "call read", "call read path", "why nope", "skills x", "doctor x", "install nope",
    "uninstall claude", "mcp nope", "-C nope undo",
]  # fmt: skip
STEPS = (
    "→",
    "Try 'handtools",
    "handtools mcp FOLDER",
    "handtools doctor",
    "cd FOLDER",
    "Set HANDTOOLS_STATE",
)


def check(ran):
    told = ran.out + ran.err
    assert "Traceback" not in told, told
    if ran.code:
        assert any(step in told for step in STEPS), told


@pytest.mark.parametrize("words", WAYS + WRONG)
def test_in_an_empty_folder(shell, words):
    check(shell.run(*words.split()))


@pytest.mark.parametrize("words", [*WAYS, "install codex", "uninstall zed"])
def test_without_a_home(shell, words):
    environment = {k: v for k, v in shell.environment.items() if not k.startswith(("HANDTOOLS", "XDG_"))}
    ran = run(words, shell.folder, environment | {"HOME": ""})
    check(ran)
    if words in {"log", "undo --path x", "mcp"}:
        assert ran.code == 1
        assert "HANDTOOLS_STATE" in ran.err


@pytest.mark.parametrize("words", WAYS)
def test_where_the_record_can_not_be_written(shell, words):
    (shell.folder / "file").write_text("")
    ran = shell.run(*words.split(), HANDTOOLS_STATE=str(shell.folder / "file" / "in it"))
    check(ran)


@pytest.mark.parametrize("words", [*WAYS, "install claude"])
def test_in_a_folder_that_is_gone(shell, words, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = run(words, gone, shell.environment, 'rmdir "$PWD" && exec "$@"')
    check(ran)
    assert "was deleted" in ran.err


def test_a_clients_file_that_can_not_be_written_is_left_to_the_person(shell):
    (shell.folder / "..mcp.json.handtools").mkdir()
    ran = shell.run("install", "claude", "--yes")
    check(ran)
    assert "Can't write" in ran.err
    assert "--print" in ran.err


def test_the_step_after_a_redo_that_names_no_call_is_a_redo(shell):
    assert "handtools redo --path x" in shell.run("redo", "x").err


def run(words, folder, environment, script='exec "$@"'):
    line = ["sh", "-c", script, "sh", HANDTOOLS, *words.split()]
    done = subprocess.run(
        line, cwd=folder, env=environment, input=b"", capture_output=True, timeout=60, check=False
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
