"""Places that lose different things can't be told apart."""

import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused, MatchHint
from handtools.tools.editing.replacement import replace_text

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


def test_of_two_places_at_another_depth_the_one_without_a_blank_line_more_wins():
    further = DEEPER.replace("\n", "\n\n")
    outcome = replace_text(f"{further}\nmiddle()\n{DEEPER}\n", BLOCK, BLOCK.replace("close", "finish"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{further}\nmiddle()\n{DEEPER.replace('close', 'finish')}\n"


@pytest.mark.parametrize(
    ("body", "old", "new", "after", "tier"),
    [
        # The file has them.
        (
            "\nbrew_up  = tea()\n",
            "\nbrew_up = tea()",
            "brew_up = tea()",
            "brew_up  = tea()\n",
            "inner white space",
        ),
        (
            "a\n\n\nbrew_up  = tea()\n",
            "\n\nbrew_up = tea()",
            "brew_up = tea()",
            "a\nbrew_up  = tea()\n",
            "inner white space",
        ),
        (
            "brew_up  = tea()\n\n",
            "brew_up = tea()\n\n",
            "brew_up = tea()\n",
            "brew_up  = tea()\n",
            "inner white space",
        ),
        (
            "brew_up  = tea()\n\n\nz\n",
            "brew_up = tea()\n\n\n",
            "brew_up = tea()\n",
            "brew_up  = tea()\nz\n",
            "inner white space",
        ),
        ("a\nbrew_up = tea()", "brew_up = tea()\n", "brew_up = milk()\n", "a\nbrew_up = milk()", "exact"),
        # It has them not.
        (
            "brew_up = tea()\nz\n",
            "\nbrew_up = tea()",
            "\nbrew_up = milk()",
            "brew_up = milk()\nz\n",
            "blank lines",
        ),
        (
            "a\nbrew_up = tea()",
            "brew_up = tea()\n\n",
            "brew_up = milk()\n\n",
            "a\nbrew_up = milk()",
            "blank lines",
        ),
        (
            "a\nbrew_up = tea()\nz\n",
            "brew_up = tea()\n\n",
            "brew_up = milk()\n\n",
            "a\nbrew_up = milk()\nz\n",
            "blank lines",
        ),
    ],
)
def test_blank_lines_before_and_after_the_old_ones_are_those_of_the_file(body, old, new, after, tier):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert (outcome.text, outcome.tier) == (after, tier)


@pytest.mark.parametrize(("last", "kind"), [("up", EditApplied), ("x", EditRefused)])
def test_lines_of_24_letters_are_recognized_though_blank_lines_between_them_differ(last, kind):
    block = f"pour all the\nhot tea slowly {last}\n"
    assert isinstance(replace_text(block.replace("\n", "\n\n"), block, block.replace("hot", "mild")), kind)


def test_blank_lines_alone_are_recognized_nowhere():
    assert isinstance(replace_text("brew = tea()\n\nz\n", "\n\n\n", "\nstir()\n"), EditRefused)


def test_a_place_as_near_as_another_is_seen_below_many_that_are_less_near():
    less, near = DEEPER.replace("(user, ", "(user,  "), DEEPER
    body = "\n".join([less, near, *[less] * 98, near, ""])
    outcome = replace_text(body, BLOCK, BLOCK.replace("close", "finish"))
    assert isinstance(outcome, EditRefused)
    assert [place.line for place in outcome.candidates] == [3, 201]


def test_a_hint_names_one_of_many_places_that_match_but_for_their_blanks():
    body = f"{DEEPER}\n" * 100
    outcome = replace_text(
        body, BLOCK, BLOCK.replace("close", "finish"), hint=MatchHint(line=199, within=0)
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{DEEPER}\n" * 99 + f"{DEEPER}\n".replace("close", "finish")


TWINS = """class Tea:
    def pour(self):

        pass
    def serve(self):
        pass

int brew()
{
        pass
}
        pass
def last():
"""


@pytest.mark.parametrize(
    ("hint", "line"),
    [
        (MatchHint(line=4, within=2), 4),
        (MatchHint(line=9, within=1), 10),
        (MatchHint(line=9, within=0), None),
        (MatchHint(line=11, within=1), None),
        (MatchHint(line=-9), None),
        (MatchHint(line=99), None),
    ],
)
def test_a_hint_chooses_among_equal_lines(hint, line):
    outcome = replace_text(TWINS, "        pass\n", "        stop\n", hint=hint)
    rows = TWINS.splitlines()
    if line is None:
        assert isinstance(outcome, EditRefused)
        return
    rows[line - 1] = "        stop"
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text.splitlines() == rows
