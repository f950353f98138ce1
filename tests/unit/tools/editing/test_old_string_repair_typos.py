import pytest
from rapidfuzz.distance import OSA

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.old_string_repair import CONFUSABLE_WORDS, is_typo_of
from handtools.tools.editing.replacement import replace_text

BODY = "def load(configuration):\n    settings = parse(configuration)\n    return settings\n"


@pytest.mark.parametrize("bad", ["configuratoin", "configuraton", "configurattion", "confiduration"])
def test_one_slip_in_a_word_that_the_file_nowhere_has_is_read_as_meant(bad):
    old = f"    settings = parse({bad})\n    return settings"
    outcome = replace_text(BODY, old, old.replace("return settings", "return dict(settings)"))
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == BODY.replace("return settings", "return dict(settings)")
    assert outcome.tier == "spelling"


def test_a_misspelling_on_the_changed_line_does_not_reach_the_file():
    outcome = replace_text(
        BODY, "    settings = parse(configuraton)", "    settings = parse(configuraton, strict)"
    )
    assert isinstance(outcome, EditApplied)
    assert "parse(configuration, strict)" in outcome.text


def test_a_spelling_that_the_file_knows_is_another_name():
    body = BODY + "configuraton = 1\n"
    assert isinstance(
        replace_text(body, "    settings = parse(configuraton)", "    settings = None"), EditRefused
    )


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("users", "user_"),
        ("setting", "settings"),
        ("parsed", "parser"),
        ("expres", "express"),
        ("value1", "value2"),
        ("770000", "7700000"),
        ("7700000", "770000"),
        ("user__id", "user_id"),
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
        ("set_ixd", "set_id"),
        ("user_kxy", "user_key"),
        ("user_xame", "user_name"),
        ("load_nemo", "load_neme"),
        ("my_naem", "my_name"),
    ],
)
def test_names_that_differ_like_names_do_are_no_slips(bad, word):
    assert not is_typo_of(bad, word)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("recieve", "receive"),
        ("lenght", "length"),
        ("tooolBar", "toolBar"),
        ("hooVkar", "hookVar"),
        ("vlaue", "value"),
        ("valeu", "value"),
        ("set_iid", "set_id"),
        ("user_nbme", "user_name"),
        ("recieve_all", "receive_all"),
    ],
)
def test_slips_of_the_pen(bad, word):
    assert is_typo_of(bad, word)


def test_two_misspelt_words_in_a_short_block_are_refused():
    assert isinstance(replace_text(BODY, "    setings = parse(configuraton)", "    pass"), EditRefused)
    body = "settings = parse(configuration, environment)\n"
    one = replace_text(body, "setings = parse(configuration, environment)", "pass")
    assert isinstance(one, EditApplied)
    assert isinstance(replace_text(body, "setings = parse(configuraton, environment)", "pass"), EditRefused)


def test_a_misspelt_word_with_little_around_it_is_refused():
    assert isinstance(replace_text("return settings\n", "settigns", "other"), EditRefused)


@pytest.mark.parametrize(("around", "outcome"), [("alpha later", EditApplied), ("alpha late", EditRefused)])
def test_ten_letters_around_a_misspelt_word_are_enough(around, outcome):
    assert isinstance(replace_text(f"{around} settings\n", f"{around} settigns", "other"), outcome)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("remote", "remove"),
        ("content", "context"),
        ("parsedPath", "passedPath"),
        ("SHAPE_MODE", "SHARE_MODE"),
    ],
)
def test_a_word_that_is_another_word_is_no_slip(bad, word):
    assert not is_typo_of(bad, word)
    body = f"first_call(argument)\n{word} = second_call(argument)\n"
    old = f"first_call(argument)\n{bad} = second_call(argument)"
    assert isinstance(replace_text(body, old, f"{old}\nthird_call()"), EditRefused)


def test_a_misspelling_of_a_confusable_word_is_still_a_slip():
    assert is_typo_of("contnet", "content")
    assert is_typo_of("recieve", "receive")


def test_every_confusable_word_has_another_to_be_confused_with():
    alone = [
        word for word in CONFUSABLE_WORDS if not any(_is_one_off(word, other) for other in CONFUSABLE_WORDS)
    ]
    assert alone == []


def _is_one_off(word: str, other: str) -> bool:
    return word != other and OSA.distance(word, other, score_cutoff=1) == 1


def test_two_misspelt_words_in_a_long_block_are_both_corrected():
    names = ("garden", "window", "kitchen", "bedroom", "library", "pantry", "corridor", "balcony")
    body = "".join(f"open_{name}(light)\n" for name in names)
    old = body.replace("kitchen", "kitcehn").replace("corridor", "corrdior")
    outcome = replace_text(body, old, old.replace("balcony(light)", "balcony(dark)"))
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == body.replace("balcony(light)", "balcony(dark)")
