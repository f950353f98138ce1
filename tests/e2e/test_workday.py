"""The frame of the working day: judges can fail, undo is compared, and the list of failures can only shrink.

The stories themselves are `python -m bench workday`.
"""

import argparse
import os

import pytest

from bench import workday
from bench.workday.needs import HOW, lacking
from bench.workday.peers import BARE
from bench.workday.performers import peer_performer
from bench.workday.place import differences, snapshot
from bench.workday.story import BadStory, all_stories, load_story
from bench.workday.trial import try_story

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="machine: no process handles")
STORIES, SAFETY = all_stories("stories"), all_stories("safety")
SOME = slice(None, None, 3)
"""Of the stories, in CI; `python -m bench workday --idle` and `--peers` have them all."""


def named(story):
    return story.name


def with_its_parts(story):
    for need in filter(lacking, story.needs):
        pytest.skip(f"machine: no {need}")
    return story


@pytest.fixture
def folder(tmp_path):
    def write(text):
        (tmp_path / "story.toml").write_text(text)
        return load_story(tmp_path)

    return write


@pytest.mark.parametrize("story", STORIES[SOME], ids=named)
def test_a_story_fails_when_nothing_is_done(story):
    outcome = try_story(with_its_parts(story), idle=True)
    assert outcome.why.startswith("outside, ")


@pytest.mark.parametrize("story", SAFETY[SOME], ids=named)
def test_what_must_not_be_possible_happens_without_a_sandbox(story, tmp_path):
    outcome = try_story(with_its_parts(story), peer_performer(BARE, tmp_path), undo=False)
    assert outcome.why.startswith("what must not be: ")


def test_every_story_says_in_a_sentence_what_a_developer_would_be_doing():
    for story in [*STORIES, *SAFETY]:
        assert story.does.endswith("."), story.name
        assert "\n" not in story.does, story.name
        assert story.steps, story.name


def test_what_fails_today_is_the_name_of_a_story():
    known = {"stories": STORIES, "undo": STORIES, "safety": SAFETY, workday.ORDINARY_USER: STORIES}
    for part, listed in workday.not_yet().items():
        assert set(listed) <= {story.name for story in known[part]}


def test_a_story_that_is_told_passes_and_is_taken_back(folder):
    story = folder(
        'does = "Write."\nfamily = "x"\ncheck = "test $(cat a.txt) = two"\nprepare = "echo one > a.txt"\n'
        '[[step]]\ntool = "edit"\npath = "a.txt"\nold_string = "one"\nnew_string = "two"\n'
    )
    outcome = try_story(story)
    assert (outcome.why, outcome.undone, outcome.undo) == ("", True, "")


def test_the_line_of_a_judge_that_failed_is_told_with_the_last_answer(folder):
    story = folder(
        'does = "Fail."\nfamily = "x"\ncheck = "test -e made"\n[[step]]\nbash = "echo I am sorry; false"\n'
    )
    outcome = try_story(story)
    assert "line 3: test -e made" in outcome.why
    assert "I am sorry" in outcome.why


def test_what_an_undo_leaves_is_told(folder):
    story = folder(
        'does = "Write."\nfamily = "x"\ncheck = "test -e a.txt"\n[[step]]\nbash = "touch a.txt"\n'
        '[[step]]\noutside = "echo mine > b.txt"\n'
    )
    assert try_story(story).undo.startswith("b.txt is left")


def test_a_question_is_answered_as_the_story_says_and_counted(folder):
    text = (
        'does = "Reach."\nfamily = "x"\ncheck = "test -e a.txt"\n%s\n'
        '[[step]]\nbash = "touch a.txt"\nhosts = ["example.org"]\n'
    )
    agreed = try_story(folder(text % 'answers = [{ about = "hosts", allow = true }]'))
    assert (agreed.why, len(agreed.questions)) == ("", 1)
    refused = try_story(folder(text % ""))
    assert refused.why
    assert len(refused.questions) == 1


def test_a_story_that_does_not_end_is_ended(folder):
    story = folder(
        'does = "Wait."\nfamily = "x"\ncheck = "true"\nseconds = 3\n[[step]]\nbash = "exec sleep 60"\n'
    )
    assert try_story(story).why == "more than 3 s"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('does = "x."', "lacks family, check"),
        ('does = "x."\nfamily = "x"\ncheck = "true"\nchek = ""', "no such key: chek"),
        ('does = "x."\nfamily = "x"\ncheck = "true"\n[[step]]\nsays = "x"', "one of bash, tool"),
        ('does = "x."\nfamily = "x"\ncheck = """\n! grep -q x a.txt\ntrue\n"""', "bash goes on"),
        ("does =", "Invalid value"),
    ],
)
def test_a_story_with_a_mistake_is_refused(folder, text, said):
    with pytest.raises(BadStory, match=said):
        folder(text)


def test_a_difference_of_content_mode_or_link_is_seen(tmp_path):
    for name in ("content", "mode", "gone"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("content")
    before = snapshot(tmp_path)
    (tmp_path / "content").write_text("y")
    (tmp_path / "mode").chmod(0o700)
    (tmp_path / "gone").unlink()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("mode")
    (tmp_path / "left").mkdir()
    told = differences(before, snapshot(tmp_path))
    assert [line.split()[0] for line in told] == ["content", "gone", "left", "link", "mode"]
    assert differences(before, snapshot(tmp_path), ["*"]) == []


@pytest.mark.parametrize(
    ("listed", "values"),
    [({}, (1, 0)), ({"stories": {"bad": "today"}}, (0, 0)), ({"stories": {"good": "once"}}, (1, 1))],
)
def test_the_gate_closes_for_new_failures_and_for_entries_that_pass(monkeypatch, listed, values):
    monkeypatch.setattr(workday, "not_yet", lambda: listed)
    options = argparse.Namespace(quick=False)
    figures = list(
        workday._held_against_not_yet({"stories": {"bad": "why"}}, {"stories": {"good", "bad"}}, options)
    )
    assert tuple(figure.value for figure in figures) == values


def test_every_part_that_is_not_a_program_says_how_to_get_it():
    for need in {need for story in STORIES for need in story.needs}:
        assert need in HOW or need in {"python3", "tar", "vim", "bash"}
