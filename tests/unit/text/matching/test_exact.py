"""Text that is there letter for letter, with blanks around it that decide where lines end up."""

import pytest

from handtools.text.matching import Applied, Refused, replace


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_quoted_with_half_its_indentation_does_not_set_the_depth_of_added_lines(end):
    body = "class A:\n    def ask(self):\n        pass\n"
    outcome = replace(body, f"  def ask(self):{end}", f"  def ask(self):\n  if x:\n    y(){end}")
    assert isinstance(outcome, Refused)
    assert outcome.code == "indent_conflict"


def test_added_lines_follow_the_file_where_only_the_first_line_lost_half_its_indentation():
    body = "class A:\n        state = None\n\nout = A()\n"
    outcome = replace(body, "    state = None\n\nout = A()", "    state = None\n    more = 1\n\nout = A()")
    assert not isinstance(outcome, Applied) or outcome.text == body.replace(
        "None\n", "None\n        more = 1\n"
    )


def test_a_line_that_goes_takes_its_indentation_with_it():
    body = "def f():\n    total = compute(everything)\n\n\ndef other_function(argument):\n"
    outcome = replace(
        body,
        "  total = compute(everything)\n\n\ndef other_function(argument):",
        "\n\ndef other_function(argument):",
    )
    assert isinstance(outcome, Applied)
    assert outcome.text == "def f():\n\n\ndef other_function(argument):\n"


def test_trailing_blanks_stay_on_their_own_line_when_one_is_added_after_it():
    body = "a = 1\nspec = load(url)  \nreturn spec\n"
    outcome = replace(body, "a = 1\nspec = load(url)", "a = 1\nspec = load(url)\nlog(spec)")
    assert isinstance(outcome, Applied)
    assert outcome.text == "a = 1\nspec = load(url)  \nlog(spec)\nreturn spec\n"


def test_trailing_blanks_go_with_the_line_that_goes():
    body = "first = 1\nsecond = call(arguments)  \nthird = 3\n"
    outcome = replace(body, "first = 1\nsecond = call(arguments)", "first = 1")
    assert isinstance(outcome, Applied)
    assert outcome.text == "first = 1\nthird = 3\n"


def test_a_first_line_quoted_without_indentation_is_still_changed_in_place():
    body = "def f():\n        alpha = 1\n        beta = 2\n"
    outcome = replace(body, "alpha = 1\n        beta = 2", "alpha = 9\n        beta = 2")
    assert isinstance(outcome, Applied)
    assert outcome.text == "def f():\n        alpha = 9\n        beta = 2\n"
