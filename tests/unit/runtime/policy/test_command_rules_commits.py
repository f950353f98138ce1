"""Commit rules: what a command leaves behind, judged before it lands."""

import hashlib
import zlib
from dataclasses import replace

import pytest

from handtools.core.changes import BackupRef, Change, ChangeSet, FolderItem, Node, folder_node
from handtools.core.files import GitNamedPath
from handtools.runtime.policy import Policy
from handtools.runtime.policy.change_rules import (
    apply_rules_to_changes,
    judge_reversal,
    link_leaves_workspace,
    reason_to_ask,
)
from handtools.runtime.policy.git_changes import WorkspaceView
from handtools.runtime.policy.protected_paths import PROTECTED_PATHS
from handtools.runtime.policy.rules import Rule


def made(path, data=b"x", kind="file"):
    return Change(
        path,
        None,
        Node(kind, data, None if kind == "link" else 0o644, BackupRef(f"i/upper/{path}", "m", len(data))),
    )


def removed(path, kind="file"):
    held = BackupRef(f"i/before/{path}", "m", 1) if kind == "file" else None
    return Change(path, Node(kind, b"", 0o755, held), None)


def folder(path, *names, target=None):
    leaves = [
        FolderItem(name, "link" if target else "file", 0 if target else 0o644, target or "m", 0)
        for name in names
    ]
    return Change(path, None, folder_node(leaves, mode=0o755, ref=f"i/upper/{path}"))


def changed(path, data=b"x"):
    before, after = (
        Node("file", each, 0o644, BackupRef(f"i/{place}/{path}", place, len(each)))
        for each, place in ((b"old", "before"), (data, "upper"))
    )
    return Change(path, before, after)


def view_of(there, within, named=()):
    return WorkspaceView(
        there=there,
        within=within,
        pieces_of=lambda _, node: [node.data] if node is not None and node.known else [],
        verifies_pack=lambda _stem, _nodes: False,
        named_by_git=lambda _paths: named,
    )


def judged(*changes, there=(), root="/ws", tracked=()):
    policy = Policy()
    view = view_of(
        lambda path: path in there,
        lambda target: target.startswith(f"{root}/") or not target.startswith("/"),
    )
    return apply_rules_to_changes(
        changes,
        forbidding=lambda path, link: policy.forbidding(path, "bash", link=link),
        view=view,
        open_private=lambda path: path in tracked,
    )


def test_ordinary_changes_pass_without_a_word():
    delta = (made("a.py"), removed("b.py"), made("l", b"a.py", "link"))
    ruled = judged(*delta)
    assert (ruled.changes, ruled.notes, ruled.question) == (delta, (), "")


@pytest.mark.parametrize("path", [".env", "deep/.env.local", "id_rsa", ".ssh/authorized_keys"])
def test_what_is_off_limits_is_left_out_and_named_with_its_rule(path):
    ruled = judged(made("a.py"), changed(path), there={path, ".ssh"})
    assert [change.path for change in ruled.changes] == ["a.py"]
    assert f"`{path}`" in ruled.notes[0] and "`private`" in ruled.notes[0]


@pytest.mark.parametrize(
    "path", [".env", "deep/.env.local", "id_rsa", ".ssh/authorized_keys", "tests/cert.pem"]
)
def test_what_a_command_makes_where_nothing_was_lands_and_passes_the_gate(path):
    ruled = judged(made("a.py"), made(path))
    assert {change.path for change in ruled.changes} == {"a.py", path}
    landing = ChangeSet(ruled.changes, exempt=ruled.exempt)
    assert Policy().decide(landing, "bash").verdict == "allow"
    assert Policy().decide(ChangeSet(ruled.changes), "bash").verdict == "deny"


def test_nothing_new_lands_in_a_private_folder_that_is_there():
    assert not judged(made(".ssh/authorized_keys"), there={".ssh"}).changes


def test_what_git_tracks_may_be_changed_and_what_it_does_not_may_not():
    assert not judged(changed("a.pem"), there={"a.pem"}).changes
    assert judged(changed("a.pem"), there={"a.pem"}, tracked={"a.pem"}).changes


def test_a_rule_of_the_person_is_not_loosened_by_what_git_tracks():
    own = Policy(excluded=("secrets",))
    ruled = apply_rules_to_changes(
        (made("secrets/.env"),),
        forbidding=lambda path, link: own.forbidding(path, "bash", link=link),
        view=view_of(lambda _: False, lambda _: True),
        open_private=lambda _: True,
    )
    assert not ruled.changes
    assert "`excluded`" in ruled.notes[0]


@pytest.mark.parametrize("path", ["node_modules/a/key.pem", ".venv/lib/site-packages/certifi/cacert.pem"])
def test_vendored_files_are_no_secrets(path):
    assert judged(changed(path), there={path}).changes


def test_a_folder_with_something_off_limits_in_it_lands_without_it():
    ruled = judged(folder("pkg", "a.py", ".env", "sub.txt"), there={"pkg/.env"})
    assert {change.path for change in ruled.changes} == {"pkg", "pkg/a.py", "pkg/sub.txt"}


def test_a_folder_is_not_removed_while_something_off_limits_stays_in_it():
    ruled = judged(removed("d/.env"), removed("d/a"), removed("d", "folder"), there={"d/.env"})
    assert [change.path for change in ruled.changes] == ["d/a"]


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        ("l", "a.py", False),
        ("d/l", "../a.py", False),
        ("l", "../a.py", True),
        ("d/l", "../../a.py", True),
        ("d/l", "x/../../../a.py", True),
        ("l", "/etc/passwd", True),
        ("l", "/home/someone/.ssh", True),
        ("venv/bin/python", "/usr/bin/python3", False),
        ("l", "/ws/a.py", False),
        ("l", "/ws-other/a.py", True),
        ("l", "/usr/../home/someone", True),
        ("l", "/usr/lib/../../home/someone", True),
        ("l", "/../usr/lib", True),
        ("l", "/dev/null", False),
        ("l", "/dev/nullx", True),
        ("l", "/dev/null/../../etc", True),
        ("l", "U/../home/someone", True),
        ("d/l", "../U/../home/someone", True),
        ("d/l", "./../a.py", False),
        ("d/l", ".././../a.py", True),
    ],
)
def test_links_that_leave_the_workspace_are_known(path, target, out):
    assert link_leaves_workspace(path, target, lambda place: place.startswith("/ws/")) == out


def test_a_link_that_leaves_is_a_question():
    assert "`l`" in judged(made("l", b"/etc/passwd", "link")).question


def test_a_link_that_leaves_is_a_question_also_inside_a_folder_that_lands_as_one():
    assert "`pkg/l`" in judged(folder("pkg", "l", target="/root/.ssh")).question


@pytest.mark.parametrize(
    "changes",
    [
        (made("lib/HEAD"), made("lib/config")),
        (folder("lib", "HEAD", "config"),),
        (made("lib/HEAD"), made("lib/objects/x"), made("lib/refs/y")),
        (made("lib/HEAD"), made("lib/commondir"), made("elsewhere/config")),
        (made("lib/HEAD"), made("lib/config", b"other", "link")),
        (made("lib/HEAD", b"other", "link"), made("lib/commondir")),
        (made("lib/HEAD"), made("lib/refs/heads/main"), made("lib/hooks/post-checkout")),
        (folder("lib", "HEAD", "objects", "objects/x", "refs", "hooks", "hooks/update"),),
    ],
)
def test_what_git_takes_for_a_repository_is_a_question_in_any_shape(changes):
    assert "`lib" in judged(*changes).question


@pytest.mark.parametrize(
    "path", ["r/config", "r/hooks/update", "r/commondir", "r/config.worktree", "r/hooks"]
)
def test_a_repository_that_gets_programs_to_run_is_a_question(path):
    assert f"`{path}`" in judged(made(path), there={"r/HEAD", "r/objects", "r/refs"}).question


OBJECT = b"blob 1\0x"
OBJECT_NAME = hashlib.sha1(OBJECT, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (f"r/objects/{OBJECT_NAME[:2]}/{OBJECT_NAME[2:]}", zlib.compress(OBJECT)),
        ("r/refs/heads/main", b"ab" * 20),
        ("r/HEAD", b"ab" * 20),
        ("r/packed-refs", b"ab" * 20),
    ],
)
def test_what_is_pushed_to_a_repository_is_none(path, data):
    assert not judged(made(path, data), there={"r/HEAD", "r/objects", "r/refs"}).question


def test_a_repository_in_the_root_is_a_question():
    assert "`.`" in judged(made("HEAD"), made("commondir")).question


def test_half_a_repository_completed_is_a_question():
    assert judged(made("lib/config"), there={"lib/HEAD"}).question
    assert not judged(made("lib/config")).question


@pytest.mark.parametrize(
    "name",
    [".vscode", ".claude", ".husky", ".idea", ".github", ".devcontainer", ".config", "sub/.git", ".GitHub"],
)
def test_a_link_of_a_protected_name_is_asked_about(name):
    decision = Policy().decide(ChangeSet((made(name, b"elsewhere", "link"),)), "bash")
    assert (decision.verdict, decision.target) == ("ask", name)


@pytest.mark.parametrize("name", ["src", ".github-docs", "sub/.github", "config"])
def test_other_links_are_not(name):
    assert Policy().decide(ChangeSet((made(name, b"elsewhere", "link"),)), "bash").verdict == "allow"


def test_a_folder_on_the_way_to_a_protected_one_is_not():
    assert Policy().decide(ChangeSet((Change(".github", None, Node("folder")),)), "bash").verdict == "allow"


@pytest.mark.parametrize("path", ["secrets", "secrets/a", "sub/secrets/deep/a"])
def test_a_slash_at_the_end_of_a_rule_leaves_nothing_out(path):
    policy = Policy().with_rules([Rule("own", "deny", "mine", paths=("secrets/",))])
    assert policy.hides(path)
    assert Policy(excluded=("secrets/",)).hides(path)


@pytest.mark.parametrize("glob", PROTECTED_PATHS)
def test_every_protected_row_is_asked_about_as_file_folder_and_link(glob):
    path = glob.replace("y*ml", "yaml").replace("*", "x")
    for kind in ("file", "link"):
        assert Policy().decide(ChangeSet((made(path, kind=kind),)), "bash").verdict == "ask"
    assert Policy().decide(ChangeSet((made(f"{path}/inside"),)), "bash").verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "node_modules/a/.travis.yml", "web/node_modules/@b/c/.github/workflows/ci.yml", "node_modules/d/.husky/x",
        ".venv/lib/python3.12/site-packages/e/.vscode/tasks.json", "vendor/f/.circleci/config.yml",
        "target/package/g-0.1.0/.cargo/config.toml",
    ],
)  # fmt: skip
def test_files_that_a_dependency_brings_along_need_no_approval(path):
    for change in (made(path), removed(path)):
        assert Policy().decide(ChangeSet((change,)), "bash").verdict == "allow"


@pytest.mark.parametrize("path", ["node_modules/a/.git/config", "vendor/b/.hg/hgrc", "target/.git/hooks/x"])
def test_a_repository_in_a_dependency_stays_protected(path):
    assert Policy().decide(ChangeSet((made(path),)), "write").verdict == "ask"


INTERPRETER = b"/home/me/.pyenv/versions/3.11.7/bin/python3.11"


@pytest.mark.parametrize("name", ["python", "python3", "python3.11"])
@pytest.mark.parametrize("venv", ["", ".venv/", "tools/env/"])
def test_the_interpreter_of_a_virtual_environment_needs_no_approval(venv, name):
    link = made(f"{venv}bin/{name}", INTERPRETER, "link")
    assert not judged(made(f"{venv}pyvenv.cfg"), link).question
    assert not judged(link, there={f"{venv}pyvenv.cfg"}).question
    assert judged(link).question


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (".venv/bin/python", b"/home/me/.ssh/id_rsa"), (".venv/bin/activate", INTERPRETER),
        (".venv/lib/python", INTERPRETER), (".venv/bin/python", b"/home/me/python-notes"),
    ],
)  # fmt: skip
def test_other_links_out_of_a_virtual_environment_are_asked_about(path, target):
    assert path in judged(made(".venv/pyvenv.cfg"), made(path, target, "link")).question


def test_the_question_says_where_a_link_leads():
    links = (made("deps", b"/somewhere/else", "link"),)
    asked = reason_to_ask(links, view_of(lambda _: False, lambda _: False))
    assert "`deps` -> `/somewhere/else`" in asked


def test_of_very_many_paths_that_are_held_back_the_first_fifty_are_named():
    secrets = [f"{number:02}.pem" for number in range(53)]
    [note] = judged(*map(changed, secrets), there=set(secrets)).notes
    assert "`00.pem`" in note and "`49.pem` and 3 more" in note


@pytest.mark.parametrize(("count", "end"), [(5, "`4` -> `/x`)"), (6, "`4` -> `/x` and 1 more)")])
def test_of_many_links_that_leave_the_first_five_are_named(count, end):
    links = [made(str(number), b"/x", "link") for number in range(count)]
    asked = reason_to_ask(links, view_of(lambda _: False, lambda _: False))
    assert asked.endswith(end)


@pytest.mark.parametrize(("kind", "lands"), [("link", False), ("folder", True)])
def test_a_link_that_a_command_puts_above_what_may_not_be_changed_is_left_out(kind, lands):
    rule = Rule("kept", "deny", "mine", effects=frozenset({"change"}), paths=("conf/kept.toml",))
    own = Policy(rules=(rule,))
    ruled = apply_rules_to_changes(
        (Change("conf", None, Node(kind, b"other" if kind == "link" else b"")),),
        forbidding=lambda path, link: own.forbidding(path, "bash", link=link),
        view=view_of(lambda _: False, lambda _: True),
        open_private=lambda _: False,
    )
    assert bool(ruled.changes) == lands


@pytest.mark.parametrize(("change", "asks"), [(removed, False), (made, True)])
def test_a_hook_that_a_command_made_may_go_again_and_one_that_would_come_back_asks(change, asks):
    view = view_of(lambda _: True, lambda _: True)
    back, question = judge_reversal(ChangeSet((change(".git/hooks/pre-commit"),)), view)
    assert Policy().decide(back, "undo").verdict == "allow"
    assert bool(question) == asks


def test_a_private_file_that_a_command_made_may_be_taken_back():
    view = view_of(lambda _: True, lambda _: True)
    back, question = judge_reversal(ChangeSet((removed(".env"),)), view)
    assert (Policy().decide(back, "undo").verdict, question) == ("allow", "")


def test_a_file_does_not_take_the_place_of_a_folder_while_something_off_limits_stays_in_it():
    before = Node("folder", b"", 0o755)
    instead = Change("d", before, Node("file", b"x", 0o644, BackupRef("i/upper/d", "m", 1)))
    ruled = judged(removed("d/.env"), removed("d/a"), instead, there={"d/.env"})
    assert [change.path for change in ruled.changes] == ["d/a"]


@pytest.mark.parametrize(
    ("path", "there", "asks"),
    [
        ("r/objects/x", {"r/HEAD", "r/objects"}, False),
        ("r/HEAD", {"r/HEAD", "r/refs"}, False),
        ("r/refs/x", {"r/HEAD"}, True),
        ("r/HEAD", {"r/objects"}, True),
        ("r/HEAD", {"other/objects"}, False),
        ("r/refs/x", {"HEAD"}, False),
        ("refs/x", {"HEAD"}, True),
        ("refs/x", {"HEAD", "objects"}, False),
    ],
)
def test_a_folder_that_becomes_a_repository_is_a_question_and_one_that_is_one_is_none(path, there, asks):
    asked = reason_to_ask([made(path)], view_of(lambda name: name in there, lambda _name: True))
    assert bool(asked) == asks


TABLE = b'[tool.handtools]\nexcluded = ["plans"]\n'
PROJECT = b'[project]\nname = "x"\n'
NOTHING_THERE = view_of(lambda _: False, lambda _: False)
READ = replace(NOTHING_THERE, pieces_of=lambda _path, node: [node.data])


def file(data, mode=0o644):
    return None if data is None else Node("file", data, mode)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, TABLE),
        (TABLE, None),
        (PROJECT, PROJECT + TABLE),
        (PROJECT + TABLE, PROJECT),
        (TABLE, TABLE + b'block = ["bash"]\n'),
        (PROJECT, PROJECT + b'["tool"."handtools"]\nblock = ["bash"]\n'),
        (PROJECT, PROJECT + b'[tool]\nhandtools = {block = ["bash"]}\n'),
        (PROJECT, b'tool.handtools.block = ["bash"]\n'),
        (PROJECT, PROJECT + b'[tool."hand\\u0074ools"]\nblock = ["bash"]\n'),
        (PROJECT, PROJECT + b'[[tool.handtools.rule]]\nname = "x"\nverdict = "deny"\n'),
        (TABLE, TABLE + b"[broken"),
        (PROJECT, b"[broken\n" + TABLE),
        (TABLE, TABLE + b"#" * (1 << 20)),
        (TABLE, b".".join([b"a"] * 99) + b" = 1\n" + TABLE),
        (b"[tool.handtools.notify]\nbell = true\n", b"[tool.handtools.notify]\nbell = 1\n"),
    ],
)
@pytest.mark.parametrize("path", ["pyproject.toml", "api/deep/pyproject.toml", "PyProject.TOML"])
def test_a_change_of_our_table_in_a_pyproject_asks(path, before, after):
    asked = reason_to_ask([Change(path, file(before), file(after))], READ)
    assert f"handtools settings in the table `[tool.handtools]` (`{path}`)" in asked


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, PROJECT),
        (PROJECT, None),
        (PROJECT, PROJECT + b'dependencies = ["handtools"]\n'),
        (PROJECT + TABLE, TABLE + b"\n# moved up\n" + PROJECT),
        (TABLE, b'tool = {handtools = {"excluded" = ["plans"]}}\n'),
        (PROJECT, PROJECT + b"[broken"),
        (PROJECT + b"[broken", PROJECT),
        (PROJECT, PROJECT + b'dependencies = ["handtools==1", "handtools"\n[broken'),
        (TABLE + b"[broken", TABLE + b"[broken again"),
        (PROJECT + b"[tool.ruff]\n", PROJECT + b"[tool.ruff]\nline-length = 115\n"),
        (PROJECT, b"\xff" * 100),
    ],
)
def test_another_change_of_a_pyproject_does_not_ask(before, after):
    assert not reason_to_ask([Change("pyproject.toml", file(before), file(after))], READ)


def test_our_table_is_altered_by_what_keeps_it_from_being_read():
    before = file(TABLE)
    link, folder = Node("link", b"other.toml"), Node("folder", mode=0o755)
    for after in (link, folder, file(TABLE, 0o000)):
        assert "[tool.handtools]" in reason_to_ask([Change("pyproject.toml", before, after)], READ)
        assert not reason_to_ask([Change("pyproject.toml", file(PROJECT), after)], READ)
    unknown = replace(READ, pieces_of=lambda _path, _node: [])
    assert "[tool.handtools]" in reason_to_ask([Change("pyproject.toml", before, file(PROJECT))], unknown)


def test_our_table_is_found_in_a_folder_that_moves_as_one():
    moved = folder("lib", "deep/pyproject.toml", "a")
    having = replace(NOTHING_THERE, pieces_of=lambda _path, _node: [TABLE])
    assert "`lib/deep/pyproject.toml`" in reason_to_ask([moved], having)
    empty = replace(having, pieces_of=lambda _path, _node: [])
    assert not reason_to_ask([moved], empty)


HOOKS = GitNamedPath("tools/hooks", "core.hookspath", is_whole_folder=True)
SCRIPT = GitNamedPath("run.sh", "alias.x", is_whole_folder=False)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (made("tools/hooks/pre-commit"), "tools/hooks/pre-commit"),
        (made("Tools/Hooks/pre-commit"), "Tools/Hooks/pre-commit"),
        (removed("tools/hooks/pre-commit"), "tools/hooks/pre-commit"),
        (made("tools/hooks", b"elsewhere", "link"), "tools/hooks"),
        (made("tools", b"elsewhere", "link"), "tools"),
        (Change("tools", Node("folder"), Node("file", b"x")), "tools"),
        (folder("tools", "hooks/pre-commit", "other"), "tools/hooks/pre-commit"),
        (changed("run.sh"), "run.sh"),
        (changed("tools/hooks-not"), None),
        (made("run.sh/x"), None),
        (Change("tools", None, Node("folder")), None),
        (Change("tools", Node("folder", mode=0o755), Node("folder", mode=0o700)), None),
        (folder("tools", "other"), None),
    ],
)
def test_what_a_setting_of_git_names_is_asked_about_with_the_setting(change, named):
    view = view_of(lambda _: False, lambda _: True, (HOOKS, SCRIPT))
    asked = reason_to_ask([change, made("other.py")], view)
    assert (f"`{named}`, by `" in asked) if named else not asked
    back, question = judge_reversal(ChangeSet((change,)), view)
    assert back.changes == (change,)
    assert bool(question) == bool(named and change.after is not None)


def test_what_a_protected_path_asks_for_is_not_asked_twice():
    husky = GitNamedPath(".husky", "core.hookspath", is_whole_folder=True)
    view = view_of(lambda _: False, lambda _: True, (husky,))
    assert not reason_to_ask([made(".husky/pre-commit")], view)
    assert Policy().decide(ChangeSet((made(".husky/pre-commit"),)), "write").verdict == "ask"


def test_a_file_tool_that_has_a_bare_repository_show_other_content_asks():
    there = {"r/HEAD", "r/objects", "r/refs"}
    view = view_of(there.__contains__, lambda _: True)
    assert reason_to_ask([made(f"r/refs/replace/{'a' * 40}", b"a" * 40)], view)
    assert not reason_to_ask([made("r/refs/heads/main", b"a" * 40)], view)
