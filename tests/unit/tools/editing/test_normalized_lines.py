"""What two lines may differ in and still say the same."""

import time

import pytest

from handtools.tools.editing.normalized_lines import (
    MatchLoss,
    all_line_match_losses,
    line_match_loss,
    substring_offsets,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rm -f target", "rm-f target"),
        (".menu .item {", ".menu.item {"),
        ("margin: 0 -1px", "margin: 0-1px"),
        ("field :name, 1", "field:name, 1"),
        ("total - -step", "total --step"),
    ],
)
def test_a_blank_before_a_sign_that_holds_to_the_next_word_is_content(one, other):
    assert line_match_loss(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"), [("char *name;", "char * name;"), ("a=1", "a = 1"), ("call (x)", "call(x)")]
)
def test_blanks_round_other_signs_are_not(one, other):
    assert line_match_loss(one, other) is MatchLoss.INNER


@pytest.mark.parametrize("form", ['"{}"', "'{}'", "`{}`", "f'{}'", "rb'{}'", "L'{}'", 'f"{}"'])
def test_blanks_inside_a_string_of_any_kind_are_content(form):
    for other in ("x=1", "x  =  1"):
        assert line_match_loss(f"show({form.format('x = 1')})", f"show({form.format(other)})") is None


def test_an_apostrophe_opens_no_string():
    assert line_match_loss("# don't  stop, it's  fine", "# don't stop, it's fine") is MatchLoss.INNER


def test_every_kind_of_loss_is_told():
    assert all_line_match_losses("  say('a')  ", '\tsay("a")') == {
        MatchLoss.TRAILING,
        MatchLoss.INDENTATION,
        MatchLoss.QUOTES,
    }
    assert all_line_match_losses("a = “b”", 'a="b"') == {MatchLoss.INNER, MatchLoss.LOOK}
    assert all_line_match_losses("   ", "") == {MatchLoss.TRAILING}
    assert all_line_match_losses("same", "same") == frozenset()
    assert all_line_match_losses("", "\u00a0") == {MatchLoss.INNER, MatchLoss.LOOK}


@pytest.mark.parametrize("piece", ['\\"', "\\'", "\\`", '"', "'a ", "f'"])
def test_quotes_that_nothing_closes_are_looked_at_once(piece):
    def seconds(count: int) -> float:
        start = time.process_time()
        assert line_match_loss("a " + piece * count, "b " + piece * count) is None
        return time.process_time() - start

    seconds(1000)
    assert seconds(64_000) < 40 * max(seconds(4000), 0.002)


def test_how_many_blanks_a_string_holds_is_content():
    assert line_match_loss('show("x = 1")', 'show("x  =  1")') is None
    assert line_match_loss('show("x\t1")', 'show("x\t\t1")') is None


def test_full_width_signs_are_plain_ones_and_brackets_of_their_own_are_not():
    assert line_match_loss("run（a～b）！", "run(a~b)!") is MatchLoss.LOOK
    assert line_match_loss("run\uff5fa", "run\x7fa") is None


def test_lines_that_differ_by_a_blank_at_the_end_of_an_open_string_may_differ_in_all():
    assert all_line_match_losses("say “hi\u00a0", "say “hi ") == set(MatchLoss) - {
        MatchLoss.NOTHING,
        MatchLoss.INDENTATION,
    }


@pytest.mark.parametrize(("most", "found"), [(0, []), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2])])
def test_no_more_places_of_a_text_are_given_than_asked_for(most, found):
    assert substring_offsets("aaaa", "aa", most=most) == found
