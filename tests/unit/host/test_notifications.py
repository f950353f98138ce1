"""Notes about questions: they arrive, say little, and cost a call nothing."""

import json
import os
import pty
import subprocess
import sys
import threading

import pytest

from handtools.configuration import Settings
from handtools.core.approval import Approval, Notify, Reply
from handtools.core.events import ApprovalAsked
from handtools.host import notifications
from handtools.host.notifications import MAX_TITLE_CHARS, ApprovalNotifier
from handtools.toolbox import coding

PATIENCE = 60


def asked(title="bash wants to run `make`", reply=None):
    approval = Approval(
        call_id="c1", title=title, preview="SECRET", rule="r", fingerprint="f", remembered="", session="s"
    )
    return ApprovalAsked(approval, reply)


@pytest.fixture
def inbox(tmp_path, monkeypatch):
    """A folder of programs before all others, and what they are given: each writes to a pipe that is read here."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    program = (
        f"#!{sys.executable}\nimport json, sys\n"
        f"json.dump([sys.argv[1:], sys.stdin.read()], open({str(pipe)!r}, 'w'))\n"
    )
    for name in ("bin/notify-send", "bin/tell-me", "work/tell-me"):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)

    def read():
        with pipe.open() as file:
            return json.load(file)

    return read


@pytest.mark.skipif(sys.platform == "darwin", reason="another program shows it there")
def test_a_note_on_the_desktop_is_one_harmless_line(inbox, tmp_path):
    title = "bash wants <a href='x'>\x1b]0;owned\x07 \u202e --help\n" + "x" * 1_000
    ApprovalNotifier(Notify(desktop=True), tmp_path / "work")(asked(title))
    (*options, summary, body), given = inbox()
    assert options == ["--app-name=handtools", "--"]
    assert "needs your approval" in summary
    assert "&lt;a href='x'&gt;" in body
    assert not {"\x1b", "\x07", "\u202e", "\n", "<"} & set(body)
    assert len(body) <= MAX_TITLE_CHARS + len("&lt;&gt;")
    assert (given, "SECRET" in body) == ("", False)


def test_the_persons_program_gets_the_question_as_json(inbox, tmp_path):
    ApprovalNotifier(Notify(command=("tell-me", "-x")), tmp_path / "work")(asked())
    words, given = inbox()
    assert words == ["-x"]
    told = json.loads(given)
    assert (told["call_id"], told["title"]) == ("c1", "bash wants to run `make`")
    assert told["workspace"] == str(tmp_path / "work")
    assert "SECRET" not in given


@pytest.mark.parametrize("name", ["{work}/tell-me", "./tell-me", "no-such-program", "{link}"])
def test_no_program_of_the_workspace_is_started(inbox, tmp_path, monkeypatch, caplog, name):
    (tmp_path / "link").symlink_to(tmp_path / "work/tell-me")
    monkeypatch.chdir(tmp_path / "work")
    command = name.format(work=tmp_path / "work", link=tmp_path / "link")
    ApprovalNotifier(Notify(command=(command,)), tmp_path / "work")(asked())
    assert "no program" in caplog.text


def test_a_question_that_was_answered_makes_no_noise(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    notifier = ApprovalNotifier(Notify(desktop=True, command=("x",)), tmp_path)
    notifier(asked(reply=Reply(allow=True)))
    assert not caplog.text
    notifier(asked())
    assert caplog.text.count("no") >= 2


def test_programs_that_hang_are_few_and_are_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(notifications, "PROGRAM_SECONDS", 0.2)
    (tmp_path / "work").mkdir()
    hang = tmp_path / "hang"
    hang.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec tail -f /dev/null\n")
    hang.chmod(0o755)
    notifier = ApprovalNotifier(Notify(command=(str(hang),)), tmp_path / "work")
    for _ in range(20):
        notifier(asked())
    for thread in threading.enumerate():
        if thread.name == "handtools-notify":
            thread.join(PATIENCE)
    started = (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []
    assert len(started) < 20
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


BELL = "from handtools.host.notifications import ring_terminal_bell as ring; ring(); print('done')"


def test_the_bell_rings_at_the_terminal_of_the_process():
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", BELL])
    shown = b""
    while b"done" not in shown:
        shown += os.read(terminal, 100)
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"\a" in shown


def test_without_a_terminal_there_is_no_bell_and_no_failure():
    ran = subprocess.run(
        [sys.executable, "-c", BELL],
        start_new_session=True,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert ran.stdout == b"done\n"


async def test_a_call_that_waits_is_told_of_and_the_call_itself_is_as_ever(inbox, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    settings = Settings(notify=Notify(command=("tell-me",)))
    async with coding(tmp_path / "work", settings=settings) as toolbox:
        result = await toolbox.call("write", {"path": ".envrc", "content": "x"})
        assert result.status == "pending"
        told = json.loads(inbox()[1])
        assert told["call_id"] == result.request.call_id
        assert ".envrc" in told["title"]
