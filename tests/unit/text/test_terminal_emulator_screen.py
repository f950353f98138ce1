"""What a terminal would show."""

import pytest

from handtools.text.terminal_emulator import TerminalScreen


def shown(text: str, rows: int = 4, columns: int = 10) -> list[str]:
    screen = TerminalScreen(rows, columns)
    screen.draw_output(text)
    return screen.text_lines()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("hi", ["hi"]),
        ("one\r\ntwo", ["one", "two"]),
        ("one\ntwo", ["one", "   two"]),
        ("0123456789ab", ["0123456789", "ab"]),
        ("0123456789\r\nx", ["0123456789", "x"]),
        ("1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"]),
        ("\x1b[2;3Hx", ["", "  x"]),
        ("abc\x1b[2Dx", ["axc"]),
        ("abcdef\x1b[3G\x1b[K", ["ab"]),
        ("abcdef\x1b[3G\x1b[1K", ["   def"]),
        ("abcdef\r\x1b[2P", ["cdef"]),
        ("abc\r\x1b[2@x", ["x abc"]),
        ("abcdef\r\x1b[3X", ["   def"]),
        ("1\r\n2\r\n3\x1b[H\x1b[M", ["2", "3"]),
        ("1\r\n2\r\n3\x1b[2H\x1b[L", ["1", "", "2", "3"]),
        ("1\r\n2\r\n3\x1b[2J", []),
        ("1\r\n2\r\n3\x1b[2;1H\x1b[J", ["1"]),
        ("1\r\n2\r\n3\x1b[2;1H\x1b[1J", ["", "", "3"]),
        ("shell\x1b[?1049h\x1b[Heditor\x1b[?1049l$", ["shell$"]),
        ("shell\x1b[?1049h\x1b[Heditor", ["editor"]),
        ("\x1b[2;3r\x1b[3;1Ha\r\nb\r\nc", ["", "b", "c"]),
        ("\x1bMtop", ["top"]),
        ("a\x1b7bc\x1b8x", ["axc"]),
        ("a\x1b[sbc\x1b[ux", ["axc"]),
        ("\x1b(0lqk\x1b(B", ["┌─┐"]),
        ("a\tb", ["a       b"]),
        ("日本", ["日本"]),
        ("12345678日本", ["12345678日", "本"]),
        ("e\u0301x", ["e\u0301x"]),
        ("\x1b]0;title\x07x", ["x"]),
        ("\x1b[31mred\x1b[0m", ["red"]),
        ("gone\x1bcnew", ["new"]),
        ("1\r\n2\r\n3\r\n4\x1b[2S", ["3", "4"]),
        ("1\r\n2\x1b[T", ["", "1", "2"]),
        ("x\x1b[99999999Cy", ["x        y"]),
    ],
)
def test_the_screen_after_some_output(text, lines):
    assert shown(text) == lines


def test_the_cursor_is_where_the_next_character_goes():
    screen = TerminalScreen(4, 10)
    screen.draw_output("ab\r\nc")
    assert (screen.row, screen.column) == (1, 1)
