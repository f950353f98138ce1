"""`handtools review`, typed at a terminal and called by programs: what is kept, taken back, and said."""

import os
import re
import subprocess

import pytest

from handtools import Call, Policy
from handtools.toolbox import BlockingToolbox, coding
from tests.e2e.cli.test_asking import at_terminal

LINES = "".join(f"line {number}\n" for number in range(1, 31))
SCREEN = {"COLUMNS": "80", "LINES": "24"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def agent(shell, monkeypatch):
    """An agent at work in the folder, with the record that the command reads."""
    monkeypatch.setenv("HANDTOOLS_STATE", str(shell.state))
    with BlockingToolbox(coding(shell.folder, policy=Policy(defaults={"run": "allow"}))) as box:
        yield lambda tool, name, **args: box.call(Call(tool=tool, args=args, id=name, agent="ann"))


def two_edits(shell, agent):
    """Two calls on one file, far apart, and between them a line that the person changed."""
    (shell.folder / "a.txt").write_text(LINES)
    assert agent("edit", "first", path="a.txt", old_string="line 2\n", new_string="two\n").ok
    text = shell.text("a.txt").replace("line 12\n", "mine\n")
    (shell.folder / "a.txt").write_text(text)
    assert agent("edit", "second", path="a.txt", old_string="line 25\n", new_string="twentyfive\n").ok


def test_keys_at_a_terminal_take_back_one_hunk_and_undo_returns_it(shell, agent):
    two_edits(shell, agent)
    both = shell.text("a.txt")
    answers = [("(1/2)", "y\n"), ("(2/2)", "n\n")]
    code, seen = at_terminal(shell, "review", answers=answers, **SCREEN)
    assert (code, shell.text("a.txt")) == (0, both.replace("twentyfive", "line 25"))
    assert "by edit first (ann)" in seen
    assert "by edit second (ann)" in seen
    assert "mine" not in seen
    assert all(len(ESCAPES.sub("", row)) <= 80 for row in seen.split("\r\n"))
    # What was kept is not asked about again, what was taken back is gone.
    assert "No changes" in shell.run("review", "--list").err
    assert shell.run("undo").code == 0
    assert shell.text("a.txt") == both
    assert [row["accepted"] for row in shell.run("review", "--json", "--all").rows] == [True, False]


def test_colour_is_never_the_only_sign_and_can_be_switched_off(shell, agent):
    agent("write", "w", path="a.txt", content="one\n", mode="create")
    _, seen = at_terminal(shell, "review", answers=[("(1/1)", "q\n")], **SCREEN)
    assert "\x1b[32m+one" in seen
    _, seen = at_terminal(shell, "review", answers=[("(1/1)", "q\n")], NO_COLOR="1", **SCREEN)
    assert "+one" in seen
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", seen)


def test_ctrl_c_takes_nothing_back_and_the_end_of_input_does_what_was_decided(shell, agent):
    two_edits(shell, agent)
    both = shell.text("a.txt")
    code, seen = at_terminal(shell, "review", answers=[("(1/2)", "n\n"), ("(2/2)", "\x03")], **SCREEN)
    assert (code, shell.text("a.txt")) == (1, both)
    assert "nothing was rejected" in seen
    code, _ = at_terminal(shell, "review", answers=[("(1/2)", "n\n"), ("(2/2)", "\x04")], **SCREEN)
    assert (code, shell.text("a.txt")) == (0, both.replace("two\n", "line 2\n"))


def test_a_hunk_is_edited_in_the_persons_editor(shell, agent, tmp_path):
    two_edits(shell, agent)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/^+two/+zwei/" "$1"\n')
    editor.chmod(0o755)
    ran = shell.run("review", stdin="e\nq\n", EDITOR=str(editor), VISUAL=str(editor))
    assert ran.code == 0, ran
    assert shell.text("a.txt").startswith("line 1\nzwei\nline 3\n")


def test_programs_list_accept_and_reject_without_a_question(shell, agent):
    two_edits(shell, agent)
    rows = shell.run("review", "--json").rows
    assert [(row["path"], row["number"], row["calls"]) for row in rows] == [
        ("a.txt", 1, ["first"]),
        ("a.txt", 2, ["second"]),
    ]
    assert "-line 25\n+twentyfive\n" in rows[1]["diff"]
    done = shell.run("review", "--reject", "a.txt:2", "--json").json
    assert done["details"]["restored"] == ["a.txt"]
    assert "line 25\n" in shell.text("a.txt")
    assert shell.run("review", "--accept", "first").code == 0
    left = shell.run("review", "--list", "--all").out
    assert (left.count("\n"), "a.txt:1  +1 -1" in left) == (1, True)
    assert "two\n" in shell.text("a.txt")


def test_a_name_that_means_nothing_is_refused_with_a_next_step(shell, agent):
    two_edits(shell, agent)
    for words in (["--reject", "a.txt:9"], ["--since", "nothing"]):
        ran = shell.run("review", *words)
        assert ran.code == 1
        assert "→" in ran.err
        assert "handtools" in ran.err


def test_what_a_command_did_is_reviewed_and_taken_back_with_modes_and_bytes(shell, agent):
    folder = shell.folder
    (folder / "a.txt").write_text(LINES)
    (folder / "gone.txt").write_text("gone\n")
    (folder / "gone.txt").chmod(0o640)
    (folder / "b.bin").write_bytes(b"\0before")
    (folder / "run.sh").write_text("echo\n")
    script = (
        "sed -i 's/line 3$/three/' a.txt; rm gone.txt; printf '\\0after' > b.bin; chmod +x run.sh; "
        "mkdir -p new/deep; echo x > new/deep/file"
    )
    assert agent("bash", "all-of-it", command=script).ok
    rows = {row["path"]: row for row in shell.run("review", "--json").rows}
    assert {path: row["kind"] for path, row in rows.items()} == {
        "a.txt": "hunk", "b.bin": "replaced", "gone.txt": "deleted", "new/deep/file": "created", "run.sh": "mode",
    }  # fmt: skip
    assert "0755" in rows["run.sh"]["diff"]
    ran = shell.run("review", "--reject", "all-of-it")
    assert ran.code == 0, ran
    assert (shell.text("a.txt"), shell.text("gone.txt")) == (LINES, "gone\n")
    assert (folder / "gone.txt").stat().st_mode & 0o777 == 0o640
    assert (folder / "b.bin").read_bytes() == b"\0before"
    assert not os.access(folder / "run.sh", os.X_OK)
    assert not (folder / "new").exists()
    assert shell.run("undo").code == 0
    assert (folder / "b.bin").read_bytes() == b"\0after"
    assert (shell.text("gone.txt"), shell.text("new/deep/file")) == (None, "x\n")


def test_changes_since_a_commit_are_reviewed(shell, agent):
    two_edits(shell, agent)

    def commit(date):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        dated = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *words], cwd=shell.folder, check=True, env=os.environ | dated)

    commit("2001-01-01T00:00:00Z")
    commit("2099-01-01T00:00:00Z")
    assert shell.run("review", "--since", "HEAD", "--json").rows == []
    assert len(shell.run("review", "--since", "HEAD~1", "--json", "a.txt").rows) == 2


@pytest.mark.linux("overlay")  # else what a command has changed can't be held back
@pytest.mark.parametrize(
    ("keys", "lines", "new"),
    [("n\ny\ny\n", ["line 3\n", "thirty\n"], "x\n"), ("d\nd\n", ["line 3\n", "line 30\n"], None)],
    ids=["part", "none"],
)
def test_what_a_held_command_changed_is_reviewed_before_it_lands(shell, agent, keys, lines, new):
    (shell.folder / "a.txt").write_text(LINES)
    script = "sed -i -e 's/line 3$/three/' -e 's/line 30/thirty/' a.txt; echo x > new.txt"
    assert agent("bash", "held", command=script, review=True).status == "pending"
    assert {row["waits"] for row in shell.run("review", "--json").rows} == {True}
    ran = shell.run("review", stdin=keys)
    assert ran.code == 0, ran
    assert "Apply this change" in ran.out
    assert all(line in shell.text("a.txt") for line in lines), ran
    assert shell.text("new.txt") == new
    told = agent("bash", "held", command=script, review=True)
    assert (
        "The user rejected these changes: a.txt (in part)" in told.text if new else told.status == "denied"
    )


@pytest.mark.linux("overlay")  # else what a command has changed can't be held back
def test_a_held_command_that_is_left_undecided_still_waits_and_ends_the_review(shell, agent):
    two_edits(shell, agent)
    assert agent("bash", "held", command="echo x > new.txt", review=True).status == "pending"
    ran = shell.run("review", stdin="q\n")
    assert "still waiting" in ran.err
    assert "Keep this change" not in ran.out
    assert agent("bash", "held", command="echo x > new.txt", review=True).status == "pending"
    assert shell.text("new.txt") is None


def test_many_files_and_a_very_long_line_are_taken_back_at_once(shell, agent):
    many = "mkdir many; for n in $(seq 200); do echo $n > many/$n.txt; done"
    assert agent("bash", "b", command=f"{many}; head -c 10000000 /dev/zero | tr '\\0' x > long").ok
    ran = shell.run("review", stdin="D\n")
    assert ran.code == 0, ran
    assert len(ran.out) < 5_000
    assert "more characters" in ran.out
    assert sorted(os.listdir(shell.folder)) == []


def test_ignored_files_of_a_command_are_passed_over_by_undo_and_review_and_said(shell, agent):
    (shell.folder / ".gitignore").write_text("*.log\n")
    assert agent("write", "edit", path="m.py", content="x = 1\n").ok
    assert agent("bash", "run", command="mkdir __pycache__; touch __pycache__/m.pyc; echo x > a.log").ok
    listed = shell.run("review", "--list")
    assert [row.split(":")[0] for row in listed.out.splitlines()] == ["m.py"]
    assert "Passed over 2 ignored files." in listed.err
    assert "a.log" in shell.run("review", "--list", "a.log").out
    undone = shell.run("undo")
    assert undone.out == "removed  m.py\n"
    assert "Passed over change 2: only ignored files." in undone.err
    assert (shell.folder / "a.log").exists()
    nothing = shell.run("undo")
    assert (nothing.code, "no change to undo but 2" in nothing.err) == (1, True)
    assert shell.run("undo", "2").code == 0
    assert not (shell.folder / "a.log").exists()
