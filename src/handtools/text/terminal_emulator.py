"""Terminal emulation: output as plain text, the screen a program draws, and key escape sequences."""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
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


def plain_output(text: str) -> str:
    """Turn terminal output into plain text: remove escape sequences, apply overwriting and erasing."""
    if not _MOVES.search(text) and not _CONTROL.search(text) and "\x9b" not in text:
        return text
    bare = _CONTROL.sub("", _SEQUENCE.sub(_erasure_mark, text)).replace("\r\n", "\n")
    if not _MOVES.search(bare):
        return bare
    return "\n".join(_rendered_line(line) if _MOVES.search(line) else line for line in bare.split("\n"))


def decode_output(data: bytes, *, starts: bool = True, ends: bool = True) -> str:
    """Decode output as UTF-8, with replacement characters for invalid bytes.

    With `starts` or `ends` False, the output was cut there, so an incomplete character at that end is
    dropped.
    """
    if not starts:
        inside = sum(1 for _ in takewhile(lambda byte: byte & 0xC0 == 0x80, data[:4]))
        data = data[inside:] if inside < 4 else data
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=ends)


def _erasure_mark(match: re.Match[str]) -> str:
    """Reduce an escape sequence to a mark if it erases a line; otherwise to nothing."""
    found = match["csi"] or ""
    if found in {"K", "0K"}:
        return _ERASE_RIGHT
    return _ERASE_ALL if found == "2K" else ""


def _rendered_line(line: str) -> str:
    """Return one line of output after applying its carriage returns, backspaces and erasures."""
    cells: list[str] = []
    at = 0
    for move, piece in _cursor_moves_and_texts(line):
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


def _cursor_moves_and_texts(line: str) -> Iterator[tuple[str, str]]:
    """Yield the cursor moves of a line, each with the text that follows it."""
    for found in re.finditer("(\r|\b|\x1b\x1b|\x1b|^)([^\r\b\x1b]*)", line):
        yield found[1], found[2]


_NAMED = {
    "enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ", "delete": "\x1b[3~",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "insert": "\x1b[2~", "shift-tab": "\x1b[Z",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
    "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}  # fmt: skip
KEY_NAMES_IN_HINT = (*_NAMED, "ctrl-a … ctrl-z", "alt-x")


class UnknownTerminalKey(ValueError):
    """Raised if no terminal key has the given name."""


def key_escape_sequence(name: str) -> str:
    """Return the characters that a terminal sends for a key such as `enter`, `up` or `ctrl-c`.

    Raises `UnknownTerminalKey`.
    """
    key = name.strip().lower()
    if key in _NAMED:
        return _NAMED[key]
    modifier, _, letter = key.rpartition("-")
    if modifier == "ctrl" and len(letter) == 1 and "@" <= letter.upper() <= "_":
        return chr(ord(letter.upper()) & 0x1F)
    if modifier == "alt" and len(letter) == 1:
        return f"\x1b{name.strip()[-1]}"
    raise UnknownTerminalKey(name)


_TOKEN = re.compile(
    r"""(?P<text> [^\x00-\x1f\x7f-\x9f]+)
      | \x1b\[ (?P<mark> [<-?]?) (?P<numbers> [0-9;:]*) [ -/]* (?P<final> [@-~])
      | \x1b[\]PX^_] .*? (?:\x1b\\|\x07|\Z)
      | \x1b (?P<set> [()*+]) (?P<charset> .)
      | \x1b (?P<escape> [ -/]* [0-~])
      | (?P<control> [\x00-\x1f\x7f-\x9f])""",
    re.VERBOSE | re.DOTALL,
)
_BOX = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_TAB = 8
_MAX_STEPS = 10_000
"""Maximum number of cells that one escape sequence moves or erases; real programs stay below this."""


@dataclass(slots=True)
class TerminalScreen:
    """A terminal screen: rows of cells and a cursor, drawn on by program output with escape sequences.

    A cell contains a character with its accents; the right half of a wide character is an empty cell.
    """

    rows: int
    columns: int
    row: int = 0
    column: int = 0
    _cells: list[list[str]] = field(default_factory=list)
    _top: int = 0
    _bottom: int = 0
    _saved: tuple[int, int] = (0, 0)
    _aside: list[list[str]] | None = None
    """The cells of the main screen while a program uses the alternate screen; otherwise None."""
    _boxes: bool = False
    _wraps: bool = False
    """Whether the cursor is past the last column, so that the next character wraps to a new line."""

    def __post_init__(self) -> None:
        self._reset_screen()

    def draw_output(self, text: str) -> None:
        """Draw output on the screen; an incomplete escape sequence at the end is dropped."""
        for token in _TOKEN.finditer(text):
            if token["text"]:
                self._write_characters(token["text"].translate(_BOX) if self._boxes else token["text"])
            elif token["final"]:
                self._execute_csi_sequence(token["mark"], token["numbers"], token["final"])
            elif token["set"] == "(":
                self._boxes = token["charset"] == "0"
            elif token["escape"]:
                self._execute_escape(token["escape"])
            elif token["control"]:
                self._execute_control_character(token["control"])

    def text_lines(self) -> list[str]:
        """The lines of text on the screen, without trailing blanks and without empty lines at the end."""
        shown = ["".join(row).rstrip() for row in self._cells]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def _reset_screen(self) -> None:
        self._cells = [self._blank_row() for _ in range(self.rows)]
        self.row = self.column = self._top = 0
        self._bottom = self.rows - 1
        self._boxes = self._wraps = False

    def _blank_row(self) -> list[str]:
        return [" "] * self.columns

    def _write_characters(self, text: str) -> None:
        for character in text:
            width = _cell_width(character)
            if not width:
                self._add_combining_mark(character)
                continue
            if self._wraps or self.column + width > self.columns:
                self.column = 0
                self._move_to_next_line()
            self._wraps = False
            row = self._cells[self.row]
            row[self.column] = character
            if width == 2 and self.column + 1 < self.columns:
                row[self.column + 1] = ""
            self.column += width
            if self.column >= self.columns:
                self.column, self._wraps = self.columns - 1, True

    def _add_combining_mark(self, character: str) -> None:
        at = self.column if self._wraps else self.column - 1
        if at >= 0:
            self._cells[self.row][at] += character

    def _execute_control_character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character in "\n\v\f":
            self._move_to_next_line()
        elif character == "\b":
            self.column = max(self.column - 1, 0)
        elif character == "\t":
            self.column = min((self.column // _TAB + 1) * _TAB, self.columns - 1)
        self._wraps = False

    def _move_to_next_line(self) -> None:
        if self.row == self._bottom:
            self._scroll(1)
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def _scroll(self, count: int) -> None:
        """Scroll the lines of the scroll region up, or down for a negative count."""
        for _ in range(min(abs(count), self.rows)):
            self._cells.pop(self._top if count > 0 else self._bottom)
            self._cells.insert(self._bottom if count > 0 else self._top, self._blank_row())

    def _execute_escape(self, code: str) -> None:
        if code == "7":
            self._saved = (self.row, self.column)
        elif code == "8":
            self._move_cursor(*self._saved)
        elif code == "c":
            self._reset_screen()
        elif code in {"D", "E"}:
            self.column = 0 if code == "E" else self.column
            self._move_to_next_line()
        elif code == "M":
            if self.row == self._top:
                self._scroll(-1)
            else:
                self.row = max(self.row - 1, 0)

    def _execute_csi_sequence(self, mark: str, numbers: str, final: str) -> None:
        given = [min(int(n[:9]), _MAX_STEPS) if n.isdigit() else 0 for n in re.split("[;:]", numbers)]
        if mark == "?" and final in "hl":
            self._switch_alternate_screen(given, on=final == "h")
        elif not mark:
            self._wraps = False
            self._execute_cursor_move(final, given[0] or 1, (given[1] if len(given) > 1 else 0) or 1)
            self._execute_screen_change(final, given)

    def _execute_cursor_move(self, final: str, count: int, second: int) -> None:
        """Execute an escape sequence that moves the cursor."""
        match final:
            case "A" | "F":
                self._move_cursor(self.row - count, 0 if final == "F" else self.column)
            case "B" | "E":
                self._move_cursor(self.row + count, 0 if final == "E" else self.column)
            case "C":
                self._move_cursor(self.row, self.column + count)
            case "D":
                self._move_cursor(self.row, self.column - count)
            case "G" | "`":
                self._move_cursor(self.row, count - 1)
            case "d":
                self._move_cursor(count - 1, self.column)
            case "H" | "f":
                self._move_cursor(count - 1, second - 1)
            case "s" | "u":
                self._execute_escape("7" if final == "s" else "8")

    def _execute_screen_change(self, final: str, given: list[int]) -> None:
        """Execute an escape sequence that changes the screen: erase, insert, delete, scroll."""
        count = given[0] or 1
        match final:
            case "J":
                self._erase_screen(given)
            case "K":
                self._erase_line(given)
            case "L" | "M":
                self._shift_lines(count if final == "L" else -count)
            case "S" | "T":
                self._scroll(count if final == "S" else -count)
            case "@" | "P":
                self._shift_cells(count if final == "@" else -count)
            case "X":
                self._erase_cells(count)
            case "r":
                self._set_scroll_region(given)

    def _switch_alternate_screen(self, modes: list[int], *, on: bool) -> None:
        """Switch to the alternate screen, on which editors and pagers draw, or back."""
        if not {47, 1047, 1049}.intersection(modes) or on == (self._aside is not None):
            return
        if on:
            self._aside, self._saved = self._cells, (self.row, self.column)
            self._cells = [self._blank_row() for _ in range(self.rows)]
        else:
            assert self._aside is not None
            self._cells, self._aside = self._aside, None
            self._move_cursor(*self._saved)

    def _move_cursor(self, row: int, column: int) -> None:
        self.row = min(max(row, 0), self.rows - 1)
        self.column = min(max(column, 0), self.columns - 1)
        self._wraps = False

    def _erase_line(self, given: list[int]) -> None:
        start = 0 if given[0] else self.column
        end = self.column + 1 if given[0] == 1 else self.columns
        self._cells[self.row][start:end] = [" "] * (end - start)

    def _erase_screen(self, given: list[int]) -> None:
        self._erase_line(given)
        above, below = given[0] in {1, 2, 3}, given[0] != 1
        for number in range(self.rows):
            if (above and number < self.row) or (below and number > self.row):
                self._cells[number] = self._blank_row()

    def _shift_lines(self, count: int) -> None:
        """Insert empty lines at the cursor, or delete lines for a negative count."""
        if self._top <= self.row <= self._bottom:
            kept, self._top = self._top, self.row
            self._scroll(-count)
            self._top = kept
            self.column = 0

    def _shift_cells(self, count: int) -> None:
        """Insert blanks at the cursor, or delete cells for a negative count."""
        row = self._cells[self.row]
        if count > 0:
            row[self.column : self.column] = [" "] * min(count, self.columns)
        else:
            del row[self.column : self.column - count]
        self._cells[self.row] = (row + self._blank_row())[: self.columns]

    def _set_scroll_region(self, given: list[int]) -> None:
        top, bottom = (given[0] or 1) - 1, (given[1] if len(given) > 1 else 0) or self.rows
        if top < bottom <= self.rows:
            self._top, self._bottom = top, bottom - 1
            self._move_cursor(0, 0)

    def _erase_cells(self, count: int) -> None:
        end = min(self.column + count, self.columns)
        self._cells[self.row][self.column : end] = [" "] * (end - self.column)


def _cell_width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or character in "\u200b\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
