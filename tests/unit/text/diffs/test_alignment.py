import time

from handtools.text.diffs.alignment import LineEdit, align_lines


def test_equal_sequences_have_no_edits():
    assert align_lines(list("abc"), list("abc")) == []
    assert align_lines([], []) == []


def test_a_moved_line_is_removed_and_added():
    assert align_lines(list("xabcd"), list("abcdx")) == [LineEdit(0, 1, 0, 0), LineEdit(5, 5, 4, 5)]


def test_the_larger_of_two_swapped_blocks_is_kept():
    before, after = [*"12", *"abcdef"], [*"abcdef", *"12"]
    assert align_lines(before, after) == [LineEdit(0, 2, 0, 0), LineEdit(8, 8, 6, 8)]


def test_anchors_do_not_outweigh_repeated_lines():
    # The unique line moved across many equal ones: keeping it would change far more.
    before, after = ["unique", *["same"] * 50], [*["same"] * 50, "unique"]
    assert align_lines(before, after) == [LineEdit(0, 1, 0, 0), LineEdit(51, 51, 50, 51)]


def test_many_equal_lines_take_no_time():
    start = time.process_time()
    assert align_lines(["x"] * 20_000, ["x"] * 20_001) == [LineEdit(20_000, 20_000, 20_000, 20_001)]
    assert time.process_time() - start < 0.5
