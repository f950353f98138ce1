"""Counting: a number and its noun."""

import pytest

from handtools.text.plurals import inflect_for_number, number_with_noun


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2, "more entry", "2 more entries"),
        (1, "match", "1 match"),
        (1000, "match", "1,000 matches"),
    ],
)
def test_a_noun_goes_with_its_number(number, noun, said):
    assert number_with_noun(number, noun) == said


def test_a_verb_goes_with_its_number():
    assert [inflect_for_number(n, "was") for n in (0, 1, 2)] == ["were", "was", "were"]
