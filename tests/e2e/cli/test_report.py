"""`handtools report`: one page of what a session did."""

import pytest

from tests.e2e.cli.test_asking import at_terminal


@pytest.mark.usefixtures("commands_allowed")
def test_the_report_has_every_call_of_the_session_and_what_it_changed(shell):
    (shell.folder / "a.py").write_text("one\n")
    shell.call("edit", path="a.py", old_string="one", new_string="two")
    shell.call("bash", command="rm a.py; echo '<b>gone</b>'")
    shell.run("undo")
    ran = shell.run("report", "-o", "page.html", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["calls"] == 3
    page = (shell.folder / "page.html").read_text()
    assert ran.json["bytes"] == len(page)
    assert "<ins>+two</ins>" in page
    assert "&lt;b&gt;gone&lt;/b&gt;" in page
    assert "ok undone" in page
    assert "exact" in page


def test_without_calls_it_says_what_to_do(shell):
    shell.write("a.txt", "x")
    ran = shell.run("report", "--session", "none")
    assert ran.code == 1
    assert "handtools sessions" in ran.err
    assert not (shell.folder / "report.html").exists()


def test_where_nothing_was_called_it_says_how_to_call(shell):
    shell.run("undo")
    ran = shell.run("report")
    assert ran.code == 1
    assert "No call is recorded here." in ran.err
    assert "handtools call TOOL" in ran.err


def test_what_a_person_took_back_since_is_not_the_session_it_is_about(shell):
    shell.write("a.txt", "x", "--session", "monday")
    assert shell.run("undo").code == 0
    assert shell.run("report", "--json").json["session"] == "monday"


def test_at_a_terminal_it_shows_how_far_it_is(shell):
    shell.write("a.txt", "x")
    code, seen = at_terminal(shell, "report", answers=[])
    assert code == 0, seen
    assert "Reading calls" in seen
    assert "report.html: 1 call," in seen
