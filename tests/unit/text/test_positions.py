"""Positions: units and characters name the same places."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.positions import column, units

lines = st.text(alphabet=st.sampled_from("ab é漢😀\t"), max_size=20)


@given(lines, st.integers(0, 25))
def test_there_and_back_is_the_same_character(line, at):
    at = min(at, len(line))
    assert column(line, units(line, at)) == at


@given(lines, st.integers(0, 60))
def test_beyond_the_end_is_the_end(line, more):
    assert column(line, units(line, len(line)) + more) == len(line)


def test_a_pair_counts_as_two():
    assert units("a😀b", 2) == 3
    assert column("a😀b", 3) == 2
    assert column("a😀b", 2) == 1
