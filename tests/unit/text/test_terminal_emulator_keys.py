"""Keys by name."""

import pytest

from handtools.text.terminal_emulator import UnknownTerminalKey, key_escape_sequence


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("enter", "\r"),
        ("Enter", "\r"),
        ("ctrl-c", "\x03"),
        ("Ctrl-D", "\x04"),
        ("ctrl-[", "\x1b"),
        ("alt-x", "\x1bx"),
        ("alt-X", "\x1bX"),
        ("up", "\x1b[A"),
        ("f5", "\x1b[15~"),
        ("shift-tab", "\x1b[Z"),
    ],
)
def test_a_key_sends_what_a_terminal_sends(name, sent):
    assert key_escape_sequence(name) == sent


@pytest.mark.parametrize("name", ["", "entr", "ctrl-", "ctrl-cc", "hyper-x", "x"])
def test_an_unknown_key_is_refused(name):
    with pytest.raises(UnknownTerminalKey):
        key_escape_sequence(name)
