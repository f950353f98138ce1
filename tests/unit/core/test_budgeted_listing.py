"""Sharing: names first, descriptions alike, and never over the budget."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.core.skills import budgeted_listing
from handtools.text.token_estimate import estimate_tokens

NAMES = st.text("abcdefgh-", min_size=1, max_size=30)
WORDS = st.text("abc de.", max_size=300).map(lambda text: " ".join(text.split()))
ENTRIES = st.lists(st.tuples(NAMES, WORDS), max_size=40)


@given(ENTRIES, st.integers(20, 4_000))
def test_the_list_is_within_the_budget_and_says_what_is_not_in_it(entries, tokens):
    shared = budgeted_listing(entries, tokens)
    assert estimate_tokens(shared.text) <= tokens
    assert len(shared.rows) + shared.left_out == len(entries)
    if shared.left_out:
        assert str(shared.left_out) in shared.text
        assert shared.shortened == sum(bool(words) for _, words in entries[: len(shared.rows)])
    for row, (name, _) in zip(shared.rows, entries, strict=False):
        assert row.startswith(f"- {name}")


@given(ENTRIES)
def test_with_room_for_all_nothing_is_shortened(entries):
    shared = budgeted_listing(entries, 1_000_000)
    assert (shared.shortened, shared.left_out, shared.note) == (0, 0, "")
    assert all(words in row for row, (_, words) in zip(shared.rows, entries, strict=True))


@given(ENTRIES, st.integers(20, 4_000))
def test_no_description_is_cut_shorter_than_another_that_was_cut(entries, tokens):
    shared = budgeted_listing(entries, tokens)
    kept = [len(row) - len(name) - 4 for row, (name, _) in zip(shared.rows, entries, strict=False)]
    cut = [size for size, row in zip(kept, shared.rows, strict=True) if row.endswith("…")]
    whole = [
        len(words) for (_, words), row in zip(entries, shared.rows, strict=False) if not row.endswith("…")
    ]
    # A cut one may lose trailing blanks; a whole one is never longer than what a cut one was allowed.
    assert not cut or shared.left_out or max(whole, default=0) <= max(cut) + 2


@given(ENTRIES, st.integers(20, 2_000), st.text("/abc", max_size=400))
def test_a_foot_is_within_the_budget_too_and_gives_way_when_it_is_long(entries, tokens, foot):
    shared = budgeted_listing(entries, tokens, foot=foot)
    assert estimate_tokens(shared.text) <= tokens
    assert shared.foot in ("", foot)
    assert bool(shared.foot) == (bool(foot) and estimate_tokens(f"{foot}\n") <= tokens // 4)


def test_short_descriptions_stay_whole_when_long_ones_are_cut():
    shared = budgeted_listing([("a", "short"), ("b", "long " * 200)], 60)
    assert shared.rows[0] == "- a: short"
    assert shared.rows[1].endswith("…")
    assert shared.note == "1 descriptions are shortened"
