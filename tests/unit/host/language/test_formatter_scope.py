"""Scoping: a formatter's work, as far as an edit goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.host.language.formatters import has_same_words, limit_formatting_to_edit

texts = st.lists(st.sampled_from(["a\n", " a\n", "b\n", " b\n", "\n", "c\n"]), max_size=12).map("".join)


def tidy(text: str) -> str:
    return "".join(f"{line.strip()}\n" for line in text.splitlines())


def test_only_what_the_edit_touched_is_formatted():
    before = "  one\nx\nx\n  two\nx\nx\n  three\n"
    after = before.replace("two", "TWO")
    assert limit_formatting_to_edit(before, after, tidy(after)) == "  one\nx\nx\nTWO\nx\nx\n  three\n"


def test_lines_beside_the_edit_belong_to_it():
    assert limit_formatting_to_edit("a\n  b\nc\n", "a\n  b\nnew\nc\n", "a\nb\nnew\nc\n") == "a\nb\nnew\nc\n"


def test_a_removal_is_an_edit_too():
    assert limit_formatting_to_edit("a\nx\n\n\nb\n", "a\n\n\nb\n", "a\n\nb\n") == "a\n\nb\n"


def test_a_neighbour_beyond_blank_lines_is_left_alone():
    before = "  a\n\n\n  b\n"
    assert limit_formatting_to_edit(before, before.replace("b", "B"), "a\n\n\nB\n") == "  a\n\n\nB\n"
    assert limit_formatting_to_edit("  a\nx\n  b\n", "  A\nx\n  b\n", "A\nx\nb\n") == "A\nx\n  b\n"


@given(texts, texts)
def test_formatting_what_is_formatted_changes_nothing(before, after):
    assert limit_formatting_to_edit(before, tidy(after), tidy(after)) == tidy(after)


@given(texts, texts)
def test_without_an_edit_nothing_is_formatted(text, formatted):
    assert limit_formatting_to_edit(text, text, formatted) == text


def test_a_formatter_moves_words_and_respells_a_few():
    assert has_same_words("f(a,b)", "f(\n    a,\n    b,\n)\n")
    assert has_same_words("import b\nimport a\n", "import a\nimport b\n")
    assert not has_same_words("def f():\n    return compute(1, 2, 3)\n" * 5, "")
    assert not has_same_words("a b c d e f g h", "error: could not read the settings of this project")


@pytest.mark.parametrize("gone", ["", "\n", "# nothing\n"])
def test_nothing_is_no_formatting_of_a_few_words(gone):
    assert not has_same_words("x = 1\n", gone)
