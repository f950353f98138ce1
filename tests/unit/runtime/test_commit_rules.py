"""Commit rules: what a command leaves behind, judged before it lands."""

import pytest

from handtools.core.changes import Change, Held, Node
from handtools.core.trees import Leaf, tree
from handtools.runtime.commit_rules import leads_out, rule
from handtools.runtime.policy import Policy


def made(path, data=b"x", kind="file"):
    return Change(
        path, None, Node(kind, data, None if kind == "link" else 0o644, Held(f"i/upper/{path}", "m", 1))
    )


def removed(path, kind="file"):
    held = Held(f"i/before/{path}", "m", 1) if kind == "file" else None
    return Change(path, Node(kind, b"", 0o755, held), None)


def folder(path, *names, target=None):
    leaves = [
        Leaf(name, "link" if target else "file", 0 if target else 0o644, target or "m", 0) for name in names
    ]
    return Change(path, None, tree(leaves, mode=0o755, ref=f"i/upper/{path}"))


def judged(*changes, there=(), root="/ws"):
    policy = Policy()
    return rule(
        changes,
        forbidden=lambda path: policy.forbids(path, "bash"),
        there=lambda path: path in there,
        within=lambda target: target.startswith(f"{root}/"),
    )


def test_ordinary_changes_pass_without_a_word():
    delta = (made("a.py"), removed("b.py"), made("l", b"a.py", "link"))
    ruled = judged(*delta)
    assert (ruled.changes, ruled.notes, ruled.question) == (delta, (), "")


@pytest.mark.parametrize("path", [".env", "deep/.env.local", "id_rsa", ".ssh/authorized_keys"])
def test_what_is_off_limits_is_left_out_and_named(path):
    ruled = judged(made("a.py"), made(path))
    assert [change.path for change in ruled.changes] == ["a.py"]
    assert path in ruled.notes[0]


def test_a_folder_with_something_off_limits_in_it_lands_without_it():
    ruled = judged(folder("pkg", "a.py", ".env", "sub.txt"))
    assert {change.path for change in ruled.changes} == {"pkg", "pkg/a.py", "pkg/sub.txt"}


def test_a_folder_is_not_removed_while_something_off_limits_stays_in_it():
    ruled = judged(removed("d/.env"), removed("d/a"), removed("d", "folder"))
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
    ],
)
def test_links_that_leave_the_workspace_are_known(path, target, out):
    assert leads_out(path, target, lambda place: place.startswith("/ws/")) == out


def test_a_link_that_leaves_is_a_question():
    assert "`l`" in judged(made("l", b"/etc/passwd", "link")).question


def test_a_link_that_leaves_is_a_question_also_inside_a_folder_that_lands_as_one():
    assert "`pkg/l`" in judged(folder("pkg", "l", target="/root/.ssh")).question


@pytest.mark.parametrize(
    "changes",
    [
        (made("lib/HEAD"), made("lib/config")),
        (folder("lib", "HEAD", "config"),),
    ],
)
def test_what_git_takes_for_a_repository_is_a_question(changes):
    assert "`lib`" in judged(*changes).question


def test_half_a_repository_completed_is_a_question():
    assert judged(made("lib/config"), there={"lib/HEAD"}).question
    assert not judged(made("lib/config")).question
