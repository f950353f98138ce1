import pytest

from handtools.text.matching import Applied, Refused, replace
from handtools.text.matching.typos import is_slip

BODY = "def load(configuration):\n    settings = parse(configuration)\n    return settings\n"


@pytest.mark.parametrize("bad", ["configuratoin", "configuraton", "configurattion", "confiduration"])
def test_one_slip_in_a_word_that_the_file_nowhere_has_is_read_as_meant(bad):
    old = f"    settings = parse({bad})\n    return settings"
    outcome = replace(BODY, old, old.replace("return settings", "return dict(settings)"))
    assert isinstance(outcome, Applied), outcome
    assert outcome.text == BODY.replace("return settings", "return dict(settings)")
    assert outcome.tier == "spelling"


def test_a_misspelling_on_the_changed_line_does_not_reach_the_file():
    outcome = replace(
        BODY, "    settings = parse(configuraton)", "    settings = parse(configuraton, strict)"
    )
    assert isinstance(outcome, Applied)
    assert "parse(configuration, strict)" in outcome.text


def test_a_spelling_that_the_file_knows_is_another_name():
    body = BODY + "configuraton = 1\n"
    assert isinstance(replace(body, "    settings = parse(configuraton)", "    settings = None"), Refused)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("users", "user_"),
        ("setting", "settings"),
        ("parsed", "parser"),
        ("expres", "express"),
        ("value1", "value2"),
        ("version10", "version1"),
        ("Settings", "settings"),
        ("SETTINGS", "settings"),
        ("getter", "setter"),
        ("row_a", "row_b"),
        ("_private", "private"),
        ("name", "nmae"),
        ("load_user", "load_users"),
        ("sizeXY", "sizeYX"),
        ("toolBarr_x", "toolBar_x"),
    ],
)
def test_names_that_differ_like_names_do_are_no_slips(bad, word):
    assert not is_slip(bad, word)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("recieve", "receive"),
        ("lenght", "length"),
        ("tooolBar", "toolBar"),
        ("hooVkar", "hookVar"),
        ("vlaue", "value"),
    ],
)
def test_slips_of_the_pen(bad, word):
    assert is_slip(bad, word)


def test_two_misspelt_words_in_a_short_block_are_refused():
    assert isinstance(replace(BODY, "    setings = parse(configuraton)", "    pass"), Refused)


def test_a_misspelt_word_with_little_around_it_is_refused():
    assert isinstance(replace("return settings\n", "settigns", "other"), Refused)
