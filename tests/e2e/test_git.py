"""Beside git: the record and undo leave the user's repository alone."""

import os
import subprocess
from pathlib import Path

import pytest

from handtools import BlockingToolbox, Call, coding

EVERYWHERE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    environment = os.environ | EVERYWHERE
    done = subprocess.run(
        ["git", *who, *words], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit, a stash, a staged change and an ignored file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "work"
    root.mkdir()
    (root / ".gitignore").write_text("*.log\n")
    (root / "a.txt").write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "a.txt").write_text("stashed\n")
    git(root, "stash", "-q")
    (root / "b.txt").write_text("staged\n")
    git(root, "add", "b.txt")
    (root / "run.log").write_text("ignored\n")
    return root


def kept_by_git(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / ".git").rglob("*")) if path.is_file()}


def test_edits_and_undos_leave_index_branches_and_stash_as_they_are(repository: Path) -> None:
    before = kept_by_git(repository)
    tools = BlockingToolbox(coding(repository))
    for path, old in (("a.txt", "one"), ("b.txt", "staged"), ("run.log", "ignored")):
        done = tools.call(
            Call(tool="edit", args={"path": path, "old_string": old, "new_string": "new"}, turn="1")
        )
        assert done.ok, done.text
    assert (repository / "run.log").read_text() == "new\n"
    undone = tools.call("undo", {"scope": "session", "name": "default"})
    assert undone.ok, undone.text
    tools.close()

    assert (repository / "run.log").read_text() == "ignored\n"
    assert (repository / "b.txt").read_text() == "staged\n"
    assert kept_by_git(repository) == before
    assert git(repository, "status", "--porcelain") == "A  b.txt\n"
    assert git(repository, "stash", "list").count("\n") == 1
