"""Cases from real sessions are counted by what is known of their intent."""

import json

import pytest

from bench.editbench.cases import Case
from bench.editbench.matchers import Answer, ours
from bench.editbench.sessions import Sessions, intent

BODY = b"one\ntwo\nthree\n"


def case(family: str, old: str = "two", new: str = "2", accept: tuple[bytes, ...] = ()) -> Case:
    kind = "apply" if accept else "refuse"
    return Case(
        id="1",
        family=family,
        lang="",
        content=BODY,
        old=old,
        new=new,
        accept=accept,
        kind=kind,
        retry="two",
    )


@pytest.mark.parametrize(
    ("family", "known"),
    [
        ("tool-ok-exact", "good"),
        ("tool-ok-doubled", "resent"),
        ("tool-fail-already-applied", "resent"),
        ("tool-fail-invented", "invented"),
        ("tool-fail-same-new-retried", "retried"),
        ("tool-fail-other-new-retried", "retried otherwise"),
        ("tool-fail-unretried-near", "unknown"),
        ("patch-ok", "good"),
        ("dedented", None),
    ],
)
def test_the_family_tells_the_intent(family, known):
    assert intent(case(family)) == known


def test_white_space_aside_is_the_same_and_another_text_is_wrong():
    good = case("tool-ok-exact", accept=(b"one\n2\nthree\n",))
    sessions = Sessions(goals=True)
    assert sessions.take(good, Answer(b"one\n2\nthree\n"), "good") == "same"
    assert sessions.take(good, Answer(b"one\n 2\nthree"), "good") == "blanks"
    assert sessions.take(good, Answer(b"one\n3\nthree\n"), "good") == "other"
    missed = {figure.name for figure in sessions.figures() if not figure.ok}
    assert missed == {"good edits, of 3: the same", "good edits, of 3: wrong"}


def test_a_second_application_misses_its_goal_and_an_unchanged_text_does_not():
    sessions = Sessions(goals=True)
    sessions.take(case("tool-ok-doubled"), Answer(BODY), "resent")
    assert all(figure.ok for figure in sessions.figures())
    sessions.take(case("tool-ok-doubled"), Answer(BODY + b"two\n"), "resent")
    assert not all(figure.ok for figure in sessions.figures())


def test_a_refusal_names_the_place_by_any_line_of_it():
    sessions = Sessions(goals=True)
    tried = case("tool-fail-same-new-retried", accept=(b"one\n2\nthree\n",))
    sessions.take(tried, Answer(None, "Nearest: lines 1-2."), "retried")
    sessions.take(tried, Answer(None, "Nearest: lines 3-3."), "retried")
    assert sessions.places == {True: 1, False: 1}


def test_a_logged_patch_is_a_case():
    row = {"call": "c", "file": "a.txt", "content": "one\n", "after": "two\n", "ok": True}
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"

    logged = Case.from_json(json.dumps({**row, "patch": patch}))
    assert intent(logged) == "good"
    assert ours(logged).text == b"two\n"
