import pytest

from handtools.text.truncation import ClippedText, clip_line, clip_text, sanitized_line

TEN = "".join(f"line {number}\n" for number in range(10))


def test_text_within_the_limits_is_untouched():
    assert clip_text("a\nb", max_lines=2, max_bytes=3, keep="head") == ClippedText(
        "a\nb", lines=2, shown_lines=2, bytes=3, shown_bytes=3, clipped=False
    )


def test_the_head_is_the_first_lines():
    clipped = clip_text(TEN, max_lines=2, max_bytes=1_000, keep="head")
    assert clipped == ClippedText("line 0\nline 1\n", 10, 2, 70, 14, clipped=True)


def test_the_tail_is_the_last_lines():
    clipped = clip_text(TEN, max_lines=2, max_bytes=1_000, keep="tail")
    assert clipped.text == "line 8\nline 9\n"


def test_the_byte_limit_cuts_between_lines():
    assert clip_text(TEN, max_lines=9, max_bytes=20, keep="head").text == "line 0\nline 1\n"
    assert clip_text(TEN, max_lines=9, max_bytes=20, keep="tail").text == "line 8\nline 9\n"
    assert clip_text(TEN, max_lines=9, max_bytes=14, keep="head").text == "line 0\nline 1\n"
    assert clip_text(TEN, max_lines=9, max_bytes=14, keep="tail").text == "line 8\nline 9\n"


def test_both_ends_are_kept_with_a_line_that_says_what_is_missing():
    clipped = clip_text(TEN, max_lines=4, max_bytes=1_000, keep="both")
    assert clipped.text == ("line 0\nline 1\n[… 6 lines, 42 bytes left out …]\nline 8\nline 9\n")
    assert (clipped.shown_lines, clipped.shown_bytes) == (4, 28)


def test_what_the_head_does_not_need_goes_to_the_tail():
    text = "x" * 30 + "\n" + "y\n" * 10
    clipped = clip_text(text, max_lines=100, max_bytes=45, keep="both")
    assert clipped.text.count("y\n") > 8


def test_a_line_longer_than_the_limit_is_shown_in_part():
    clipped = clip_text("x" * 100, max_lines=5, max_bytes=10, keep="head")
    assert clipped == ClippedText("x" * 10, 1, 1, 100, 10, clipped=True)
    assert clip_text("ab" * 50, max_lines=5, max_bytes=3, keep="tail").text == "bab"


def test_both_ends_of_one_long_line_count_as_one_line():
    clipped = clip_text("a" + "x" * 100 + "b", max_lines=5, max_bytes=10, keep="both")
    assert clipped.text == "axxxx\n[… 92 bytes left out …]\nxxxxb"
    assert (clipped.lines, clipped.shown_lines) == (1, 1)


def test_no_character_is_cut():
    assert clip_text("語" * 10, max_lines=1, max_bytes=10, keep="head").text == "語" * 3
    assert clip_text("語" * 10, max_lines=1, max_bytes=10, keep="tail").text == "語" * 3
    assert clip_text("語", max_lines=1, max_bytes=2, keep="tail").text == ""


def test_a_pair_of_carriage_return_and_line_feed_is_not_cut_from_a_complete_line():
    assert clip_text("a\r\nb\r\n", max_lines=9, max_bytes=5, keep="head").text == "a\r\n"
    assert clip_text("a\r\nb\r\n", max_lines=9, max_bytes=4, keep="tail").text == "b\r\n"


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_nothing_fits_into_nothing(keep):
    clipped = clip_text("a\n", max_lines=0, max_bytes=0, keep=keep)
    assert clipped == ClippedText("", 1, 0, 2, 0, clipped=True)


def test_a_short_line_is_untouched():
    assert clip_line("abc", 3) == "abc"


def test_a_long_line_says_how_much_was_cut():
    assert clip_line("abcdef", 2) == "ab … [4 chars]"


def test_a_long_line_can_be_cut_around_a_place():
    line = "a" * 50 + "HERE" + "b" * 50
    assert clip_line(line, 10, around=52) == "[47 chars] … aaaHEREbbb … [47 chars]"
    assert clip_line(line, 10, around=0) == "a" * 10 + " … [94 chars]"
    assert clip_line(line, 10, around=103) == "[94 chars] … " + "b" * 10


def test_a_strangers_words_stay_on_one_line_and_turn_nothing_around():
    assert sanitized_line("a\n2. fake\x1b[31m \u202e b\0", 100) == "a 2. fake [31m b"
    assert sanitized_line("word " * 100, 20) == "word word word word "[:20]


def test_a_part_of_a_line_is_clipped_without_counts_that_nobody_knows():
    assert clip_line("abcdef", 2, part=True) == "ab …"
    assert clip_line("x" * 50 + "HERE" + "y" * 50, 10, around=52, part=True) == "… xxxHEREyyy …"
