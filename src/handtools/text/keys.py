"""Keys: names that people use for them, and what a terminal sends."""

_NAMED = {
    "enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ", "delete": "\x1b[3~",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "insert": "\x1b[2~", "shift-tab": "\x1b[Z",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
    "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}  # fmt: skip
NAMES = (*_NAMED, "ctrl-a … ctrl-z", "alt-x")


class UnknownKey(ValueError):
    """No key has that name."""


def pressed(name: str) -> str:
    """What a terminal sends for a key."""
    key = name.strip().lower()
    if key in _NAMED:
        return _NAMED[key]
    modifier, _, letter = key.rpartition("-")
    if modifier == "ctrl" and len(letter) == 1 and "@" <= letter.upper() <= "_":
        return chr(ord(letter.upper()) & 0x1F)
    if modifier == "alt" and len(letter) == 1:
        return f"\x1b{name.strip()[-1]}"
    raise UnknownKey(name)
