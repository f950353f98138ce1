"""Ranges of lines, united."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.lines import LineRange, merged_line_ranges


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 40)), max_size=12))
def test_windows_are_united_without_losing_or_adding_a_line(made):
    windows = [LineRange(first, first + more) for first, more in made]
    joined = merged_line_ranges(windows)
    wanted = {line for window in windows for line in range(window.first, window.last + 1)}
    assert {line for window in joined for line in range(window.first, window.last + 1)} == wanted
    assert all(one.last + 1 < two.first for one, two in pairwise(joined))
