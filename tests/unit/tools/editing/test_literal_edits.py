"""Changes that need no judgement: whole lines put in, text replaced letter for letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text import lines
from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.non_fuzzy_edits import insert_lines, replace_verbatim

BODIES = st.text("ab \r\n", max_size=40)


@pytest.mark.parametrize(
    ("body", "line", "text", "after"),
    [
        ("a\nb\n", 1, "x", "x\na\nb\n"),
        ("a\nb\n", 3, "x\n", "a\nb\nx\n"),
        ("a\nb", 3, "x\n", "a\nb\nx"),
        ("a\r\nb\n", 2, "x", "a\r\nx\r\nb\n"),
        ("", 1, "x", "x"),
        ("a\n", 2, "", "a\n\n"),
    ],
)
def test_text_becomes_the_line(body, line, text, after):
    assert insert_lines(body, line, text) == after


@given(body=BODIES, share=st.floats(0, 1), text=st.text("xy\n", max_size=8))
def test_every_other_line_keeps_its_bytes(body, share, text):
    line = 1 + round(share * lines.count_lines(body))
    after = insert_lines(body, line, text)
    at = lines.start_offset_of_line_number(body, line)
    assert after.startswith(body[:at])
    assert after.endswith(body[at:])
    if body and body[-1] not in "\r\n" and text.removesuffix("\n")[-1:] not in ("", "\n"):
        assert after[-1] not in "\r\n", "a file without a final line end stays one"


@given(head=BODIES, tail=BODIES, new=st.text("xy", max_size=5))
def test_text_that_stands_there_once_is_replaced_and_nothing_else(head, tail, new):
    outcome = replace_verbatim(f"{head}<needle>{tail}", "<needle>", new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{head}{new}{tail}"


@pytest.mark.parametrize(
    ("body", "old", "code"),
    [
        ("a\na\n", "a", "ambiguous"),
        ("aaa", "aa", "ambiguous"),
        ("a\n", "b", "not_found"),
        ("a\n", "", "empty"),
    ],
)
def test_text_that_is_there_twice_or_not_at_all_is_refused(body, old, code):
    outcome = replace_verbatim(body, old, "x")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == code


def test_what_a_looser_reading_finds_is_shown_and_not_changed():
    outcome = replace_verbatim(
        "if ready:\n\tvalue = compute(1)\n", "if ready:\n    value = compute(1)", "x"
    )
    assert isinstance(outcome, EditRefused)
    assert outcome.suggestion == "if ready:\n\tvalue = compute(1)"


def test_line_ends_may_differ():
    outcome = replace_verbatim("a\r\nb\r\nc\r\n", "a\nb", "x\ny")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "x\r\ny\r\nc\r\n"
