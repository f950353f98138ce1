"""Changes of git repositories, judged by what they mean to git."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.changes import BackupRef, Change, Node
from handtools.runtime.policy.git_changes import WorkspaceView, judge_git_changes
from handtools.runtime.policy.harmless_git_settings import PLAIN_KEYS, git_config_keys_to_ask
from handtools.text.git_config import parse_git_config
from handtools.text.git_names import is_git_folder_lookalike

OBJECT = "ab" * 20


def node(data=b"", mode=0o644, kind="file"):
    return Node(kind, data, mode, BackupRef("i", "m", len(data)) if kind == "file" else None)


def made(path, data=b"", mode=0o644, kind="file"):
    return Change(path, None, node(data, mode, kind))


def judged(*changes, there=()):
    view = WorkspaceView(
        there=lambda path: path in there,
        within=lambda path: path.startswith("/ws/") or not path.startswith("/"),
        bytes_of=lambda _, found: found.data,
    )
    return judge_git_changes(changes, view)


def asks(*changes, there=()):
    return [what for some in judged(*changes, there=there).questions.values() for what in some]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (f".git/objects/ab/{'cd' * 19}", b"x"),
        (".git/objects/pack/pack-1.idx", b"x"),
        (".git/objects/info/commit-graph", b"x"),
        (".git/refs/heads/Jenkinsfile", OBJECT.encode() + b"\n"),
        (".git/refs/heads/deploy.key", OBJECT.encode()),
        (".git/refs/remotes/origin/HEAD", b"ref: refs/remotes/origin/main\n"),
        (".git/HEAD", b"ref: refs/heads/main\n"),
        (".git/logs/refs/heads/a", b"x"),
        (".git/index", b"x"),
        (".git/packed-refs", b"x"),
        (".git/MERGE_HEAD", OBJECT.encode()),
        (".git/COMMIT_EDITMSG", b"x"),
        (".git/BISECT_NAMES", b" 'a' 'it'\\''s'\n"),
        (".git/rebase-merge/git-rebase-todo", b"pick 1 executable\nfixup 2 x\n"),
        (".git/hooks/pre-commit.sample", b"#!/bin/sh\n"),
        (".git/modules/libs/one/HEAD", b"ref: refs/heads/main\n"),
        (".git/worktrees/tree/HEAD", OBJECT.encode()),
        (".git/worktrees/tree/commondir", b"../..\n"),
        (".git/worktrees/tree/gitdir", b"/ws/tree/.git\n"),
        ("tree/.git", b"gitdir: /ws/.git/worktrees/tree\n"),
        ("lib/.git", b"gitdir: ../.git/modules/lib\n"),
        (".git/objects/info/alternates", b"/ws/other/.git/objects\n"),
    ],
)
def test_what_git_only_keeps_lands(path, data):
    assert asks(made(path, data)) == []
    assert path in judged(made(path, data)).judged


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (".git/hooks/pre-commit", b"#!/bin/sh\n"),
        (".git/hooks/a/b.sample", b"x"),
        (".git/modules/x/hooks/post-checkout", b"x"),
        (".git/modules/x/y/hooks/post-checkout", b"x"),
        (".git/worktrees/tree/hooks/pre-commit", b"x"),
        ("deep/er/.git/hooks/post-merge", b"x"),
        (".git/info/attributes", b"* filter=x\n"),
        (".git/info/exclude", b"x\n"),
        (".git/info/grafts", b"x\n"),
        (".git/commondir", b"../../other\n"),
        (".git/gitdir", b"x"),
        (".git/worktrees/tree/commondir", b"../../../other\n"),
        (".git/worktrees/tree/gitdir", b"/home/somebody/.git\n"),
        (".git/worktrees/tree/gitdir", b"/ws/evil\n"),
        (".git/modules/x/commondir", b"../..\n"),
        (".git", b"gitdir: /ws/evil\n"),
        (".git", b"gitdir: evil\n"),
        ("a/.git", b"gitdir: ../../outside/.git/modules/x\n"),
        ("a/.git", b"gitdir: ../b/.git\n"),
        ("a/.git", b"gitdir: b/../../.git/modules/x\n"),
        ("a/.git", b"gitdir: ../.git/modules/x/refs\n"),
        ("a/.git", b"gitdir: ../x.git/modules/x\n"),
        ("a/.git", b""),
        (".git/objects/info/alternates", b"/home/somebody/.git/objects\n"),
        (".git/objects/info/alternates", b"../../../../other/objects\n"),
        (".git/objects/evil/hooks/pre-commit", b"x"),
        (".git/HEAD", b"ref: ../../x\n"),
        (".git/refs/heads/config", b"[core]\n\tfsmonitor = x\n"),
        (".git/rebase-merge/git-rebase-todo", b"pick 1\n  exec rm -rf ~\n"),
        (".git/rebase-merge/git-rebase-todo", b"x sh\n"),
        (".git/rebase-merge/strategy", b"../../evil\n"),
        (".git/sequencer/opts", b"[options]\n\tstrategy = ../evil\n"),
        (".git/rebase-apply/apply-opt", b" '--unsafe-paths'"),
        (".git/BISECT_NAMES", b" $(evil)\n"),
        (".git/remotes/origin", b"URL: ext::sh\n"),
        (".git/anything", b"x"),
        (".git/config", b"[core\n"),
        (".git/config", b"[core]\n\tfsmonitor = \0x\n"),
        (".git/config.worktree", b"[core]\n\thooksPath = x\n"),
        (".git/modules/x/config", b"[core]\n\tsshCommand = x\n"),
    ],
)
def test_what_git_runs_or_trusts_asks_with_its_path(path, data):
    (question,) = asks(made(path, data))
    assert f"`{path}`" in question


def test_a_link_in_a_repository_asks_and_one_that_goes_does_not():
    assert asks(made(".git/refs/heads/x", b"/etc/passwd", kind="link"))
    assert not asks(Change(".git/refs/heads/x", node(b"/etc", kind="link"), None))


def test_a_program_among_the_data_asks_and_so_does_what_everybody_may_write():
    assert asks(made(".git/logs/refs/heads/a", b"x", 0o755))
    assert asks(made(".git/index", b"x", 0o666))
    assert asks(Change(".git/hooks/pre-commit", node(b"x", 0o644), node(b"x", 0o755)))


def test_taking_away_a_hook_or_a_repository_asks_and_data_may_go():
    assert asks(Change(".git/hooks/pre-commit", node(b"x"), None))
    assert asks(Change("lib/.git", Node("folder"), None))
    assert not asks(Change("lib/.git", node(b"gitdir: ../x"), None))
    assert not asks(Change(".git/refs/heads/a", node(OBJECT.encode()), None))


def test_a_new_repository_lands_with_its_examples_and_its_empty_list_of_ignored_files():
    new = [made("lib/.git", mode=0o755, kind="folder"), made("lib/.git/info/exclude", b"# x\n")]
    assert not asks(*new, made("lib/.git/hooks/update.sample", b"x", 0o755))
    assert asks(*new, made("lib/.git/hooks/update", b"x", 0o755))


def test_a_bare_repository_that_is_made_whole_is_judged_like_any_other():
    head = made("store/HEAD", b"ref: refs/heads/main\n")
    whole = [
        made("store", mode=0o755, kind="folder"),
        head,
        made("store/config", b"[core]\n\tbare = true\n"),
    ]
    assert not asks(*whole)
    assert judged(*whole).judged == {change.path for change in whole}
    assert asks(*whole, made("store/hooks/update", b"x", 0o755))
    # Half of it may have been there before, unjudged: that is for the rule about shapes.
    assert not judged(*whole[1:]).judged


def test_a_lock_that_is_left_is_named_and_a_name_with_that_end_elsewhere_is_not():
    assert judged(made(".git/index.lock")).stale_locks == [".git/index.lock"]
    assert not judged(made("poetry.lock")).stale_locks


def settings(before, after):
    return git_config_keys_to_ask(
        parse_git_config(before.encode()),
        parse_git_config(after.encode()),
        local=lambda _, path: path.startswith("/ws/") or not path.startswith("/"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "[user]\nname = A B\nemail = a@b",
        '[branch "a"]\nremote = origin\nmerge = refs/heads/a',
        '[remote "o"]\nurl = https://example.org/a.git\nfetch = +refs/heads/*:refs/remotes/o/*',
        '[remote "o"]\nurl = git@example.org:a/b.git',
        '[remote "o"]\nurl = /ws/lib',
        "[core]\nrepositoryformatversion = 0\nfilemode\nbare = false\nlogallrefupdates = true",
        '[submodule "x"]\nactive = true\nurl = /ws/lib\nupdate = rebase',
        "[alias]\nst = status\nlg = log --oneline --graph",
        "[core]\nworktree = ../../../lib",
    ],
)
def test_plain_settings_land(text):
    assert settings("", text) == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[core]\nhooksPath = x", "core.hookspath"),
        ("[CORE]\nHOOKSPATH = x", "core.hookspath"),
        ("[core]\nfsmonitor = x", "core.fsmonitor"),
        ("[core] sshCommand = x", "core.sshcommand"),
        ("[core]\npager = x", "core.pager"),
        ("[core]\neditor = x", "core.editor"),
        ("[core]\nworktree = /home/x", "core.worktree"),
        ("[core]\nattributesFile = x", "core.attributesfile"),
        ('[filter "x"]\nsmudge = x', "filter.x.smudge"),
        ('[diff "x"]\ncommand = x', "diff.x.command"),
        ("[diff]\nexternal = x", "diff.external"),
        ('[merge "x"]\ndriver = x', "merge.x.driver"),
        ("[alias]\nst = !x", "alias.st"),
        ("[alias]\nst = --exec-path=/ws/evil x", "alias.st"),
        ("[alias]\nst = diff --output=x", "alias.st"),
        ("[include]\npath = x", "include.path"),
        ('[includeIf "gitdir:/"]\npath = x', "includeif.gitdir:/.path"),
        ("[credential]\nhelper = x", "credential.helper"),
        ('[remote "o"]\npromisor = true', "remote.o.promisor"),
        ('[remote "o"]\nurl = ext::sh -c x', "remote.o.url"),
        ('[remote "o"]\nurl = -x', "remote.o.url"),
        ('[remote "o"]\nurl = ssh://-oProxyCommand=x/y', "remote.o.url"),
        ('[remote "o"]\nurl = /home/x', "remote.o.url"),
        ('[remote "o"]\nuploadpack = x', "remote.o.uploadpack"),
        ('[branch "a"]\nremote = ext::x', "branch.a.remote"),
        ('[branch "a"]\nmergeOptions = -s x', "branch.a.mergeoptions"),
        ('[submodule "x"]\nupdate = !x', "submodule.x.update"),
        ('[url "x"]\ninsteadOf = y', "url.x.insteadof"),
        ("[extensions]\nworktreeConfig = true", "extensions.worktreeconfig"),
        ("[extensions]\npartialClone = o", "extensions.partialclone"),
        ("[gpg]\nprogram = x", "gpg.program"),
        ("[gc]\nrecentObjectsHook = x", "gc.recentobjectshook"),
        ("[http]\nproxy = x", "http.proxy"),
        ("[sequence]\neditor = x", "sequence.editor"),
        ("[protocol]\nallow = always", "protocol.allow"),
        ("[anything]\nnew = x", "anything.new"),
    ],
)
def test_settings_by_which_git_runs_or_trusts_something_ask_with_their_key(text, key):
    (question,) = settings("", text)
    assert question.startswith(f"{key} = ")
    assert settings(text, text) == []
    assert settings(text, "") == ([f"{key} (taken away)"] if key not in PLACES else [])


PLACES = {"remote.o.url", "branch.a.remote", "submodule.x.update", "alias.st", "core.worktree"}
"""Keys that may go: nothing is sent, run or trusted for want of them."""


def test_another_place_for_a_known_remote_asks():
    known = '[remote "o"]\nurl = https://example.org/a.git'
    assert settings(known, known.replace("example.org", "example.com"))
    assert settings(known, known + "\npushurl = https://example.com/a.git")
    assert settings(known, "") == []


@given(
    section=st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True),
    name=st.from_regex(r"[a-z][a-zA-Z-]{0,12}", fullmatch=True),
    value=st.from_regex(r"[!-~]{1,10}", fullmatch=True).filter(lambda text: not set(text) & set('"\\#;')),
)
def test_a_key_that_has_no_row_always_asks(section, name, value):
    key = f"{section}.{name.lower()}"
    if key in PLAIN_KEYS or f"{section}.*" in PLAIN_KEYS:
        return
    assert settings("", f"[{section}]\n\t{name} = {value}\n")


@pytest.mark.parametrize(
    "name", [".GIT", ".Git", ".git.", ".git ", "git~1", "GIT~2", ".git::$INDEX_ALLOCATION", ".g\u200cit"]
)
def test_names_that_other_disks_take_for_git_are_known(name):
    assert is_git_folder_lookalike(name)


@pytest.mark.parametrize("name", [".git", ".gitignore", "git", ".github", "git~", "x.git"])
def test_other_names_are_not(name):
    assert not is_git_folder_lookalike(name)
