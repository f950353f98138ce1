"""What holds for every command alike: `--json`, next steps, no colours where none are wanted, completion."""

import json
import os
import pty
import subprocess
import sys

import pytest

from handtools.cli.fleet import FLEET_COMMANDS
from handtools.cli.main import COMMANDS
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.cli.test_asking import at_terminal

NAMES = list(COMMANDS)
SERVERS = {"mcp", "serve", "watch", "view"}
"""They run until they are stopped; `mcp` speaks JSON and nothing else, the last two are screens."""
WORDS = {
    "show": ["{call}"],
    "diff": ["{call}"],
    "versions": ["a.txt"],
    "report": ["-o", "page.html"],
    "undo": ["{call}"],
    "redo": ["{call}"],
    "forget": ["b.txt", "--yes"],
    "approve": ["{waiting}"],
    "deny": ["{denied}", "--message", "no"],
    "call": ["read", "path=a.txt"],
    "why": ["write", "path=.envrc", "content=x"],
    "install": ["cursor", "--yes"],
    "uninstall": ["cursor", "--yes"],
    "init": ["--yes"],
    "gc": ["--dry-run"],
}
"""What each command is given to have something to say, where it needs words at all."""
WRONG = {
    "show": ["no-such-call"],
    "diff": ["no-such-call"],
    "versions": ["never.txt"],
    "forget": ["a.txt"],
    "undo": ["no-such-call"],
    "redo": ["no-such-call"],
    "approve": ["no-such-call"],
    "deny": ["no-such-call"],
    "report": ["--session", "never"],
    "call": ["read", "path=never.txt"],
    "why": ["no_such_tool"],
    "serve": ["--http", "nowhere"],
    "uninstall": ["cursor"],
    "init": [],
    "config": ["explain", "nothing"],
}
"""What each command that can fail fails by."""


@pytest.fixture
def filled(shell, tmp_path):
    """A workspace with a change, two questions and a person's home of its own."""
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    (tmp_path / "home").mkdir()
    asking = [
        shell.run("call", "write", f"path={name}/.envrc", "content=x", "--json", **home) for name in "xy"
    ]
    names = {
        "call": shell.write("a.txt", "one\n"),
        "waiting": asking[0].json["call_id"],
        "denied": asking[1].json["call_id"],
    }
    shell.write("b.txt", "two\n")

    def run(name, words):
        return shell.run(name, *(word.format(**names) for word in words), **home)

    return run


def test_every_command_answers_in_json(filled):
    for name in (name for name in NAMES if name not in SERVERS):
        ran = filled(name, [*WORDS.get(name, []), "--json"])
        assert ran.code == 0, (name, ran)
        rows = [json.loads(line) for line in ran.out.splitlines()]
        assert rows or name in {"skills", "config", "pending"}, name
        assert all(isinstance(row, dict) for row in rows), name


def test_every_failure_ends_with_a_next_step(filled):
    for name, words in WRONG.items():
        ran = filled(name, words)
        assert ran.code == 1, (name, ran)
        last = [line for line in ran.err.splitlines() if line.strip()][-1]
        assert last.startswith("  → "), (name, ran)
        assert len(last) > 8, (name, ran)


def test_an_option_that_is_none_is_answered_with_where_to_look(shell):
    for name in [*NAMES, *(f"fleet {command.__name__}" for command in FLEET_COMMANDS)]:
        ran = shell.run(*name.split(), "--no-such-option")
        assert ran.code == 2, (name, ran)
        assert f"Try 'handtools {name} -h' for help." in ran.err, (name, ran)


def test_no_color_is_honoured_in_tables_and_in_the_pager(shell):
    shell.write("long.txt", "line\n" * 200)
    colour = "\x1b[32m"
    pager = {"PAGER": "cat", "LINES": "24"}
    assert any(
        colour in at_terminal(shell, *words, answers=[], **pager)[1] for words in (["log"], ["diff"])
    )
    for words in (["log"], ["diff"]):
        _, shown = at_terminal(shell, *words, answers=[], NO_COLOR="1", **pager)
        assert "long.txt" in shown
        assert colour not in shown


def completed(shell, line):
    environment = shell.environment | {
        "_HANDTOOLS_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    ran = subprocess.run(
        [HANDTOOLS],
        cwd=shell.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.stdout.split()


def test_the_shell_completes_ids_sessions_paths_tools_and_keys(shell):
    call_id = shell.write("deep/a.txt", "x", "--session", "nightly")
    assert completed(shell, "handtools show ")[0] in call_id
    assert completed(shell, "handtools log --session ni") == ["nightly"]
    assert completed(shell, "handtools undo --path de") == ["deep/a.txt"]
    assert completed(shell, "handtools versions ") == ["deep/a.txt"]
    assert "multi_edit" in completed(shell, "handtools call m")
    assert completed(shell, "handtools config explain limits.me") == ["limits.memory"]
    waiting = shell.run("call", "write", "path=.envrc", "content=x", "--json").json["call_id"]
    (offered,) = completed(shell, "handtools approve ")
    assert waiting.startswith(offered)


SLOW = """
import sys, threading, time
from handtools.cli import terminal
terminal.SLOW_SECONDS = float(sys.argv[1])
deadline = time.monotonic() + 60
with terminal.shown_when_slow("Counting"):
    while terminal.SLOW_SECONDS < 1 and time.monotonic() < deadline:
        if any("Refresh" in type(thread).__name__ for thread in threading.enumerate()):
            break
print("done")
"""


@pytest.mark.parametrize(("after", "seen"), [("0.01", True), ("600", False)])
def test_only_what_is_slow_says_that_it_goes_on(after, seen):
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [sys.executable, "-c", SLOW, after], os.environ | {"TERM": "xterm"})
    shown = b""
    while b"done" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    os.waitpid(pid, 0)
    assert (b"Counting" in shown) is seen
