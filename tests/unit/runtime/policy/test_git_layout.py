"""What git takes a path in its folder for."""

import pytest

from handtools.runtime.policy.git_layout import is_nested_git_folder, read_git_path

ID = "ab" * 20


@pytest.mark.parametrize(
    ("inner", "folder", "path", "kind"),
    [
        ("HEAD", "", "HEAD", "ref"),
        ("config", "", "config", "settings"),
        ("refs/heads/config", "", "refs/heads/config", "ref"),
        ("refs/stash", "", "refs/stash", "ref"),
        ("logs/HEAD", "", "logs/HEAD", "reflog"),
        (f"objects/ab/{ID[2:]}", "", f"objects/ab/{ID[2:]}", "object"),
        (f"objects/pack/pack-{ID}.rev", "", f"objects/pack/pack-{ID}.rev", "pack index"),
        ("BISECT_NAMES", "", "BISECT_NAMES", "bisect names"),
        ("BISECT_LOG", "", "BISECT_LOG", "data"),
        ("rebase-apply/0001", "", "rebase-apply/0001", "data"),
        ("worktrees/objects/HEAD", "worktrees/objects", "HEAD", "ref"),
        ("worktrees/x/modules/y/config", "worktrees/x/modules/y", "config", "settings"),
        ("modules/a/b/c/index", "modules/a/b/c", "index", "data"),
        ("modules/a/b/FETCH_HEAD", "modules/a/b", "FETCH_HEAD", "data"),
        ("modules/a/modules/b/HEAD", "modules/a/modules/b", "HEAD", "ref"),
        ("modules/common/HEAD", "modules/common", "HEAD", "ref"),
        ("modules/x/logs/refs/y/config", "modules/x", "logs/refs/y/config", "reflog"),
    ],
)
def test_a_path_belongs_to_the_innermost_git_folder_and_has_a_kind(inner, folder, path, kind):
    assert read_git_path(inner) == (folder, path, kind)


@pytest.mark.parametrize(
    "inner",
    [
        "hooks/pre-commit", "config_worktree", "gcXlog", "[0-9a-f]{2}", "refs/heads/a.lock", "refs/heads/.x",
        "refs/heads/a..b", "logs/config", "logs/refs/heads/a b", "rebase-merge/HEAD", "rebase-merge/config",
        f"objects/AB/{ID[2:]}", "objects/pack/evil.idx", "modules/x", "modules/HEAD", "modules/objects/HEAD",
        "modules/x/.git/HEAD", "modules/x/GIT~1/HEAD", "modules/x/Hooks/y/HEAD", "worktrees/x", "info/attributes",
        "info/grafts", "remotes/origin", "modules/x/remotes/index", "objects/info/http-alternates", "Config",
        "index/x",
    ],
)  # fmt: skip
def test_a_name_that_git_does_not_have_there_has_no_kind(inner):
    assert read_git_path(inner).kind is None


@pytest.mark.parametrize(
    "inner",
    ["objects", "objects/ab", "refs", "refs/heads/a/b", "modules/a/b", "worktrees/x", "hooks", "branches"],
)
def test_a_folder_that_git_has_is_known(inner):
    assert read_git_path(inner, is_folder=True).kind == "folder"


@pytest.mark.parametrize(
    "inner", ["evil", "objects/evil", "modules/a/hooks/b", "index", "rebase-merge/x", "refs/a b"]
)
def test_another_folder_is_not(inner):
    assert read_git_path(inner, is_folder=True).kind is None


@pytest.mark.parametrize(
    ("inner", "is_one"),
    [
        ("modules/x", True),
        ("modules/a/b", True),
        ("worktrees/x", True),
        ("modules/x/refs", False),
        ("modules/x/logs/refs/y", False),
        ("modules", False),
        ("objects", False),
    ],
)
def test_the_git_folder_of_a_submodule_or_worktree_is_told_from_others(inner, is_one):
    assert is_nested_git_folder(inner) == is_one
