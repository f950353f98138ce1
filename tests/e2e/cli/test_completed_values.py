"""What a shell is told when a person presses the tab key."""

import pytest

from handtools import Call
from handtools.toolbox import BlockingToolbox, coding


@pytest.fixture
def agent(shell, monkeypatch):
    """Two calls in two sessions, one that waits."""
    monkeypatch.setenv("HANDTOOLS_STATE", str(shell.state))
    with BlockingToolbox(coding(shell.folder)) as box:
        for path, name, session in (("a.txt", "early", "monday"), (".envrc", "late", "tuesday")):
            args = {"path": path, "content": "x"}
            box.call(Call(tool="write", args=args, id=name, session=session))


def completed(shell, *words, incomplete="", cwd=None):
    typed = " ".join(["handtools", *words, incomplete])
    asked = {"_HANDTOOLS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) + 1)}
    return shell.run(cwd=cwd, **asked).out.split()


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("words", "incomplete", "offered"),
    [
        (["show"], "", ["late", "early"]),
        (["undo"], "ea", ["early"]),
        (["log", "--session"], "", ["tuesday", "monday"]),
        (["approve"], "", ["late"]),
    ],
    ids=["newest first", "as typed", "sessions", "waiting"],
)
def test_ids_and_sessions_are_completed(shell, words, incomplete, offered):
    assert completed(shell, *words, incomplete=incomplete) == offered


def test_where_nothing_is_recorded_nothing_is_offered_and_nothing_is_said(shell):
    assert completed(shell, "show") == []
