"""Changes of git repositories, judged by what they mean to git."""

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.changes import BackupRef, Change, ChangeSet, FolderItem, Node, folder_node
from handtools.runtime.policy import git_changes
from handtools.runtime.policy.change_rules import apply_rules_to_changes, judge_reversal
from handtools.runtime.policy.git_changes import WorkspaceView, judge_git_changes
from handtools.runtime.policy.git_layout import RESERVED_NAMES
from handtools.runtime.policy.harmless_git_settings import PLAIN_KEYS, git_config_keys_to_ask
from handtools.text.git_config import is_git_folder_lookalike, parse_git_config

OBJECT = "ab" * 20


def node(data=b"", mode=0o644, kind="file"):
    return Node(kind, data, mode, BackupRef("i", "m", len(data)) if kind == "file" else None)


def made(path, data=b"", mode=0o644, kind="file"):
    return Change(path, None, node(data, mode, kind))


def loose(content, kind=b"blob", algorithm="sha1"):
    """The path and the bytes of a loose object."""
    whole = b"%s %d\0%s" % (kind, len(content), content)
    name = hashlib.new(algorithm, whole).hexdigest()
    return f".git/objects/{name[:2]}/{name[2:]}", zlib.compress(whole)


def view_of(there=(), pack=True):
    """A workspace in which some paths are, with their bytes if they are a mapping."""
    now = dict(there) if isinstance(there, dict) else dict.fromkeys(there, b"")
    return WorkspaceView(
        there=now.__contains__,
        within=lambda path: path.startswith("/ws/") or not path.startswith("/"),
        pieces_of=lambda path, found: iter([now.get(path, b"") if found is None else found.data]),
        verifies_pack=lambda _stem, _nodes: pack,
        named_by_git=lambda _: (),
    )


def judged(*changes, there=(), pack=True):
    return judge_git_changes(changes, view_of(there, pack))


def asks(*changes, there=(), pack=True):
    return [what for some in judged(*changes, there=there, pack=pack).questions.values() for what in some]


def ruled(*changes, there=()):
    return apply_rules_to_changes(
        changes, forbidding=lambda _path, _link: [], view=view_of(there), open_private=lambda _: False
    )


REFLOG = f"{OBJECT} {OBJECT} A <a@b> 1 +0000\tx\n".encode()
PACK = f".git/objects/pack/pack-{OBJECT}"


@pytest.mark.parametrize(
    ("path", "data"),
    [
        loose(b"x"),
        loose(b"x" * 3_000_000),
        loose(b"x", algorithm="sha256"),
        (f"{PACK}.idx", b"x"),
        (".git/refs/heads/Jenkinsfile", OBJECT.encode() + b"\n"),
        (".git/refs/heads/deploy.key", OBJECT.encode()),
        (".git/refs/remotes/origin/HEAD", b"ref: refs/remotes/origin/main\n"),
        (".git/HEAD", b"ref: refs/heads/main\n"),
        (".git/refs/heads/config", OBJECT.encode()),
        (".git/logs/HEAD", REFLOG),
        (".git/logs/refs/heads/a", REFLOG * 2),
        (".git/logs/refs/heads/hooks/config", REFLOG),
        (".git/logs/refs/heads/b", b""),
        (".git/index", b"x"),
        (".git/packed-refs", f"{OBJECT} refs/heads/a\n".encode()),
        (".git/MERGE_HEAD", OBJECT.encode()),
        (".git/COMMIT_EDITMSG", b"x"),
        (".git/BISECT_NAMES", b" 'a' 'it'\\''s'\n"),
        (".git/rebase-merge/git-rebase-todo", b"pick 1 executable\nfixup 2 x\n"),
        (".git/hooks/pre-commit.sample", b"#!/bin/sh\n"),
        (".git/modules/libs/one/HEAD", b"ref: refs/heads/main\n"),
        (".git/modules/.vim/x/FETCH_HEAD", b"x"),
        (".git/modules/a/modules/b/config", b"[user]\n\tname = x\n"),
        (".git/worktrees/tree/modules/b/HEAD", OBJECT.encode()),
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
        (".git/objects/info/alternates", b"/ws/plain/objects\n"),
        (".git/HEAD", b"ref: ../../x\n"),
        (".git/HEAD", b"ref: refs/../../x\n"),
        (".git/HEAD", b""),
        (f".git/refs/replace/{OBJECT}", OBJECT.encode()),
        (f".git/refs/Replace/{OBJECT}", OBJECT.encode()),
        (".git/packed-refs", f"{OBJECT} refs/replace/{OBJECT}\n".encode()),
        (".git/shallow", OBJECT.encode() + b"\n"),
        (f"{PACK}.mtimes", b"x"),
        (".git/objects/pack/evil.idx", b"x"),
        (f".git/objects/pack/.tmp-1-pack-{OBJECT}.idx", b"x"),
        (".git/logs/refs/heads/a", b"x"),
        (".git/logs/refs/y/config", b"[core]\n\tfsmonitor = x\n"),
        (".git/logs/refs/a b", REFLOG),
        (".git/modules/x/logs/refs/y/config", b"[core]\n\tfsmonitor = x\n"),
        (".git/modules/x/logs/refs/y/HEAD", b"ref: refs/heads/main\n"),
        (".git/modules/x/objects/pack/config", b"[core]\n\tfsmonitor = x\n"),
        (".git/modules/x/rebase-merge/config", b"[core]\n\tfsmonitor = x\n"),
        (".git/modules/x/rebase-merge/HEAD", b"ref: refs/heads/main\n"),
        (".git/modules/x/rebase-merge/commondir", b"../../../evil\n"),
        (".git/modules/hooks/HEAD", b"ref: refs/heads/main\n"),
        (".git/modules/x/LOGS/refs/y", REFLOG),
        (".git/modules/x/evil", b"x"),
        (".git/modules/x/.git/config", b"[user]\n\tname = x\n"),
        (".git/rebase-merge/refs-to-delete", b"refs/heads/precious\n"),
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
    assert asks(made(".git/logs/refs/heads/a", REFLOG, 0o755))
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
    for left in (".git/index.lock", ".git/modules/x/index.lock", ".git/objects/ab/tmp_obj_x1"):
        assert [*judged(made(left)).left_out] == [left]
    assert not judged(made("poetry.lock")).left_out


def settings(before, after):
    return git_config_keys_to_ask(
        parse_git_config(before.encode()),
        parse_git_config(after.encode()),
        local=lambda _, path: path.startswith("/ws/") or not path.startswith("/"),
        is_new_branch=lambda name: name.startswith("new"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "[user]\nname = A B\nemail = a@b",
        '[remote "origin"]\nurl = /ws/lib\n[branch "a"]\nremote = origin\nmerge = refs/heads/a',
        '[branch "a"]\nremote = .\nmerge = refs/heads/a',
        '[remote "o"]\nurl = https://example.org/a.git\nfetch = +refs/heads/*:refs/remotes/o/*',
        '[remote "o"]\nurl = git@example.org:a/b.git',
        '[remote "o"]\nurl = /ws/lib',
        "[core]\nrepositoryformatversion = 0\nfilemode\nbare = false\nlogallrefupdates = true",
        '[submodule "x"]\nactive = true\nurl = /ws/lib\nupdate = rebase',
        "[fetch]\nprune = true",
        "[push]\ndefault = current",
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
        ("[alias]\nst = status", "alias.st"),
        ('[remote "o"]\nfetch = +refs/heads/*:refs/heads/*', "remote.o.fetch"),
        ('[remote "o"]\nfetch = +refs/heads/*:refs/remotes/origin/*', "remote.o.fetch"),
        ('[remote "o"]\nfetch = +refs/*:refs/*', "remote.o.fetch"),
        ('[remote "o"]\nfetch = +refs/heads/evil:refs/remotes/o/main', "remote.o.fetch"),
        ('[remote "o"]\npush = main:other', "remote.o.push"),
        ('[branch "a"]\npushRemote = o', "branch.a.pushremote"),
        ('[branch "a"]\nremote = https://example.org/x', "branch.a.remote"),
        ('[branch "a"]\nmerge = refs/tags/x', "branch.a.merge"),
        ("[remote]\npushDefault = o", "remote.pushdefault"),
        ("[push]\ndefault = matching", "push.default"),
        ("[push]\nfollowTags = true", "push.followtags"),
        ("[fetch]\npruneTags = true", "fetch.prunetags"),
        ("[submodule]\nrecurse = true", "submodule.recurse"),
        ("[rebase]\nupdateRefs = true", "rebase.updaterefs"),
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
    assert settings(text, "") == ([f"{key} (removed)"] if key not in PLACES else [])


PLACES = {
    "remote.o.url", "remote.o.fetch", "remote.o.push", "branch.a.remote", "branch.a.merge", "branch.a.pushremote",
    "submodule.x.update", "core.worktree", "push.default",
}  # fmt: skip
"""Keys that may go, with all of their section: nothing is sent, run or trusted for want of them."""


def test_another_place_for_a_known_remote_asks():
    known = '[remote "o"]\nurl = https://example.org/a.git'
    assert settings(known, known.replace("example.org", "example.com"))
    assert settings(known, known + "\npushurl = https://example.com/a.git")
    assert settings(known, "") == []


ORIGIN = '[remote "origin"]\nurl = /ws/lib\nfetch = +refs/heads/*:refs/remotes/origin/*\n'
TRACKED = ORIGIN + '[branch "main"]\nremote = origin\nmerge = refs/heads/main\n'
SECOND = '[remote "two"]\nurl = /ws/two\nfetch = +refs/heads/*:refs/remotes/two/*\n'


def test_a_new_branch_follows_any_known_remote_and_an_old_one_only_that_of_git_itself():
    known = ORIGIN + SECOND
    assert not settings(known, known + '[branch "new"]\nremote = two\nmerge = refs/heads/x')
    assert not settings(known, known + '[branch "old"]\nremote = origin\nmerge = refs/heads/x')
    assert settings(known, known + '[branch "old"]\nremote = two')
    assert settings(ORIGIN, ORIGIN + SECOND + '[branch "new"]\nremote = two')
    assert not settings(SECOND, SECOND + '[branch "old"]\nremote = two')


def test_what_a_branch_follows_stays_or_goes_with_all_that_is_said_of_the_branch():
    assert settings(TRACKED, TRACKED.replace("remote = origin", "remote = ."))
    assert settings(TRACKED, TRACKED.replace("merge = refs/heads/main", "merge = refs/heads/x"))
    assert settings(TRACKED, TRACKED.replace("remote = origin\n", ""))
    assert not settings(TRACKED, ORIGIN)


def test_a_second_remote_lands_unless_it_takes_the_place_of_the_default():
    assert not settings(ORIGIN, ORIGIN + SECOND)
    assert settings(SECOND, SECOND + ORIGIN)


def test_pruning_asks_where_it_would_delete_branches():
    mirror = '[remote "o"]\nurl = /ws/lib\nfetch = +refs/*:refs/*\n'
    assert settings(mirror, mirror + "[fetch]\nprune = true")
    assert settings(mirror, mirror + "prune = true")
    assert not settings(mirror, mirror + "[fetch]\nprune = false")
    assert not settings(ORIGIN, ORIGIN + "[fetch]\nprune = true")


def test_the_folder_of_files_is_said_by_the_settings_of_a_submodule_alone():
    assert not asks(made(".git/modules/x/config", b"[core]\n\tworktree = ../../../lib\n"))
    assert asks(made(".git/config", b"[core]\n\tworktree = ../other\n"))


def test_a_branch_among_the_packed_refs_is_not_new():
    tracked = (ORIGIN + SECOND + '[branch "b"]\nremote = two\nmerge = refs/heads/b\n').encode()
    changes = [
        Change(".git/config", node((ORIGIN + SECOND).encode()), node(tracked)),
        made(".git/refs/heads/b", OBJECT.encode()),
    ]
    assert not asks(*changes)
    assert asks(*changes, there={".git/packed-refs": f"{OBJECT} refs/heads/b\n".encode()})


def test_a_loose_object_that_is_not_what_its_name_says_asks():
    path, data = loose(b"reviewed")
    assert asks(made(path, loose(b"other")[1]))
    assert asks(made(path, data[:-5]))
    assert asks(made(path, data + b"x"))
    assert asks(made(path, b"no zlib at all"))
    assert asks(Change(path, node(data), node(loose(b"other")[1])))
    assert asks(Change(path, node(data), node(zlib.compress(zlib.decompress(data), 0))))
    assert not asks(Change(path, node(data, 0o444), node(data, 0o644)))
    assert not asks(Change(path, node(data), None))


def test_objects_that_inflate_to_more_than_is_checked_ask(monkeypatch):
    monkeypatch.setattr(git_changes, "MAX_INFLATED_BYTES", 1_000)
    assert not asks(made(*loose(b"x" * 600)))
    assert asks(made(*loose(b"x" * 600)), made(*loose(b"y" * 600)))


def test_a_pack_whose_index_says_something_else_asks_once():
    new = [made(f"{PACK}.pack", b"p"), made(f"{PACK}.idx", b"i"), made(f"{PACK}.rev", b"r")]
    assert not asks(*new, made(f"{PACK}.mtimes", b"m"), made(f"{PACK}.keep", b""))
    assert len(asks(*new, pack=False)) == 1
    assert asks(made(f"{PACK}.idx", b"i"), there=(f"{PACK}.pack",), pack=False)
    assert asks(Change(f"{PACK}.pack", node(b"p"), node(b"q")))
    assert asks(Change(f"{PACK}.idx", node(b"i"), node(b"j")))
    assert not asks(Change(f"{PACK}.pack", node(b"p", 0o444), node(b"p", 0o644)), pack=False)


@pytest.mark.parametrize(
    "name",
    [
        "objects/info/commit-graph",
        "objects/info/commit-graphs/commit-graph-chain",
        f"objects/info/commit-graphs/graph-{OBJECT}.graph",
        "objects/pack/multi-pack-index",
        f"objects/pack/multi-pack-index-{OBJECT}.bitmap",
        f"objects/pack/pack-{OBJECT}.bitmap",
    ],
)
def test_a_cache_of_git_is_never_taken_from_a_command(name):
    path = f".git/{name}"
    new = ruled(made(path, b"x"), made(".git/index", b"x"))
    assert [change.path for change in new.changes] == [".git/index"]
    assert f"`{path}`" in new.notes[0] and not new.question
    (rewritten,) = ruled(Change(path, node(b"x"), node(b"y"))).changes
    assert rewritten == Change(path, node(b"x"), None)
    (gone,) = ruled(Change(path, node(b"x"), None)).changes
    assert gone.after is None


def test_a_cache_in_a_folder_that_lands_as_one_is_left_out_and_all_else_of_it_lands():
    items = [
        FolderItem(".git", "folder", 0o755, "", 0),
        FolderItem(".git/index", "file", 0o644, "stat:1-1", 1),
        FolderItem(".git/objects", "folder", 0o755, "", 0),
        FolderItem(".git/objects/info", "folder", 0o755, "", 0),
        FolderItem(".git/objects/info/commit-graph", "file", 0o644, "stat:1-1", 1),
    ]
    found = ruled(Change("copy", None, folder_node(items, mode=0o755, ref="i/upper/copy")))
    assert "copy/.git/index" in [change.path for change in found.changes]
    assert "copy/.git/objects/info/commit-graph" not in [change.path for change in found.changes]


def test_what_was_recorded_comes_back_with_its_caches_and_objects_as_they_were():
    changes = ChangeSet.of(
        made(".git/objects/info/commit-graph", b"x"),
        made(loose(b"x")[0], b"not to be read again"),
        made(f"{PACK}.idx", b"x"),
    )
    back, question = judge_reversal(changes, view_of(pack=False))
    assert back.changes == changes.changes
    assert not question


def test_a_list_of_shallow_commits_lands_where_the_history_was_cut_before():
    ids = OBJECT.encode() + b"\n"
    assert not asks(Change(".git/shallow", node(ids), node(ids * 2)))
    assert not asks(made("lib/.git", mode=0o755, kind="folder"), made("lib/.git/shallow", ids))
    assert asks(Change(".git/shallow", node(ids), node(b"x")))


def test_packed_refs_may_keep_the_replacements_that_were_there():
    line = f"{OBJECT} refs/replace/{OBJECT}\n".encode()
    more = f"{OBJECT} refs/heads/a\n".encode()
    assert not asks(Change(".git/packed-refs", node(line), node(more + line)))
    assert asks(Change(".git/packed-refs", node(line), node(more)))


def test_a_workspace_that_is_a_bare_repository_is_judged_like_any_other():
    path, data = loose(b"x")
    there = ("HEAD", "objects", "refs")
    inside = path.removeprefix(".git/")
    assert not asks(made(inside, data), there=there)
    assert asks(made(inside, b"x"), there=there)
    assert asks(made("hooks/update", b"x"), there=there)
    assert not judged(made("objects/ab/cd", b"x")).judged


names = st.one_of(
    st.sampled_from(sorted(RESERVED_NAMES)),
    st.sampled_from(["HEAD", "x", "y.z", "Refs", "pack", "heads", "ab", ".git", "git~1", "a b", "config"]),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8),
)


EVIL = {
    "config": b"[core]\n\tfsmonitor = evil\n",
    "config.worktree": b"[core]\n\thooksPath = evil\n",
    "commondir": b"../../../evil\n",
    "alternates": b"/home/x/objects\n",
    "attributes": b"* filter=evil\n",
    "git-rebase-todo": b"exec evil\n",
}


@given(
    above=st.lists(names.filter(lambda name: name not in {".", ".."}), max_size=6),
    start=st.sampled_from(
        ["", "modules", "worktrees", "modules/x", "worktrees/x/modules", "objects", "rebase-merge"]
    ),
    file=st.sampled_from(sorted(EVIL)),
)
def test_what_git_would_run_or_follow_never_lands_wherever_it_is_below_a_git_folder(above, start, file):
    path = "/".join(filter(None, [".git", start, *above, file]))
    assert asks(made(path, EVIL[file]))


@given(
    above=st.lists(names.filter(lambda name: name not in {".", ".."}), max_size=6),
    start=st.sampled_from(["", "modules", "modules/x", "worktrees/x/modules"]),
    hook=st.sampled_from(["post-checkout", "pre-commit", "fsmonitor-watchman"]),
)
def test_a_program_never_lands_wherever_it_is_below_a_git_folder(above, start, hook):
    path = "/".join(filter(None, [".git", start, *above, hook]))
    assert asks(made(path, b"#!/bin/sh\n", 0o755))


@given(name=st.lists(names.filter(lambda name: name not in {".", ".."}), min_size=1, max_size=5))
def test_a_submodule_with_a_name_of_gits_own_in_its_name_asks(name):
    folder = ".git/modules/" + "/".join(name)
    head = made(f"{folder}/HEAD", b"ref: refs/heads/main\n")
    settings = made(f"{folder}/config", b"[core]\n\tbare = false\n")
    # A linked worktree of a submodule is where git itself puts it.
    *submodule, above, _ = ["", "", *name]
    names = submodule if above == "worktrees" and any(submodule) else name
    if not RESERVED_NAMES.isdisjoint(part.casefold() for part in names):
        assert asks(head, settings)


@given(
    name=st.from_regex(r"[0-9a-f]{40}|[0-9a-f]{64}", fullmatch=True),
    data=st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(zlib.compress)),
)
def test_bytes_that_do_not_hash_to_the_name_of_an_object_never_land(name, data):
    assert asks(made(f".git/objects/{name[:2]}/{name[2:]}", data))


@given(content=st.binary(max_size=3_000), algorithm=st.sampled_from(["sha1", "sha256"]))
def test_an_object_that_hashes_to_its_name_lands(content, algorithm):
    assert not asks(made(*loose(content, algorithm=algorithm)))


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
