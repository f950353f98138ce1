from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs import alignment
from handtools.text.diffs.alignment import LineEdit, align_lines

few = st.lists(st.sampled_from("ab"), max_size=40)
some = st.lists(st.sampled_from("abcdefgh"), max_size=40)
sequences = few | some


def kept(a: list[str], b: list[str]) -> int:
    """Give the length of a longest common subsequence, by the book."""
    previous = [0] * (len(b) + 1)
    for line in a:
        row = [0]
        for j, other in enumerate(b):
            row.append(previous[j] + 1 if line == other else max(row[-1], previous[j + 1]))
        previous = row
    return previous[-1]


def applied(a: list[str], b: list[str], edits: list[LineEdit]) -> list[str]:
    """Rebuild `b` from `a` and only the changed regions of `b`."""
    result, place = [], 0
    for edit in edits:
        result += a[place : edit.start_a] + b[edit.start_b : edit.end_b]
        place = edit.end_a
    return result + a[place:]


def assert_minimal(a: list[str], b: list[str], edits: list[LineEdit]) -> None:
    assert applied(a, b, edits) == b
    removed = sum(edit.end_a - edit.start_a for edit in edits)
    added = sum(edit.end_b - edit.start_b for edit in edits)
    assert removed == len(a) - kept(a, b)
    assert added == len(b) - kept(a, b)


def assert_ordered(edits: list[LineEdit]) -> None:
    for one, other in pairwise(edits):
        assert one.end_a < other.start_a
        assert one.end_b < other.start_b
    assert all(edit.start_a < edit.end_a or edit.start_b < edit.end_b for edit in edits)


@given(sequences, sequences)
def test_edits_are_minimal_and_in_order_with_something_kept_between(a: list[str], b: list[str]):
    edits = align_lines(a, b)
    assert_minimal(a, b, edits)
    assert_ordered(edits)


@pytest.mark.parametrize(
    "limits",
    [
        {"_SPARSE_PAIRS": 1000},
        {"_SPARSE_PAIRS": 0, "_SMALL_CELLS": 0},
        {"_SPARSE_PAIRS": 0, "_SMALL_CELLS": 0, "_NEAR_DISTANCE": 2},
        {"_SPARSE_PAIRS": 0},
    ],
)
def test_every_way_to_search_is_minimal(limits: dict[str, int], monkeypatch: pytest.MonkeyPatch):
    for name, value in limits.items():
        monkeypatch.setattr(alignment, name, value)

    @given(sequences, sequences)
    def check(a: list[str], b: list[str]) -> None:
        assert_minimal(a, b, align_lines(a, b))

    check()


def test_beyond_the_limit_the_diff_is_still_correct(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alignment, "_TABLE_CELLS", 4)
    monkeypatch.setattr(alignment, "_SPARSE_PAIRS", 0)
    monkeypatch.setattr(alignment, "_SMALL_CELLS", 0)
    monkeypatch.setattr(alignment, "_NEAR_DISTANCE", 0)

    @given(sequences, sequences)
    def check(a: list[str], b: list[str]) -> None:
        edits = align_lines(a, b)
        assert applied(a, b, edits) == b
        assert_ordered(edits)

    check()
