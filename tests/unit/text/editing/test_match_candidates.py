"""Places that lose different things can't be told apart."""

import pytest

from handtools.text.editing import EditApplied, EditRefused, replace_text

BLOCK = 'send(user, "hello")\nclose(user)'
DEEPER = '    send(user, "hello")\n    close(user)'
OTHER_QUOTES = "send(user, 'hello')\nclose(user)"
TYPOGRAPHIC = "send(user, “hello”)\nclose(user)"
TRAILING = 'send(user, "hello")  \nclose(user)'
BLANK = 'send(user, "hello")\n\nclose(user)'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DEEPER, OTHER_QUOTES),
        (TRAILING, DEEPER),
        (TYPOGRAPHIC, OTHER_QUOTES),
        (BLANK, DEEPER),
        (BLANK, TRAILING),
    ],
)
def test_two_places_that_each_lose_another_thing_are_ambiguous(one, other):
    outcome = replace_text(f"{one}\nmiddle()\n{other}\n", BLOCK, BLOCK.replace("close", "finish"))
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "ambiguous"


def test_a_place_that_loses_less_of_the_same_wins():
    worse = DEEPER.replace('"', "'")
    outcome = replace_text(f"{worse}\nmiddle()\n{OTHER_QUOTES}\n", BLOCK, BLOCK.replace("close", "finish"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{worse}\nmiddle()\n{OTHER_QUOTES.replace('close', 'finish')}\n"


def test_of_places_with_the_same_loss_the_one_without_other_blank_lines_wins():
    both = BLANK.replace('")\n', '")  \n')
    outcome = replace_text(f"{both}\nmiddle()\n{TRAILING}\n", BLOCK, BLOCK.replace("close", "finish"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{both}\nmiddle()\n{TRAILING.replace('close', 'finish')}\n"


def test_what_the_lines_themselves_lose_is_told_before_blank_lines_around_them():
    outcome = replace_text(
        f"def greet():\n{DEEPER}\nend()\n", f"\n{BLOCK}\n", f"\n{BLOCK.replace('close', 'finish')}\n"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "indentation"
