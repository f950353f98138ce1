"""Small files of the project that we read ourselves: whatever they are, nobody waits and nothing grows."""

import os

import pytest

from handtools.host.files.syscalls import read_small_text
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.runners.hidden_paths import read_only_paths

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="system: no pipes with names")


def launched(root):
    return Launch(argv=(), env={}, cwd=str(root), root=str(root))


def test_only_plain_files_of_a_size_are_read(tmp_path):
    plain, long, link, pipe = (tmp_path / name for name in ("plain", "long", "link", "pipe"))
    plain.write_text("text")
    long.write_text("x" * 100)
    link.symlink_to("plain")
    os.mkfifo(pipe)
    assert read_small_text(plain) == "text"
    assert read_small_text(link) == ""
    assert read_small_text(link, links=True) == "text"
    nothing = (long, pipe, tmp_path, tmp_path / "missing", "/dev/zero", "a\0b")
    assert {read_small_text(path, 99, links=True) for path in nothing} == {""}


def test_a_record_that_the_workspace_brings_opens_no_other_repository(tmp_path):
    root, theirs = tmp_path / "work", tmp_path / "theirs"
    (root / "record").mkdir(parents=True)
    theirs.mkdir()
    (theirs / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git").write_text("gitdir: record\n")
    (root / "record" / "gitdir").write_text(f"{root}/.git\n")
    (root / "record" / "commondir").write_text(f"{theirs}\n")
    assert read_only_paths(launched(root), [], writes_apart=False) == []


def test_a_repository_that_has_the_worktree_on_record_is_kept(tmp_path):
    root, record = tmp_path / "work", tmp_path / "theirs" / ".git" / "worktrees" / "work"
    root.mkdir()
    record.mkdir(parents=True)
    (record.parents[1] / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git").write_text(f"gitdir: {record}\n")
    (record / "gitdir").write_text(f"{root}/.git\n")
    assert read_only_paths(launched(root), [], writes_apart=False) == [str(record.parents[1])]


def test_a_record_of_pipes_keeps_nobody(tmp_path):
    (tmp_path / "worktrees" / "a").mkdir(parents=True)
    os.mkfifo(tmp_path / "worktrees" / "a" / "gitdir")
    (tmp_path / ".git").write_text("gitdir: worktrees/a\n")
    assert read_only_paths(launched(tmp_path), [], writes_apart=False) == []
