"""Positions: units and characters name the same places."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.lines import column_of_utf16, utf16_column

lines = st.text(alphabet=st.sampled_from("ab é漢😀\t"), max_size=20)


@given(lines, st.integers(0, 25))
def test_there_and_back_is_the_same_character(line, at):
    at = min(at, len(line))
    assert column_of_utf16(line, utf16_column(line, at)) == at


@given(lines, st.integers(0, 60))
def test_beyond_the_end_is_the_end(line, more):
    assert column_of_utf16(line, utf16_column(line, len(line)) + more) == len(line)


def test_a_pair_counts_as_two():
    assert utf16_column("a😀b", 2) == 3
    assert column_of_utf16("a😀b", 3) == 2
    assert column_of_utf16("a😀b", 2) == 1
