"""Taking things back from the command line."""

import os

import pytest


def test_undo_takes_back_the_newest_change_step_by_step_and_redo_returns_it(shell):
    shell.write("a.txt", "one")
    shell.edit("a.txt", "one", "two")
    assert shell.run("undo").code == 0
    assert shell.text("a.txt") == "one"
    back = shell.run("undo")
    assert back.out == "removed  a.txt\n"
    assert shell.text("a.txt") is None
    nothing = shell.run("undo")
    assert nothing.code == 1
    assert "no change to undo" in nothing.err
    for content in ("one", "two"):
        assert shell.run("redo").code == 0
        assert shell.text("a.txt") == content
    assert shell.run("redo").code == 1


def test_the_step_that_undo_prints_takes_the_undo_back(shell):
    shell.write("a.txt", "one")
    step = shell.run("undo").err.split("handtools ")[1].split()
    assert shell.run(*step).code == 0
    assert shell.text("a.txt") == "one"


def test_a_file_that_changed_since_is_kept_and_can_be_merged(shell):
    shell.write("a.txt", "one\ntwo\nthree\n")
    call_id = shell.edit("a.txt", "one", "1")
    (shell.folder / "a.txt").write_text("1\ntwo\nthree\nfour\n")
    kept = shell.run("undo", call_id[:24])
    assert kept.code == 1
    assert kept.out == "kept     a.txt: It changed since then; the changes can be merged.\n"
    assert shell.text("a.txt") == "1\ntwo\nthree\nfour\n"
    step = kept.err.split("handtools ")[1].split()
    assert shell.run(*step).code == 0
    assert shell.text("a.txt") == "one\ntwo\nthree\nfour\n"


def test_a_file_that_changed_in_the_same_place_is_kept_without_offering_a_merge(shell):
    shell.write("a.txt", "one\n")
    call_id = shell.edit("a.txt", "one", "two")
    (shell.folder / "a.txt").write_text("three\n")
    kept = shell.run("undo", call_id)
    assert (kept.code, shell.text("a.txt")) == (1, "three\n")
    assert "--merge" not in kept.err
    assert "handtools versions a.txt" in kept.err


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--turn", "2", "--session", "s"], {"a", "c"}),
        (["--turn", "2"], {"a", "c"}),
        (["--turn", "last"], {"a", "c"}),
        (["--session", "s"], {"c"}),
        (["--session", "last"], {"c"}),
        (["--path", "a"], {"b", "c"}),
    ],
)
def test_undo_reaches_as_far_as_it_is_told(shell, words, left):
    shell.write("c", "x", "--session", "other", "--turn", "2")
    shell.write("a", "x", "--session", "s", "--turn", "1")
    shell.write("b", "x", "--session", "s", "--turn", "2")
    undone = shell.run("undo", *words)
    assert undone.code == 0
    assert {file.name for file in shell.folder.iterdir()} == left
    assert shell.run(*undone.err.split("handtools ")[1].split()).code == 0
    assert {file.name for file in shell.folder.iterdir()} == {"a", "b", "c"}


def test_two_scopes_at_once_are_a_usage_error_and_undo_nothing(shell):
    shell.write("a", "x")
    assert shell.run("undo", "--path", "a", "--session", "default").code == 2
    assert shell.run("undo", "--version", "1").code == 2
    assert shell.text("a") == "x"


def test_a_path_given_as_a_call_is_answered_with_the_right_words(shell):
    shell.write("a.txt", "x")
    ran = shell.run("undo", "a.txt")
    assert ran.code == 1
    assert "handtools undo --path a.txt" in ran.err


@pytest.mark.parametrize("words", [["undo"], ["redo"], ["show"], ["diff"], ["review", "--since"]])
def test_a_number_is_a_change_and_never_the_start_of_an_id(shell, words):
    shell.write("a.txt", "x", "--id", "9123456789abcdef")
    for number in ("9", "#9", "9123"):
        refused = shell.run(*words, number)
        assert (refused.code, shell.text("a.txt")) == (1, "x")
        assert f"No change `{number}` is recorded here." in refused.err


def test_every_command_takes_and_prints_the_number_of_a_change(shell):
    shell.write("a.txt", "x", "--id", "9123456789abcdef")
    assert "CHANGE" in shell.run("log").out
    assert shell.run("log", "--json").rows[0]["change"] == 1
    shown = shell.run("show", "1")
    assert "change   1" in shown.out
    assert "handtools undo 1" in shown.err
    assert "+x" in shell.run("diff", "1").out
    assert shell.run("review", "--reject", "1").code == 0
    assert shell.text("a.txt") is None


def test_an_undo_is_in_the_log_as_a_persons_and_marks_what_it_took(shell):
    shell.write("a.txt", "x")
    answer = shell.run("undo", "--json").json
    details = answer["details"]
    assert (details["scope"], details["name"], details["restored"]) == ("call", "1", ["a.txt"])
    undo, write = shell.run("log", "--json").rows
    assert (undo["tool"], undo["agent"], write["undone"]) == ("undo", "person", "yes")
    assert "ok · undone" in shell.run("log").out


def test_a_person_is_not_asked_about_their_own_undo(shell):
    shell.run("call", "write", "path=.envrc", "content=x", "--yes")
    assert shell.run("undo").code == 0
    assert shell.text(".envrc") is None


def test_no_command_ends_with_a_traceback_while_a_server_still_starts(shell, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    server = programs / "pyright-langserver"
    server.write_text("#!/bin/sh\nexec sleep 60\n")
    server.chmod(0o755)
    (shell.folder / "pyrightconfig.json").write_text("{}")
    variables = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HANDTOOLS_LANGUAGE": "on"}
    written = shell.run("call", "write", "path=a.py", "content=x = 1", **variables)
    undone = shell.run("undo", **variables)
    assert (written.code, undone.code, shell.text("a.py")) == (0, 0, None)
    assert "pyright" in written.out
    assert "Traceback" not in written.err + undone.err


@pytest.mark.usefixtures("commands_allowed")
def test_a_commit_that_is_undone_is_one_line(shell):
    shell.call(
        "bash", command="git init -q -b main . && git config user.email a@b && git config user.name a"
    )
    commit = "echo one > a.txt && git add a.txt && git commit -qm first"
    shell.call("bash", command=commit)
    undone = shell.run("undo")
    assert undone.code == 0, undone
    assert undone.out == "restored git: branch main\nremoved  a.txt\n"
