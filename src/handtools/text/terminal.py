"""Terminal output as plain text: no escape sequences, progress bars as they look in the end."""

import codecs
import re
from collections.abc import Iterator
from itertools import takewhile

_SEQUENCE = re.compile(
    r"""\x1b\[ (?P<csi> [0-?]* [ -/]* [@-~])                     # cursor, colour, erase
      | (?:\x1b[\]PX^_] | [\x90\x98\x9d-\x9f]) .*? (?:\x1b\\|\x07|\x9c|\Z)  # titles, clipboards, links
      | \x1b [ -/]* [0-~] | \x9b [0-?]* [ -/]* [@-~]             # the others
      | [\x1b\x9b]""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f]")
_MOVES = re.compile("[\r\b\x1b]")
_ERASE_RIGHT, _ERASE_ALL = "\x1b", "\x1b\x1b"


def plain(text: str) -> str:
    """What a person would see: escape sequences gone, what was overwritten replaced."""
    if not _MOVES.search(text) and not _CONTROL.search(text) and "\x9b" not in text:
        return text
    bare = _CONTROL.sub("", _SEQUENCE.sub(_essence, text)).replace("\r\n", "\n")
    if not _MOVES.search(bare):
        return bare
    return "\n".join(_settled(line) if _MOVES.search(line) else line for line in bare.split("\n"))


def decoded(data: bytes, *, starts: bool = True, ends: bool = True) -> str:
    """Any bytes as text; where a piece was cut out of more, half a character at the cut is left out."""
    if not starts:
        inside = sum(1 for _ in takewhile(lambda byte: byte & 0xC0 == 0x80, data[:4]))
        data = data[inside:] if inside < 4 else data
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=ends)


def _essence(match: re.Match[str]) -> str:
    """Of all sequences only those that erase a line matter."""
    found = match["csi"] or ""
    if found in {"K", "0K"}:
        return _ERASE_RIGHT
    return _ERASE_ALL if found == "2K" else ""


def _settled(line: str) -> str:
    """One line after all overwriting."""
    cells: list[str] = []
    at = 0
    for move, piece in _steps(line):
        if move == "\r":
            at = 0
        elif move == "\b":
            at = max(at - 1, 0)
        elif move == _ERASE_RIGHT:
            del cells[at:]
        elif move == _ERASE_ALL:
            cells = [" "] * at
        cells.extend(" " * (at - len(cells)))
        cells[at : at + len(piece)] = piece
        at += len(piece)
    return "".join(cells).rstrip(" ") if "\r" in line else "".join(cells)


def _steps(line: str) -> Iterator[tuple[str, str]]:
    """Moves, each with the text that follows it."""
    for found in re.finditer("(\r|\b|\x1b\x1b|\x1b|^)([^\r\b\x1b]*)", line):
        yield found[1], found[2]
