from hypothesis import given
from hypothesis import strategies as st

from handtools.text.token_estimate import estimate_tokens


@given(st.text(st.characters()))
def test_every_text_has_an_estimate_between_nothing_and_a_few_tokens_a_character(text: str):
    assert (0 if not text else 1) <= estimate_tokens(text) <= 2.5 * len(text) + 1


@given(st.text(), st.text())
def test_parts_cost_what_the_whole_costs_but_for_rounding(one: str, other: str):
    apart = estimate_tokens(one) + estimate_tokens(other)
    assert apart - 2 <= estimate_tokens(one + other) <= apart
