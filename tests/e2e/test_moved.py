"""A file that commits renamed is found again."""

import subprocess

import pytest

from handtools import Toolbox, local_workspace
from handtools.toolbox import CODING


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "m.py").write_text("alpha = 1\nbeta = 2\ngamma = 3\n")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=root, check=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    (root / "zz").mkdir()
    git("mv", "m.py", "zz/other.py")
    git("commit", "-qm", "two")
    git("mv", "zz/other.py", "zz/third.py")
    git("commit", "-qm", "three")
    return Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))


async def test_a_renamed_file_is_named_through_all_its_renames(repository):
    missing = await repository.call("read", {"path": "m.py"})
    assert missing.fault.code == "not_found"
    assert "moved to zz/third.py" in missing.text


async def test_a_name_that_history_does_not_know_gets_near_names(repository):
    missing = await repository.call("read", {"path": "zz/thrd.py"})
    assert "zz/third.py" in missing.text
    assert "moved" not in missing.text


async def test_a_target_that_is_gone_too_is_not_named(repository):
    (repository.workspace.files.root / "zz" / "third.py").unlink()
    missing = await repository.call("read", {"path": "m.py"})
    assert "moved" not in missing.text
