"""Globs of a policy as paths of a workspace."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from handtools.core.commands import matches_no_path
from handtools.core.errors import HostError
from handtools.host.sandbox.runners import hidden_paths
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths
from handtools.host.sandbox.runners.hidden_paths import (
    PolicyGlobFinder,
    hidden_private_paths,
    limit_masks,
    read_only_paths,
)
from handtools.text.search.glob import PathGlobs

PRIVATE = PathGlobs((".env", ".env.*", "*.pem", ".ssh"), (".env.example", "*.pub"))


def finder(root, *private, read_only=(".git",)):
    return PolicyGlobFinder(str(root), private or (PRIVATE,), (PathGlobs(read_only),))


def hidden_from_commands(root, *private, is_open=matches_no_path):
    found = finder(root, *private).found().private
    return names(root, hidden_private_paths(str(root), found, private or (PRIVATE,), is_open))


def plant(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def names(root, paths):
    return [os.path.relpath(path, root) for path in paths]


def test_files_and_folders_are_found_at_any_depth(tmp_path):
    plant(tmp_path, ".env", "a/b/.env.local", "a/key.pem", "a/.ssh/id", "a/plain.txt")
    assert names(tmp_path, finder(tmp_path).found().private) == [
        ".env",
        "a/.ssh",
        "a/b/.env.local",
        "a/key.pem",
    ]


def test_case_does_not_hide_a_name(tmp_path):
    plant(tmp_path, ".ENV")
    assert names(tmp_path, finder(tmp_path).found().private) == [".ENV"]


def test_exceptions_stay_visible(tmp_path):
    plant(tmp_path, ".env.example", ".env.local")
    assert names(tmp_path, finder(tmp_path).found().private) == [".env.local"]


def test_an_exception_of_one_rule_means_nothing_to_another(tmp_path):
    plant(tmp_path, "secrets/a.pub", "b.pub", "b.key")
    rules = (PathGlobs(("*.pub", "*.key"), ("*.pub",)), PathGlobs(("secrets",)))
    assert hidden_from_commands(tmp_path, *rules) == ["b.key", "secrets"]


@pytest.mark.parametrize("glob", ["!**", "!.env", "!*", "!/**", "**/!.env"])
@pytest.mark.parametrize("but", [(), ("**",), ("!**",)])
def test_another_rule_opens_nothing_whatever_its_globs_begin_with(tmp_path, glob, but):
    plant(tmp_path, ".env", "a/key.pem", ".ssh/id")
    for rules in ((PathGlobs((glob,), but), PRIVATE), (PRIVATE, PathGlobs((glob,), but))):
        assert hidden_from_commands(tmp_path, *rules) == [".env", ".ssh", "a/key.pem"]


def test_a_glob_that_begins_with_an_exclamation_mark_is_a_plain_one(tmp_path):
    plant(tmp_path, "!a", "a", "b/!a")
    assert hidden_from_commands(tmp_path, PathGlobs(("!a",))) == ["!a", "b/!a"]


def test_a_rule_without_globs_covers_everything_but_its_exceptions(tmp_path):
    plant(tmp_path, "a/b", "a/open.txt", "c")
    assert hidden_from_commands(tmp_path, PathGlobs((), ("open.txt",))) == ["a/b", "c"]


def test_an_exception_in_a_private_folder_stays_visible_and_all_else_in_it_hidden(tmp_path):
    plant(tmp_path, ".ssh/id", "deep/.ssh/id", "deep/.ssh/id.pub", "deep/.ssh/x.pub/id", "deep/.ssh/y/z")
    assert hidden_from_commands(tmp_path) == [
        ".ssh", "deep/.ssh/id", "deep/.ssh/y/z", "deep/.ssh/x.pub/id",
    ]  # fmt: skip


def test_what_is_installed_is_no_secret(tmp_path):
    plant(tmp_path, "node_modules/x/.env", "lib/site-packages/certifi/cacert.pem")
    assert finder(tmp_path).found().private == ()


def test_repositories_are_found_and_not_looked_into(tmp_path):
    plant(tmp_path, ".git/config", "sub/.git/config", ".git/.env")
    found = finder(tmp_path).found()
    assert names(tmp_path, found.read_only) == [".git", "sub/.git"]
    assert found.private == ()


def test_a_new_file_is_found_and_one_that_is_gone_is_not(tmp_path):
    plant(tmp_path, "a/.env")
    looking = finder(tmp_path)
    assert names(tmp_path, looking.found().private) == ["a/.env"]
    (tmp_path / "a/.env").unlink()
    plant(tmp_path, "b/c/.env")
    assert names(tmp_path, looking.found().private) == ["b/c/.env"]


def test_what_was_made_since_the_look_ahead_is_found_in_a_tree_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(hidden_paths, "_REFRESH_SECONDS", 0.0)  # as if the tree were too large for one turn
    plant(tmp_path, *(f"{number}/plain" for number in range(20)))
    looking = finder(tmp_path)
    assert looking.found().private == ()
    plant(tmp_path, "7/.env", "13/new/key.pem")
    assert names(tmp_path, looking.found().private) == ["13/new/key.pem", "7/.env"]


def test_nobody_is_told_a_part_while_the_tree_is_searched(tmp_path):
    plant(tmp_path, *(f"{number}/{number}/.env" for number in range(100)))
    looking = finder(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        every = [each.result() for each in [pool.submit(looking.found) for _ in range(4)]]
    assert {len(found.private) for found in every} == {100}


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    plant(tmp_path, "work/x", "out/.env")
    (tmp_path / "work/out").symlink_to(tmp_path / "out")
    assert finder(tmp_path / "work").found().private == ()


def test_a_link_of_a_name_that_must_not_be_written_is_kept_with_what_it_leads_to(tmp_path):
    plant(tmp_path, "real/tasks.json")
    (tmp_path / ".vscode").symlink_to("real")
    found = finder(tmp_path, read_only=(".vscode",)).found()
    assert names(tmp_path, read_only_paths(str(tmp_path), found.read_only)) == ["real"]


def test_a_folder_that_is_named_like_an_exception_excepts_nothing_in_it(tmp_path):
    plant(tmp_path, ".env.example/.env")
    assert names(tmp_path, finder(tmp_path).found().private) == [".env.example/.env"]


def test_more_private_files_than_can_be_covered_hide_their_folder_whole():
    files = ("/w/.env", *(f"/w/keys/{number}.pem" for number in range(9)), "/w/a/x.pem", "/w/a/y.pem")
    fitting, notes = limit_masks(MaskedPaths(files, ("/w/keys/.ssh", "/w/.aws")), "/w", most=6)
    assert fitting == MaskedPaths(("/w/.env", "/w/a/x.pem", "/w/a/y.pem"), ("/w/.aws", "/w/keys"))
    assert notes == ("`keys` is hidden from it whole: it holds too many private files.",)
    assert limit_masks(MaskedPaths(files), "/w", most=99) == (MaskedPaths(files), ())


def test_a_workspace_that_is_full_of_private_files_itself_runs_nothing_rather_than_show_them():
    with pytest.raises(HostError, match="private files"):
        limit_masks(MaskedPaths(tuple(f"/w/{number}.pem" for number in range(9))), "/w", most=5)


def test_what_is_private_is_found_in_folders_that_must_not_be_written(tmp_path):
    plant(
        tmp_path,
        ".devcontainer/.env",
        ".devcontainer/deep/a.pem",
        ".devcontainer/deep/b",
        ".devcontainer/c",
    )
    found = finder(tmp_path, read_only=(".devcontainer", ".devcontainer/deep")).found()
    assert names(tmp_path, found.private) == [".devcontainer/.env", ".devcontainer/deep/a.pem"]
    assert names(tmp_path, found.read_only) == [".devcontainer"]
