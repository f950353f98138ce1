"""What programs print to a terminal: a screen of its size, and text without control characters."""

from handtools.text.terminal_emulator import (
    TerminalScreen,
    UnknownTerminalKey,
    decode_output,
    key_escape_sequence,
    plain_output,
)
from tests.fuzz.drawn_values import DrawnValues

SEEDS = [
    b"\x05\x0a\x1b[2J\x1b[1;1Hhello\x1b[31mred\x1b[0m\r\n\x1b[K\x1b]0;t\x07\x1b(0qx\x1b(B\xe6\x97\xa5e\xcc\x81\t\b",
    b"\x02\x03\x1b[?1049h\x1b[2;3r\x1b[9999L\x1b[5@\x1b[4P\x1b[3X\x1bM\x1bD\x1b7\x1b8\x1bc\x9b1A\x1b[?1049l",
    b"\x00\x0050%\r100%\n\x1b[1A\x1b[2Kdone",
]
WORDS = ["\x1b[", "\x1b]", "\x07", "\x1b\\", "\x1bM", "\x1b[?1049h", "\x1b[1;1H", "\x1b[2J", "\x9b", "\r", "\b", "\u65e5", "\u0301",
         "C-a", "enter", "99999999999"]  # fmt: skip
PARSERS = ["handtools.text.terminal_emulator"]
FOUND = {
    "an escape sequence with thousands of digits ended in ValueError": b"\x05\x05\x1b["
    + b"9" * 5000
    + b"A",
}


def fuzz(data):
    drawn = DrawnValues(data)
    rows, columns = 1 + drawn.below(30), 1 + drawn.below(100)
    output = drawn.rest()
    text = decode_output(output)
    decode_output(output, starts=False, ends=False)
    left = set(plain_output(text)) - {"\n", "\t"}
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in left)
    screen = TerminalScreen(rows, columns)
    screen.draw_output(text)
    assert len(screen.text_lines()) <= rows
    assert 0 <= screen.row < rows
    assert 0 <= screen.column <= columns
    assert all(len(row) == columns for row in screen._cells)
    try:
        key_escape_sequence(text[:20])
    except UnknownTerminalKey:
        return
