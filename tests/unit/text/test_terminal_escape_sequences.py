"""Terminal output as plain text."""

import pytest

from handtools.text.terminal_emulator import decode_output, plain_output


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;5;12mblue\x1b[m", "blue"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]52;c;c2VjcmV0\x1b\\after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPsixel\x1b\\after", "after"),
        ("\x9b31mred", "red"),
        ("\x1b(Btext", "text"),
        ("\x1b[?25l10%\r20%\r100%\x1b[?25h\n", "100%\n"),
        ("a long line\rshort\n", "shortg line\n"),
        ("a long line\r\x1b[Kshort\n", "short\n"),
        ("a long line\x1b[2K\rshort\n", "short\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("typo\b\b\b\bfine", "fine"),
        ("ring\x07 nul\x00", "ring nul"),
        ("tab\tstays", "tab\tstays"),
        ("cut \x1b", "cut "),
        ("one\n\rtwo", "one\ntwo"),
    ],
)
def test_what_a_person_would_see(given, shown):
    assert plain_output(given) == shown


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        (b"abc", {}, "abc"),
        ("aé".encode()[:-1], {}, "a\ufffd"),
        ("aé".encode()[:-1], {"ends": False}, "a"),
        ("éa".encode()[1:], {"starts": False}, "a"),
        ("€a".encode()[1:], {"starts": False}, "a"),
        (b"\xff\xfe", {}, "\ufffd\ufffd"),
        (b"\x80\x80\x80\x80", {"starts": False}, "\ufffd" * 4),
    ],
)
def test_half_a_character_is_left_out_only_at_a_cut(data, options, text):
    assert decode_output(data, **options) == text
