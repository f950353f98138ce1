"""Questions, answered by a person at a terminal: the approval card, and what `forget` asks."""

import os
import select
import signal
import subprocess
import sys

import pytest

from handtools.host.agent_shell_detection import AGENT_SHELL_VARIABLES
from tests.e2e.cli.conftest import HANDTOOLS

pty = pytest.importorskip("pty", reason="machine: no pseudo-terminals here")

QUESTION = "Allow?"
FORGETTING = "[y/N]"
PATIENCE = 60
INTERRUPTED = """
import ctypes, functools, io, signal, sys

class Keyboard(io.TextIOWrapper):
    pass

# Whoever is about to wait for the keyboard asks for its number, which is 0. In that instant Ctrl-C is pressed,
# where no line of Python is there to notice it.
sys.stdin = Keyboard(open(0, "rb", closefd=False))
sys.stdin.fileno = functools.partial(ctypes.CDLL(None)["raise"], signal.SIGINT.value)
"""
CARD = """
from handtools.cli.terminal import ask_approval
from handtools.core.approval import Approval

approval = Approval(call_id="a", title="t", preview="", rule="", fingerprint="", remembered="")
sys.exit(5 if ask_approval(approval, "") is None else 6)
"""
FORGET = """
from handtools.cli.main import main

sys.argv = ["handtools", "forget", "a.txt"]
main()
"""


def at_terminal(shell, *words, answers, **environment):
    """Run the command on a terminal; each answer is typed when its question has been asked."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.folder)
        os.execve(
            HANDTOOLS,
            [str(HANDTOOLS), *words],
            shell.environment | {"TERM": "xterm", "COLUMNS": "100"} | environment,
        )
    return typed(pid, terminal, list(answers))


def typed(pid, terminal, waiting):
    """Type each answer once its question is there; how the program ended, and all that was to be seen."""
    seen = b""
    while select.select([terminal], [], [], PATIENCE)[0]:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
        if waiting and waiting[0][0].encode() in seen:
            os.write(terminal, waiting.pop(0)[1].encode())
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()


def ask_to_write(shell, *answers, path=".envrc"):
    return at_terminal(shell, "call", "write", f"path={path}", "content=x", answers=answers)


def test_the_card_shows_the_diff_and_the_rule_before_anything_happens(shell):
    code, seen = ask_to_write(shell, (QUESTION, "o\n"))
    assert (code, shell.text(".envrc")) == (0, "x")
    card = seen.partition(QUESTION)[0]
    for part in ("write wants to change .envrc", "+x", "rule `protected`", "for this session"):
        assert part in card


def test_once_covers_only_once_and_project_covers_every_session(shell):
    ask_to_write(shell, (QUESTION, "o\n"))
    shell.run("undo")
    ask_to_write(shell, (QUESTION, "p\n"))
    words = ["call", "edit", "path=.envrc", "old_string=x", "new_string=y", "--session", "another"]
    assert shell.run(*words).code == 0


def test_no_denies_and_passes_on_what_to_do_instead(shell):
    code, seen = ask_to_write(shell, (QUESTION, "n\n"), ("instead", "leave it\n"))
    assert (code, shell.text(".envrc")) == (1, None)
    assert "leave it" in seen


@pytest.mark.parametrize("key", ["\n", "\x03", "\x04"], ids=["enter", "ctrl-c", "ctrl-d"])
def test_leaving_it_open_keeps_the_call_pending(shell, key):
    code, seen = ask_to_write(shell, (QUESTION, key))
    assert (code, shell.text(".envrc")) == (3, None)
    assert "handtools approve " in seen
    assert len(shell.run("pending", "--json").rows) == 1


@pytest.mark.parametrize(
    ("asking", "ended", "said"),
    [(CARD, 5, QUESTION), (FORGET, 1, "were deleted")],
    ids=["card", "forget"],
)
def test_ctrl_c_in_the_instant_before_the_keyboard_is_waited_for_is_not_lost(shell, asking, ended, said):
    shell.write("a.txt", "one")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.folder)
        words = [sys.executable, "-c", INTERRUPTED + asking]
        os.execve(sys.executable, words, shell.environment | {"TERM": "xterm"})
    code, seen = typed(pid, terminal, [])
    assert code == ended, seen
    assert said in seen
    assert shell.run("versions", "a.txt").code == 0


@pytest.mark.parametrize(("answer", "yes"), [("y", True), ("Yes", True), ("n", False), ("", False)])
def test_only_a_yes_forgets(shell, answer, yes):
    shell.write("a.txt", "one")
    code, _ = at_terminal(shell, "forget", "a.txt", answers=[(FORGETTING, f"{answer}\n")])
    assert (code == 0) is yes
    assert bool(shell.run("versions", "a.txt", "--json").rows) is not yes


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_leaving_the_question_forgets_nothing_and_says_how(shell, key):
    shell.write("a.txt", "one")
    code, seen = at_terminal(shell, "forget", "a.txt", answers=[(FORGETTING, key)])
    assert (code, len(shell.run("versions", "a.txt", "--json").rows)) == (1, 1)
    assert "were deleted" in seen
    assert "--yes" in seen


def test_a_key_that_means_nothing_is_asked_again(shell):
    code, seen = ask_to_write(shell, (QUESTION, "x\n"), (f"{QUESTION} [y/s/p/n] x", "o\n"))
    assert code == 0
    assert seen.count(QUESTION) == 2


def test_a_change_can_not_steer_the_terminal_from_the_card(shell):
    words = ["call", "write", "path=.envrc", "content=\x1b[2Kharmless"]
    _, seen = at_terminal(shell, *words, answers=[(QUESTION, "\n")])
    assert "\x1b[2K" not in seen
    assert "␛[2Kharmless" in seen


def test_y_means_yes(shell):
    code, _ = ask_to_write(shell, (QUESTION, "y\n"))
    assert (code, shell.text(".envrc")) == (0, "x")


def test_approve_without_an_id_shows_the_only_one_that_waits_and_asks(shell):
    shell.run("call", "write", "path=.envrc", "content=shown")
    code, seen = at_terminal(shell, "approve", answers=[("Allow it?", "n\n")])
    assert (code, shell.text(".envrc")) == (1, None)
    assert "+shown" in seen.partition("Allow it?")[0]
    code, seen = at_terminal(shell, "approve", answers=[("Allow it?", "y\n")])
    assert (code, shell.text(".envrc")) == (0, "shown")


def test_approve_without_a_terminal_wants_an_id_or_yes(shell):
    shell.run("call", "write", "path=.envrc", "content=shown")
    refused = shell.run("approve")
    assert (refused.code, shell.text(".envrc")) == (1, None)
    assert "No terminal" in refused.err
    assert "+shown" in refused.err
    assert shell.run("approve", "--yes").code == 0
    assert shell.text(".envrc") == "shown"


@pytest.mark.parametrize("variable", AGENT_SHELL_VARIABLES)
def test_the_shell_of_an_agent_approves_nothing(shell, variable):
    asked = shell.run("call", "write", "path=.envrc", "content=shown", "--json").json["call_id"]
    for words in (["approve", asked], ["approve", "--yes"], ["view", "--json"]):
        refused = shell.run(*words, **{variable: "1"})
        assert refused.code == 1
        assert "agents can't answer approval requests" in refused.err
    again = shell.run("call", "write", "path=mise.toml", "content=x", "--yes", **{variable: "1"})
    assert again.code == 1
    assert shell.text(".envrc") is shell.text("mise.toml") is None
    assert shell.run("deny", asked, **{variable: "1"}).code == 0


def test_the_shell_of_an_agent_approves_nothing_at_a_terminal_either(shell):
    shell.run("call", "write", "path=.envrc", "content=shown")
    for word in ("approve", "watch"):
        code, seen = at_terminal(shell, word, answers=[], GEMINI_CLI="1")
        assert code == 1
        assert "started by Gemini CLI" in seen


CLIENT = """
import os, subprocess, sys
program, call, how = sys.argv[1:]
server = subprocess.Popen([program, "mcp", "."], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
try:
    line = [program, "approve", call] if how == "itself" else ["sh", "-c", f'"{program}" approve {call}; true']
    sys.exit(subprocess.run(line).returncode)
finally:
    server.stdin.close()
    server.wait()
"""
"""A program that has started our MCP server, and answers a question itself or from a shell."""


@pytest.mark.linux("supervisors")
@pytest.mark.parametrize(("how", "landed"), [("itself", "shown"), ("its shell", None)])
def test_a_client_answers_for_a_person_by_itself_and_not_from_a_shell_that_it_runs(shell, how, landed):
    asked = shell.run("call", "write", "path=.envrc", "content=shown", "--json").json["call_id"]
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, HANDTOOLS, asked, how],
        cwd=shell.folder, env=shell.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert shell.text(".envrc") == landed, done
    assert ("agents can't answer approval requests" in done.stderr) == (landed is None)


def test_approve_shows_what_it_approves_and_wants_an_id_where_several_wait(shell):
    assert "No calls are waiting" in shell.run("approve").err
    shell.run("call", "write", "path=.envrc", "content=shown")
    shell.run("call", "write", "path=mise.toml", "content=other")
    several = shell.run("approve")
    assert several.code == 1
    assert "2 calls are waiting" in several.err
    one = shell.run("pending", "--json").rows[0]["call_id"]
    done = shell.run("approve", one)
    assert (done.code, shell.text(".envrc")) == (0, "shown")
    assert "+shown" in done.err
    assert shell.run("deny").code == 0
    assert shell.text("mise.toml") is None


def test_a_long_diff_goes_to_the_pager_of_a_person_and_not_into_a_pipe(shell, tmp_path):
    shell.write("long.txt", "".join(f"line {n}\n" for n in range(300)))
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    code, seen = at_terminal(shell, "diff", answers=[], PAGER=str(pager))
    assert (code, "line 299" in seen) == (0, False)
    assert "+line 299" in (tmp_path / "paged").read_text()
    (tmp_path / "paged").unlink()
    assert "+line 299\n" in shell.run("diff", PAGER=str(pager)).out
    short = shell.write("short.txt", "x\n")
    _, seen = at_terminal(shell, "diff", short, answers=[], PAGER=str(pager))
    assert "+x" in seen
    assert not (tmp_path / "paged").exists()
