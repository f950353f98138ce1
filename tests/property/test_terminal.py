"""Terminal output of any kind."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.terminal_emulator import TerminalScreen, decode_output, plain_output

PIECES = st.sampled_from(
    [
        "\x1b[",
        "\x1b]",
        "\x1b",
        "\r",
        "\n",
        "\b",
        "\t",
        ";",
        "?",
        "K",
        "J",
        "H",
        "m",
        "2",
        "1049h",
        "\x07",
        "\x9b",
        "日",
        "a",
    ]
)
OUTPUT = st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join))


@given(OUTPUT)
def test_plain_text_has_no_control_characters_left(text):
    left = set(plain_output(text)) - {"\n", "\t"}
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in left)


@given(OUTPUT)
def test_plain_text_stays_as_it_is(text):
    once = plain_output(text)
    assert plain_output(once) == once


@given(st.text(st.characters(blacklist_categories=["Cc", "Cs"])))
def test_text_without_control_characters_is_not_touched(text):
    assert plain_output(text) == text


@given(st.text(st.characters(blacklist_categories=["Cs"])), st.integers(0, 200))
def test_a_cut_loses_no_whole_character(text, at):
    data = text.encode()
    first, second = decode_output(data[:at], ends=False), decode_output(data[at:], starts=False)
    assert text.startswith(first)
    assert text.endswith(second)
    assert len(text) - len(first) - len(second) <= 1


@given(st.binary(max_size=200))
def test_any_bytes_are_text(data):
    decode_output(data).encode()
    decode_output(data, starts=False, ends=False).encode()


@given(OUTPUT, st.integers(1, 6), st.integers(2, 12))
def test_a_screen_holds_any_output(text, rows, columns):
    screen = TerminalScreen(rows, columns)
    screen.draw_output(text)
    assert len(screen.text_lines()) <= rows
    assert 0 <= screen.row < rows
    assert 0 <= screen.column < columns
    assert all(len(row) == columns for row in screen._cells)


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=9), max_size=4))
def test_lines_that_fit_are_shown_as_they_are(rows):
    screen = TerminalScreen(5, 10)
    screen.draw_output("".join(f"{row}\r\n" for row in rows))
    expected = [row.rstrip() for row in rows]
    while expected and not expected[-1]:
        expected.pop()
    assert screen.text_lines() == expected
