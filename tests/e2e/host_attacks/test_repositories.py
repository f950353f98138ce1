"""A repository that a command planted or an archive brought runs nothing, whatever its configuration says."""

import os
import shutil
import subprocess

import pytest

from handtools import Toolbox, local_workspace
from handtools.toolbox import CODING

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="there is no git")
LAZY = """
[core]
	repositoryFormatVersion = 1
	sshCommand = "{run}"
	gitProxy = "{run}"
[extensions]
	partialClone = origin
	worktreeConfig = true
[remote "origin"]
	url = {url}
	promisor = true
	uploadpack = "{run}"
"""
PROGRAMS = """
[core]
	fsmonitor = "{run}"
	hooksPath = {root}/hooks
	pager = "{run}"
	editor = "{run}"
	askPass = "{run}"
	alternateRefsCommand = "{run}"
[pager]
	log = "{run}"
[diff]
	external = "{run}"
[diff "d"]
	command = "{run}"
	textconv = "{run}"
[filter "d"]
	clean = "{run}"
	smudge = "{run}"
	process = "{run}"
[log]
	showSignature = true
[gpg]
	program = "{run}"
[credential]
	helper = "!{run}"
[alias]
	log = "!{run}"
"""


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run([GIT, *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def work(tmp_path):
    """A repository in which a file was renamed and changed."""
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "old.txt").write_text("\n".join(map(str, range(200))))
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "mv", "old.txt", "new.txt")
    (root / "new.txt").write_text("\n".join(map(str, range(201))))
    git(root, "commit", "-qam", "two")
    return root


def forget_blobs(root):
    """Remove the objects that telling a rename needs, so that git would fetch them."""
    for name in ("HEAD:new.txt", "HEAD~1:old.txt"):
        found = git(root, "rev-parse", name)
        (root / ".git" / "objects" / found[:2] / found[2:]).unlink()


def writing(tmp_path):
    """A command for a configuration that leaves a mark."""
    mark = tmp_path / "mark"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    script.chmod(0o755)
    return mark, str(script)


async def read(root, path="old.txt"):
    async with Toolbox(CODING, workspace=local_workspace(root, state=root.parent / "state")) as toolbox:
        return await toolbox.call("read", {"path": path})


@pytest.mark.parametrize(
    "url", ["ssh://x/y", "ext::sh -c {run}", "file:///nowhere", "https://127.0.0.1:1/x"]
)
async def test_a_missing_object_is_not_fetched(work, tmp_path, url):
    mark, run = writing(tmp_path)
    forget_blobs(work)
    (work / ".git" / "config").write_text(LAZY.format(run=run, url=url.format(run=run)))
    assert (await read(work)).fault.code == "not_found"
    assert not mark.exists()


async def test_no_program_of_a_configuration_runs(work, tmp_path):
    mark, run = writing(tmp_path)
    (work / ".git" / "config").write_text(PROGRAMS.format(run=run, root=work))
    (work / ".gitattributes").write_text("* diff=d filter=d\n")
    (work / "hooks").mkdir()
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (work / "hooks" / name).symlink_to(run)
    assert "moved to new.txt" in (await read(work)).text, "git is still asked"
    assert not mark.exists()


@pytest.mark.parametrize("way", ["include", "includeIf", "worktree"])
async def test_no_configuration_beside_the_first_counts(work, tmp_path, way):
    mark, run = writing(tmp_path)
    forget_blobs(work)
    lazy = LAZY.format(run=run, url="ssh://x/y")
    (work / "more").write_text(lazy)
    (work / ".git" / "config.worktree").write_text(lazy)
    texts = {
        "include": f"[include]\n\tpath = {work}/more\n",
        "includeIf": f'[includeIf "gitdir:**"]\n\tpath = {work}/more\n',
        "worktree": "[extensions]\n\tworktreeConfig = true\n[core]\n\trepositoryFormatVersion = 1\n",
    }
    (work / ".git" / "config").write_text(texts[way])
    assert (await read(work)).fault.code == "not_found"
    assert not mark.exists()


async def test_a_bare_repository_in_the_root_is_none(work, tmp_path):
    mark, run = writing(tmp_path)
    forget_blobs(work)
    (work / ".git").rename(work / "c")
    (work / "c" / "config").write_text(LAZY.format(run=run, url="ssh://x/y") + "[core]\n\tbare = true\n")
    shutil.copy(work / "c" / "HEAD", work / "HEAD")
    (work / "commondir").write_text("c\n")
    assert (await read(work)).fault.code == "not_found"
    assert not mark.exists()


@pytest.mark.parametrize("way", ["commondir", "gitdir", "objects"])
async def test_a_repository_elsewhere_tells_nothing(work, tmp_path, way):
    """What another repository of this machine renamed is its own affair."""
    other = tmp_path / "other"
    other.mkdir()
    own = other / ".git"
    head = git(work, "rev-parse", "HEAD")
    if way == "gitdir":
        own.write_text(f"gitdir: {work / '.git'}\n")
    else:
        own.mkdir()
        (own / "HEAD").write_text(f"{head}\n")
        (own / "refs").mkdir()
    if way == "commondir":
        (own / "commondir").write_text(f"{work / '.git'}\n")
    if way == "objects":
        (own / "objects").symlink_to(work / ".git" / "objects")
    assert "moved" not in (await read(other)).text


async def test_what_the_environment_says_to_git_is_not_passed_on(work, tmp_path, monkeypatch):
    mark, run = writing(tmp_path)
    names = ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "PAGER", "GIT_TRACE2_PERF", "GIT_ASKPASS")
    for name in names:
        monkeypatch.setenv(name, run)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", run)
    assert "moved to new.txt" in (await read(work)).text
    assert not mark.exists()


async def test_a_subfolder_of_a_repository_knows_where_its_files_went(work):
    (work / "sub").mkdir()
    (work / "sub" / "a.txt").write_text("\n".join(map(str, range(50))))
    git(work, "add", ".")
    git(work, "commit", "-qm", "three")
    git(work, "mv", "sub/a.txt", "sub/b.txt")
    git(work, "commit", "-qm", "four")
    assert "moved to b.txt" in (await read(work / "sub", "a.txt")).text


@pytest.mark.parametrize("way", ["packed", "shallow", "worktree", "detached"])
async def test_every_shape_of_an_honest_repository_is_read(work, tmp_path, way):
    root = work
    if way == "packed":
        git(work, "gc", "-q")
        git(work, "pack-refs", "--all")
        assert not (work / ".git" / "refs" / "heads" / "main").exists()
    elif way == "shallow":
        git(work, "commit", "-q", "--allow-empty", "-m", "three")
        root = tmp_path / "clone"
        git(tmp_path, "clone", "-q", "--depth", "3", f"file://{work}", str(root))
        git(root, "fetch", "-q", "--depth", "3")
    elif way == "worktree":
        root = tmp_path / "linked"
        git(work, "worktree", "add", "-q", str(root), "--detach")
    else:
        git(work, "checkout", "-q", "--detach")
    assert "moved to new.txt" in (await read(root)).text


async def test_files_of_git_that_would_keep_a_reader_waiting_do_not(work):
    head = work / ".git" / "HEAD"
    head.unlink()
    os.mkfifo(head)
    assert (await read(work)).fault.code == "not_found"
