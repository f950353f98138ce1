import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text import lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_of_the_three_ends_ends_a_line(end: str):
    assert lines.split_lines(f"a{end}b{end}") == [f"a{end}", f"b{end}"]


@pytest.mark.parametrize("sign", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_no_other_separator_ends_a_line(sign: str):
    assert lines.split_lines(f"a{sign}b\n") == [f"a{sign}b\n"]
    assert lines.count_lines(f"a{sign}b\n") == 1


def test_a_last_line_without_an_end_is_a_line():
    assert lines.split_lines("a\nb") == ["a\n", "b"]


def test_the_empty_text_has_no_lines():
    assert lines.split_lines("") == []
    assert lines.count_lines("") == 0


def test_a_reversed_pair_is_two_ends():
    assert lines.split_lines("a\n\rb") == ["a\n", "\r", "b"]


def test_bare_removes_one_end_only():
    assert lines.without_line_ending("a\n\n") == "a\n"
    assert lines.without_line_ending("a\r\n") == "a"
    assert lines.without_line_ending("a\r") == "a"
    assert lines.without_line_ending("a") == "a"


@given(st.text("a\r\n\f\x85\u2028"))
def test_lines_split_without_endings_are_those_split_with_them(text: str):
    bare = [lines.without_line_ending(line) for line in lines.split_lines(text)]
    assert lines.split_lines_without_endings(text) == bare


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", "\n"),
        ("no end", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\nb\nc\r\n", "\n"),
        ("a\rb\rc\n", "\r"),
        ("a\r\nb\n", "\n"),
        ("a\nb\r", "\n"),
        ("a\r\nb\r", "\r\n"),
    ],
)
def test_the_dominant_end_is_the_most_frequent_and_line_feed_in_doubt(text: str, end: str):
    assert lines.dominant_ending(text) == end


def test_both_characters_of_a_pair_are_on_the_line_they_end():
    text = "a\r\nb"
    assert [lines.line_number_at(text, offset) for offset in range(5)] == [1, 1, 1, 2, 2]


def test_offsets_of_lines_beyond_the_end_are_the_end():
    assert lines.start_offset_of_line_number("a\nb", 9) == 3
    assert lines.start_offset_of_line_number("a\rb", 9) == 3


def test_lines_count_from_one():
    with pytest.raises(ValueError, match="numbered from 1"):
        lines.start_offset_of_line_number("a", 0)


def test_numbered_rows_have_width_six_and_a_tab():
    assert lines.render_numbered_lines(["a\n", "b"], 9) == "9\ta\n10\tb"
    assert lines.render_numbered_lines(["x"], 1_000_000) == "1000000\tx"


def test_numbered_rows_lose_the_end_of_their_line_whatever_it_is():
    assert lines.render_numbered_lines(["a\r\n", "b\r", "c\n", "d"], 1) == ("1\ta\n2\tb\n3\tc\n4\td")


def test_a_carriage_return_inside_a_given_line_stays():
    assert lines.render_numbered_lines(["a\rb\n"], 1) == "1\ta\rb"


def test_adopting_an_end_replaces_every_other():
    assert lines.convert_line_ends("a\r\nb\rc\n", "\n") == "a\nb\nc\n"
    assert lines.convert_line_ends("a\nb\n", "\r\n") == "a\r\nb\r\n"
