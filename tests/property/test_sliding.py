from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs.alignment import LineEdit, align_lines
from handtools.text.diffs.unified_diff import edits_slid_to_best_place

rows = st.lists(st.sampled_from(["a\n", "  b\n", "\n", "}\n"]), max_size=30)


def applied(a: list[str], b: list[str], edits: list[LineEdit]) -> list[str]:
    result, place = [], 0
    for edit in edits:
        result += a[place : edit.start_a] + b[edit.start_b : edit.end_b]
        place = edit.end_a
    return result + a[place:]


def changed(edits: list[LineEdit]) -> tuple[int, int]:
    removed = sum(edit.end_a - edit.start_a for edit in edits)
    return removed, sum(edit.end_b - edit.start_b for edit in edits)


@given(rows, rows)
def test_sliding_changes_no_more_lines_and_gives_the_same_text(a: list[str], b: list[str]):
    edits = align_lines(a, b)
    moved = edits_slid_to_best_place(edits, a, b)
    assert applied(a, b, moved) == b
    assert changed(moved) == changed(edits)
    assert len(moved) <= len(edits)


@given(rows, rows)
def test_between_two_changes_something_stays(a: list[str], b: list[str]):
    for one, other in pairwise(edits_slid_to_best_place(align_lines(a, b), a, b)):
        assert one.end_a < other.start_a
        assert one.end_b < other.start_b
        assert other.start_a - one.end_a == other.start_b - one.end_b
