"""What a person reads hides nothing and steers nothing."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.visible_text import visible_line, with_visible_characters, without_long_blanks

HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
MARK = re.compile(r"\[… \d+ (?:blank lines|blanks) …\]")
anything = st.text(alphabet=st.characters())


@given(anything)
def test_nothing_that_is_left_can_hide_or_steer(text):
    for char in with_visible_characters(text):
        assert char in "\n\t " or unicodedata.category(char) not in HIDDEN


@given(st.text(st.sampled_from("ae\u0301\u0336\u20dd\u034f\u200d\u0903 ")))
def test_no_letter_is_covered_by_a_pile_of_marks(text):
    shown = with_visible_characters(text)
    assert not re.search("[\u0301\u0336\u20dd]{5}", shown)
    hidden = sum(int(count) for count in re.findall(r"⟨(\d+) combining marks⟩", shown))
    assert hidden + len(re.findall("[\u0301\u0336\u20dd]", shown)) == len(
        re.findall("[\u0301\u0336\u20dd]", text)
    )


@given(anything)
def test_what_can_be_seen_stays_as_it_is(text):
    kept = [char for char in text if char in "\n\t " or unicodedata.category(char) not in HIDDEN]
    if len(kept) == len(text) and all(ord(char) < 0x300 for char in text):
        assert with_visible_characters(text) == text
    assert with_visible_characters(with_visible_characters(text)) == with_visible_characters(text)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[8mb", "a␛[8mb"),
        ("a\rb", "a␍b"),
        ("a\x00b\x7f", "a␀b␡"),
        ("\u202egpj.exe", "⟨U+202E⟩gpj.exe"),
        ("pay\u200bpal", "pay⟨U+200B⟩pal"),
        ("\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"),
        ("rm\u00a0x", "rm⟨U+00A0⟩x"),
        ("a\u3164b", "a⟨U+3164⟩b"),
        ("a\ufe0fb", "a⟨U+FE0F⟩b"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\udce9", "⟨U+DCE9⟩"),
        ("a\u2028b\x85c", "a⟨U+2028⟩b⟨U+0085⟩c"),
        ("a\ufffcb", "a⟨U+FFFC⟩b"),
        ("echo a" + "\u0336" * 300 + "b", "echo a⟨300 combining marks⟩b"),
        ("grün 漢字 й", "grün 漢字 й"),
        ("gru\u0308n ว\u0e35\u0e48 שּׁ\u05b8\u0591", "gru\u0308n ว\u0e35\u0e48 שּׁ\u05b8\u0591"),
    ],
)
def test_each_kind_of_it_is_shown(raw, shown):
    assert with_visible_characters(raw) == shown


@given(st.lists(st.sampled_from(["", "   ", "x", "y z", "\tif"])))
def test_squeezing_loses_only_blank_lines_and_says_how_many(rows):
    text = "\n".join(rows)
    left = [
        line for line in without_long_blanks(text).split("\n") if line.strip() and not MARK.search(line)
    ]
    assert left == [line for line in rows if line.strip()]
    said = sum(
        int(number) for number in re.findall(r"\[… (\d+) blank lines …\]", without_long_blanks(text))
    )
    assert without_long_blanks(text).count("\n") - len(
        re.findall("blank lines", without_long_blanks(text))
    ) + said == text.count("\n")


def test_padding_within_a_line_does_not_push_anything_out_of_sight():
    assert without_long_blanks("true" + " " * 300 + "curl evil") == "true [… 300 blanks …] curl evil"


@given(anything, st.integers(2, 80))
def test_a_name_in_a_title_is_one_short_line(text, most):
    shown = visible_line(text, most)
    assert len(shown) <= most
    assert not set(shown) & set("\n\r\t")


def test_lines_in_a_title_are_not_run_together():
    assert visible_line("make\n\n\nrm -rf x\n", 40) == "make⏎rm -rf x"
