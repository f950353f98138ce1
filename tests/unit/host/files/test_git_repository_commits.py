"""When a commit was made, by any name that people give it."""

import os
import subprocess

import pytest

from handtools.host.files.git_repository import commit_time


@pytest.fixture
def repository(tmp_path):
    """Three commits, in order of time; the second has a tag, the third a branch in packed refs."""

    def git(*words, at=1000000000):
        dates = {"GIT_COMMITTER_DATE": f"{at} +0000", "GIT_AUTHOR_DATE": f"{at} +0000"}
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *named, *words],
            cwd=tmp_path,
            env=os.environ | dates | own,
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "trunk")
    for at in (1000000000, 1000002000, 1000003000):
        git("commit", "-q", "--allow-empty", "-m", "x", at=at)
    git("tag", "second", "HEAD~1")
    git("branch", "side/line", "HEAD~2")
    git("pack-refs", "--all")
    return tmp_path, git("rev-parse", "HEAD")


def test_a_commit_is_found_by_id_branch_tag_and_steps_back(repository):
    folder, head = repository
    names = {
        "HEAD": 3000, "trunk": 3000, head: 3000, head[:8]: 3000, "second": 2000, "HEAD^": 2000, "side/line": 0,
        "HEAD~2": 0, "second~1": 0,
    }  # fmt: skip
    assert {name: commit_time(folder, name) for name in names} == {
        name: 1000000000.0 + at for name, at in names.items()
    }


@pytest.mark.parametrize(
    "name", ["", "nothing", "HEAD~9", "--all", "../HEAD", "0000000", "HEAD --all", "a\nb"]
)
def test_what_names_no_commit_is_none(repository, name):
    assert commit_time(repository[0], name) is None


def test_a_folder_without_a_repository_has_no_commits(tmp_path):
    assert commit_time(tmp_path, "HEAD") is None
