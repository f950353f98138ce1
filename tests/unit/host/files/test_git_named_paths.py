"""Paths of the workspace that git's settings name, read without running git."""

import os

import pytest

from handtools.host.files.local_files import LocalFiles
from handtools.runtime.policy.harmless_git_settings import has_plain_value


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "none"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    (work / ".git/hooks").mkdir(parents=True)
    return work


def config(folder, text, name="config"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def named(root, *paths):
    found = LocalFiles(root).git_named_paths(paths, has_plain_value)
    return {each.path: (each.key, each.is_whole_folder) for each in found}


def test_ordinary_settings_name_nothing(root):
    config(
        root / ".git",
        '[core]\n\tfilemode = true\n[user]\n\tname = tools/x\n[remote "o"]\n\turl = ../lib\n'
        "[init]\n\tdefaultBranch = main\n[alias]\n\tst = status\n",
    )
    config(root.parent / "home", '[filter "lfs"]\n\tprocess = git-lfs filter-process\n', ".gitconfig")
    assert named(root) == {}


def test_a_repositorys_own_settings_are_relative_to_its_top(root):
    config(root / ".git", "[core]\n\thooksPath = tools/hooks\n")
    config(root / "sub/.git", '[filter "c"]\n\tclean = ./clean.sh\n')
    assert named(root) == {"tools/hooks": ("core.hookspath", True)}
    assert named(root, "sub/deep/file") == {
        "tools/hooks": ("core.hookspath", True),
        "sub/clean.sh": ("filter.c.clean", True),
    }


def test_the_persons_settings_count_in_every_repository(root):
    config(root.parent / "home", "[core]\n\tfsmonitor = tools/x\n", ".gitconfig")
    config(root.parent / "home", "[core]\n\teditor = ~/../work/ed.sh\n", ".config/git/config")
    assert named(root) == {"tools/x": ("core.fsmonitor", True), "ed.sh": ("core.editor", True)}


def test_settings_that_change_are_read_again(root):
    config(root / ".git", "[core]\n\tpager = ./a.sh\n")
    assert [*named(root)] == ["a.sh"]
    config(root / ".git", "[core]\n\tpager = ./other.sh\n")
    assert [*named(root)] == ["other.sh"]
    (root / ".git/config").unlink()
    assert named(root) == {}


def test_included_files_are_named_and_read(root):
    config(
        root / ".git", '[include]\n\tpath = ../tools/more\n[includeIf "gitdir:/x/"]\n\tpath = ../tools/if\n'
    )
    config(root / "tools", "[include]\n\tpath = deep\n[core]\n\tpager = ./page.sh\n", "more")
    config(root / "tools", "[include]\n\tpath = more\n[gpg]\n\tprogram = ./gpg.sh\n", "deep")
    assert {*named(root)} == {"tools/more", "tools/if", "tools/deep", "page.sh", "gpg.sh"}


def test_a_linked_worktree_goes_by_the_settings_of_its_repository(root):
    config(root / ".git", "[core]\n\thooksPath = hooks\n")
    config(root / ".git/worktrees/t", "../..\n", "commondir")
    config(root / ".git/worktrees/t", "[core]\n\tpager = ./own.sh\n", "config.worktree")
    config(root / "trees/t", f"gitdir: {root}/.git/worktrees/t\n", ".git")
    assert {*named(root, "trees/t/file")} == {"hooks", "trees/t/hooks", "trees/t/own.sh"}


def test_a_workspace_inside_of_a_repository_goes_by_the_settings_around_it(root):
    config(root / ".git", "[core]\n\thooksPath = sub/hooks\n\tpager = other/page\n")
    (root / "sub").mkdir()
    assert named(root / "sub") == {"hooks": ("core.hookspath", True)}


def test_links_are_followed_to_what_they_lead_to(root):
    (root / "scripts").mkdir()
    (root / "scripts/check").touch()
    (root / ".git/hooks/pre-commit").symlink_to("../../scripts/check")
    link = ".git/hooks/pre-commit"
    assert {*named(root)} == {link, "scripts/check"}
    (root / "tools").symlink_to("scripts")
    config(root / ".git", "[core]\n\tpager = ./tools/page\n")
    assert {*named(root)} == {link, "scripts/check", "tools/page", "scripts/page"}
    (root / "hooked").mkdir()
    (root / "hooked/post-commit").symlink_to(root / "plain.sh")
    config(root / ".git", "[core]\n\thooksPath = hooked\n")
    assert {*named(root)} == {link, "scripts/check", "hooked", "hooked/post-commit", "plain.sh"}


def test_the_workspace_itself_and_what_is_outside_are_never_named(root):
    config(root / ".git", f"[core]\n\teditor = {root}\n\tpager = ../x\n\tsshCommand = /usr/bin/ssh -F .\n")
    assert named(root) == {}


def test_a_folder_that_is_only_mentioned_is_not_named(root):
    (root / "src").mkdir()
    config(root / ".git", "[alias]\n\tl = !git ls-files src/\n\tx = !./x.sh src/\n")
    assert {*named(root)} == {"x.sh"}


@pytest.mark.parametrize("text", ["[core", "[core]\n\tpager = \0", "\xff\xfe"])
def test_settings_that_git_could_not_read_name_nothing(root, text):
    config(root / ".git", text)
    assert named(root) == {}


def test_a_pipe_in_the_place_of_settings_is_not_waited_for(root):
    os.mkfifo(root / ".git/config")
    assert named(root) == {}


def test_files_that_include_each_other_come_to_an_end(root):
    for number in range(200):
        config(
            root / ".git", f"[include]\n\tpath = more{number + 1}\n\tpath = more{number}\n", f"more{number}"
        )
    config(root / ".git", "[include]\n\tpath = more0\n")
    assert len(named(root)) < 200
