"""Naming: the paths in the headers of a diff."""

import re

_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
NOWHERE = "/dev/null"
_LONGEST_TITLE = 10_000


def unquoted(name: str) -> str:
    """A name as git writes it, with its escapes undone; a time stamp after a tab is left out."""
    if not (match := _QUOTED.match(name)):
        return name.partition("\t")[0].rstrip("\r")
    inner = match[0][1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_meant, inner).decode("utf-8", "surrogateescape")


def _meant(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else bytes([_LETTERS.get(code, code[0])])


def stripped(old: str, new: str) -> tuple[str, str]:
    """Both names without the `a/` and `b/` that diffs put before them; only where both have one."""
    # The same letter on both sides is a folder of that name.
    if _has_prefix(old) and _has_prefix(new) and old[0] != new[0]:
        return tuple(name if name == NOWHERE else name[2:] for name in (old, new))  # type: ignore[return-value]
    return old, new


def _has_prefix(name: str) -> bool:
    # `git diff` also writes i/, w/, c/ and o/ (diff.mnemonicPrefix).
    return name == NOWHERE or (name[1:2] == "/" and name[0] in "abciow")


def titled(rest: str) -> tuple[str, str] | None:
    """The two names after `diff --git`; None where they can't be told apart."""
    if match := re.fullmatch(rf"({_QUOTED.pattern}|\S+) ({_QUOTED.pattern}|\S+)", rest):
        return stripped(unquoted(match[1]), unquoted(match[2]))
    if len(rest) > _LONGEST_TITLE:
        return None
    # Names with spaces: the line is cut where both halves name the same file.
    for cut in (at for at, character in enumerate(rest) if character == " "):
        old, new = stripped(unquoted(rest[:cut]), unquoted(rest[cut + 1 :]))
        if old == new:
            return old, new
    return None
