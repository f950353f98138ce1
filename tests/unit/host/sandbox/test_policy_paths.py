"""Private and read-only paths of a workspace, and the alarm for those that appear while a command runs."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handtools.core.commands import matches_no_path
from handtools.host.files import change_detection, tree_watch
from handtools.host.sandbox import policy_paths
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.policy_paths import PolicyGlobFinder, PolicyPathFinder
from handtools.host.sandbox.runners.hidden_paths import read_only_paths
from handtools.text.search.glob import PathGlobs

PRIVATE = PathGlobs(
    (".env", ".env.*", "*.pem", ".ssh"),
    (".env.example", "*.pub", "**/node_modules/**", "**/site-packages/**"),
)


def finder(root, *private, read_only=(".git",)):
    return PolicyGlobFinder(str(root), private or (PRIVATE,), (PathGlobs(read_only),))


def hidden_from_commands(root, *private, read_only=(), is_open=matches_no_path):
    """What is hidden from a command that writes to the workspace itself."""
    kept = (PathGlobs(read_only),) if read_only else ()
    covered = PolicyPathFinder().covered(
        str(root), private or (PRIVATE,), kept, is_open, writes_apart=False
    )
    return names(root, covered.hidden)


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


@pytest.fixture(params=["watched", "half", "unwatched"])
def watched(request, monkeypatch):
    """The folders of a tree are watched, or only the first of them, or none."""
    most = {"watched": tree_watch.MAX_WATCHED_FOLDERS, "half": 3, "unwatched": 0}
    monkeypatch.setattr(tree_watch, "MAX_WATCHED_FOLDERS", most[request.param])


@pytest.mark.usefixtures("watched")
def test_every_change_is_known_at_the_next_look(tmp_path):
    plant(tmp_path, "a/.env", "conf/deep/key.pem", *(f"{number}/plain" for number in range(20)))
    looking = finder(tmp_path)

    def found():
        return names(tmp_path, looking.found().private)

    assert found() == ["a/.env", "conf/deep/key.pem"]
    plant(tmp_path, "7/.env", "13/new/key.pem")
    assert found() == ["13/new/key.pem", "7/.env", "a/.env", "conf/deep/key.pem"]
    (tmp_path / "conf").rename(tmp_path / "13/conf")
    (tmp_path / "a/.env").unlink()
    assert found() == ["13/conf/deep/key.pem", "13/new/key.pem", "7/.env"]
    (tmp_path / "13/conf/deep/key.pem").rename(tmp_path / "plain")
    (tmp_path / "7").rename(tmp_path / "old")
    plant(tmp_path, "7/.ssh/id", "13/conf/deep/.env.local")
    assert found() == ["13/conf/deep/.env.local", "13/new/key.pem", "7/.ssh", "old/.env"]


@pytest.mark.usefixtures("watched")
def test_a_forged_time_hides_no_new_file(tmp_path):
    plant(tmp_path, "a/plain")
    looking = finder(tmp_path)
    before = os.stat(tmp_path / "a")
    assert looking.found().private == ()
    plant(tmp_path, "a/.env")
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert names(tmp_path, looking.found().private) == ["a/.env"]


@pytest.mark.usefixtures("watched")
def test_a_workspace_that_was_moved_away_is_searched_anew(tmp_path):
    plant(tmp_path, "work/a/plain")
    looking = finder(tmp_path / "work")
    assert looking.found().private == ()
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    plant(tmp_path, "work/a/.env")
    assert names(tmp_path / "work", looking.found().private) == ["a/.env"]


def test_a_rule_without_exceptions_holds_in_dependencies(tmp_path):
    plant(tmp_path, "node_modules/x/.env", "node_modules/x/secret", "node_modules/y/.git/secret")
    vendor = PathGlobs((".env",), ("**/node_modules/**",))
    assert names(tmp_path, finder(tmp_path, vendor, PathGlobs(("secret",))).found().private) == [
        "node_modules/x/secret"
    ]


def test_nobody_is_told_a_part_while_the_tree_is_searched(tmp_path):
    plant(tmp_path, *(f"{number}/{number}/.env" for number in range(100)))
    looking = finder(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        every = [each.result() for each in [pool.submit(looking.found) for _ in range(4)]]
    assert {len(found.private) for found in every} == {100}


def test_what_must_not_be_written_in_a_private_folder_is_not_shown_to_be_written(tmp_path):
    plant(tmp_path, ".vscode/tasks.json", ".vscode/deep/a", ".env")
    rule = PathGlobs((".vscode",), (".vscode/tasks.json", ".vscode/deep/**"))
    assert hidden_from_commands(tmp_path, rule, read_only=(".vscode",)) == [".vscode"]
    assert hidden_from_commands(tmp_path, rule, read_only=("deep",)) == [".vscode/deep/a"]
    assert hidden_from_commands(tmp_path, PRIVATE, read_only=(".env",), is_open=lambda _: True) == [".env"]


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    plant(tmp_path, "work/x", "out/.env")
    (tmp_path / "work/out").symlink_to(tmp_path / "out")
    assert finder(tmp_path / "work").found().private == ()


def test_a_folder_that_is_named_like_an_exception_excepts_nothing_in_it(tmp_path):
    plant(tmp_path, ".env.example/.env")
    assert names(tmp_path, finder(tmp_path).found().private) == [".env.example/.env"]


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


def write_protected(root, *globs, apart=False):
    rules = (PathGlobs(globs),) if globs else ()
    launch = Launch(
        argv=(),
        env={},
        cwd=str(root),
        root=str(root),
        read_only_globs=rules,
    )
    covered = PolicyPathFinder().covered(launch.root, (), rules, matches_no_path, writes_apart=apart)
    return names(root, read_only_paths(launch, covered.read_only, writes_apart=apart))


def test_a_link_of_a_name_that_must_not_be_written_is_kept_with_what_it_leads_to(tmp_path):
    plant(tmp_path, "real/tasks.json")
    (tmp_path / ".vscode").symlink_to("real")
    assert write_protected(tmp_path, ".vscode") == ["real"]


def test_a_projects_own_file_is_kept_from_who_writes_directly_if_it_is_one(tmp_path):
    plant(tmp_path, ".handtools.toml", "pyproject.toml", ".envrc", "deep/pyproject.toml")
    assert write_protected(tmp_path, ".envrc") == [".envrc", ".handtools.toml"]
    (tmp_path / "pyproject.toml").write_text('["tool"."handtools"]\nexcluded = ["plans"]\n')
    assert write_protected(tmp_path, ".envrc") == [".envrc", ".handtools.toml", "pyproject.toml"]
    assert write_protected(tmp_path, ".envrc", apart=True) == []
    assert write_protected(tmp_path) == []


class Watching:
    """A command that runs in a workspace: what is masked for it, and its alarm."""

    def __init__(self, root, is_open=matches_no_path):
        self.root = root
        covered = PolicyPathFinder().covered(str(root), (PRIVATE,), (), is_open, writes_apart=True)
        self.hidden = names(root, covered.hidden)
        self.alarm = covered.alarm
        self.alarm.set_hidden(covered.hidden)

    def exposed(self, *, thorough=False):
        return self.alarm.exposed_paths(thorough=thorough)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(policy_paths, "EXPLANATION_SECONDS", 0.0)


def test_an_alarm_names_what_appeared_even_if_it_is_gone_again(tmp_path):
    plant(tmp_path, "a/.env", "b/plain")
    command = Watching(tmp_path)
    assert command.exposed() == []
    plant(tmp_path, "b/.env", "new/deep/key.pem", "b/other")
    (tmp_path / "b/.env").unlink()
    assert command.exposed() == ["b/.env", "new/deep/key.pem"]


def test_what_is_masked_may_be_saved_anew_in_every_way(tmp_path):
    plant(tmp_path, "a/.env", "a/.ssh/id")
    command = Watching(tmp_path)
    (tmp_path / "a/.env").write_text("in place")
    (tmp_path / "a/.env").unlink()
    (tmp_path / "a/plain").write_text("renamed")
    (tmp_path / "a/plain").rename(tmp_path / "a/.env")
    plant(tmp_path, "a/.ssh/new", "a/.ssh/deep/other")
    assert command.exposed() == []


def test_a_mask_is_lost_with_the_folder_that_it_was_in(tmp_path):
    plant(tmp_path, "conf/.env")
    command = Watching(tmp_path)
    (tmp_path / "conf").rename(tmp_path / "old")
    assert command.exposed() == ["old/.env"]
    plant(tmp_path, "conf/.env")
    assert command.exposed() == ["conf/.env", "old/.env"]


def test_a_file_that_is_open_may_appear_until_a_secret_is_written_to_it(tmp_path):
    def is_open(path):
        return path.endswith(".env") and (tmp_path / path).exists() and (tmp_path / path).read_text() == "x"

    plant(tmp_path, "a/.env")
    command = Watching(tmp_path, is_open)
    assert command.hidden == []
    plant(tmp_path, "b/.env")
    assert command.exposed() == []
    (tmp_path / "a/.env").write_text("secret")
    assert command.exposed() == ["a/.env"]


@pytest.mark.parametrize("age", [change_detection.MIN_BELIEVED_AGE_NS, -(10**12)])
def test_a_secret_written_through_an_open_file_is_noticed_when_the_command_has_ended(
    tmp_path, monkeypatch, age
):
    monkeypatch.setattr(change_detection, "MIN_BELIEVED_AGE_NS", age)
    plant(tmp_path, ".env", "b/.env")
    command = Watching(tmp_path, lambda path: (tmp_path / path).read_text() == "x")
    before = (tmp_path / ".env").stat().st_ctime_ns
    with open(tmp_path / ".env", "r+") as file:
        while (tmp_path / ".env").stat().st_ctime_ns == before:
            os.pwrite(file.fileno(), b"s", 0)
        assert command.exposed() == []  # inotify reports a write when the file is closed
        assert command.alarm.exposed_at_end == [".env"]


def test_a_new_file_in_a_private_folder_of_which_a_part_is_open_is_noticed(tmp_path):
    plant(tmp_path, ".ssh/config", ".ssh/deep/id")
    command = Watching(tmp_path, lambda path: path == ".ssh/config")
    assert command.hidden == [".ssh/deep/id"]
    plant(tmp_path, ".ssh/deep/new")
    assert command.exposed() == [".ssh/deep/new"]


def test_a_private_folder_that_appears_is_noticed_with_what_is_put_into_it_later(tmp_path):
    plant(tmp_path, "plain")
    command = Watching(tmp_path, lambda path: path == ".ssh/config")
    plant(tmp_path, ".ssh/config")
    assert command.exposed() == []
    plant(tmp_path, ".ssh/id")
    assert command.exposed() == [".ssh/id"]


def test_what_appears_in_folders_that_are_not_watched_is_noticed_while_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_watch, "MAX_WATCHED_FOLDERS", 0)
    plant(tmp_path, "a/plain")
    command = Watching(tmp_path)
    plant(tmp_path, "a/.env", "b/c/key.pem")
    assert command.exposed(thorough=True) == ["a/.env", "b/c/key.pem"]


def test_events_that_were_lost_are_no_reason_to_believe_that_nothing_happened(tmp_path):
    plant(tmp_path, "a/plain")
    command = Watching(tmp_path)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with tree_watch.INOTIFY._lock:  # as if the thread that reads events had no time
        for number in range(limit + 10):
            os.close(os.open(tmp_path / "a" / str(number % 2), os.O_CREAT | os.O_WRONLY))
            os.unlink(tmp_path / "a" / str(number % 2))
    assert command.exposed() == ["**"]


RENAMING = """
import os, sys
os.chdir(sys.argv[1])
print("begun", flush=True)
while True:
    os.rename("one", "other")
    os.rename("other", "one")
"""


def test_a_program_that_renames_without_a_pause_holds_up_no_search(tmp_path):
    for name in ("a", "b"):
        plant(tmp_path, f"{name}/one/x")
    searching = finder(tmp_path)
    searching.found()
    programs = [
        subprocess.Popen([sys.executable, "-c", RENAMING, tmp_path / name], stdout=subprocess.PIPE)
        for name in ("a", "b")
    ]
    try:
        for program in programs:
            assert program.stdout.readline() == b"begun\n"
        plant(tmp_path, ".env")
        for _ in range(20):
            assert names(tmp_path, searching.found().private) == [".env"]
    finally:
        for program in programs:
            program.kill()
            program.wait()
            program.stdout.close()
