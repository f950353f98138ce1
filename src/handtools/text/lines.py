r"""Lines of a text as an editor counts them, ranges of lines, and columns in UTF-16 units.

Only ``\n``, ``\r\n`` and ``\r`` end a line.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import NamedTuple


@dataclass(frozen=True)
class SplicedText:
    """`text` with the characters from `start` to `end` replaced by `new`; supports `len` and slicing."""

    text: str
    start: int
    end: int
    new: str

    @cached_property
    def full_text(self) -> str:
        """The full spliced text as one string."""
        # `join` allocates the result once; concatenating with `+` would copy a large text twice.
        return "".join((self.text[: self.start], self.new, self.text[self.end :]))

    def __len__(self) -> int:
        return len(self.text) - (self.end - self.start) + len(self.new)

    def __getitem__(self, part: slice) -> str:
        start, stop, _ = part.indices(len(self))
        shift = self.start + len(self.new) - self.end
        return "".join(
            (
                self.text[start : min(stop, self.start)],
                self.new[max(start - self.start, 0) : max(stop - self.start, 0)],
                self.text[max(start - shift, self.end) : max(stop - shift, 0)],
            )
        )

    @property
    def is_unchanged(self) -> bool:
        """Whether the inserted text equals what it replaces, so that nothing changes."""
        return self.text[self.start : self.end] == self.new


BLANKS = " \t\f\v"
_ENDING = re.compile(r"\r\n|\n|\r")
TAB_STOP = 8


def split_lines(text: str) -> list[str]:
    """Split text into lines that keep their line endings, so that joining them restores the text."""
    # Runs in C and splits at exactly our three endings; `str.splitlines` also splits at form feeds and
    # U+2028.
    return list(StringIO(text, newline=""))


def without_line_ending(line: str) -> str:
    """Return a line without its line ending."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def split_lines_without_endings(text: str) -> list[str]:
    """Split text into lines without their line endings; in C, unlike `without_line_ending` of each line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def ending_of_line(line: str) -> str:
    """Return the line ending of a line; empty for a last line that has none."""
    return line[len(without_line_ending(line)) :]


def indentation_of_line(line: str) -> str:
    """The indentation of a line."""
    return line[: len(line) - len(line.lstrip(BLANKS))]


def indentation_width(blanks: str) -> int:
    """The width of an indentation, with tab stops every eight columns."""
    return len(blanks.expandtabs(TAB_STOP))


def count_line_ends(text: str, start: int = 0, end: int | None = None) -> int:
    """Count the line endings of a text between two offsets."""
    feeds = text.count("\n", start, end)
    returns = text.count("\r", start, end)
    return feeds + returns - text.count("\r\n", start, end) if returns else feeds


def count_lines(text: str) -> int:
    """Count the lines of a text."""
    return count_line_ends(text) + (text != "" and text[-1] not in "\r\n")


def dominant_ending(text: str) -> str:
    r"""Return the most frequent line ending of a text; ``\n`` if there is none or on a tie."""
    if "\r" not in text:
        return "\n"
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    returns = text.count("\r") - pairs
    if feeds >= pairs and feeds >= returns:
        return "\n"
    return "\r\n" if pairs >= returns else "\r"


def uniform_ending(text: str) -> str | None:
    """Return the line ending that all lines of a text have; None if they are mixed."""
    if "\r" not in text:
        return "\n"
    returns, feeds, pairs = text.count("\r"), text.count("\n"), text.count("\r\n")
    if pairs == returns == feeds:
        return "\r\n"
    return "\r" if not feeds else None


def convert_line_ends(text: str, end: str) -> str:
    """Convert every line ending of a text to `end`."""
    if "\r" not in text:
        return text if end == "\n" else text.replace("\n", end)
    return _ENDING.sub(end, text)


def line_number_at(text: str, offset: int) -> int:
    """Return the number, from 1, of the line that contains the character at an offset."""
    # The `\n` of a CRLF belongs to the line that the CRLF ends.
    inside_pair = text[max(offset - 1, 0) : offset + 1] == "\r\n"
    return count_line_ends(text, 0, offset - 1 if inside_pair else offset) + 1


def line_start_offset(text: str, offset: int) -> int:
    """Return the offset of the start of the line that contains the character at `offset`."""
    feed = text.rfind("\n", 0, offset)
    return max(feed, text.rfind("\r", feed + 1, offset)) + 1


def start_offset_of_line_number(text: str, line: int) -> int:
    """Return the offset of the start of a line, numbered from 1; the end of the text for lines beyond it.

    Raises `ValueError` for a number below 1.
    """
    if line < 1:
        raise ValueError(f"lines are numbered from 1, not {line}")
    if "\r" in text:
        for number, match in enumerate(_ENDING.finditer(text), 2):
            if number >= line > 1:
                return match.end()
        return 0 if line == 1 else len(text)
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
        if not offset:
            return len(text)
    return offset


def render_numbered_lines(lines: Sequence[str], start: int) -> str:
    """Render lines, with or without line endings, as rows of number, tab and text."""
    fed = bool(lines) and lines[0].endswith("\n")
    text = _numbered_text(lines, start, "" if fed else "\n")
    feeds = len(lines) - (fed and not lines[-1].endswith("\n"))
    if "\r" in text or text.count("\n") != feeds:
        text = _numbered_text([without_line_ending(line) for line in lines], start, "\n")
    return text.removesuffix("\n")


def _numbered_text(lines: Sequence[str], start: int, end: str) -> str:
    """Render numbered rows with one format operation, which is twice as fast as one for each row."""
    fields: list[int | str] = [0] * (2 * len(lines))
    fields[0::2] = range(start, start + len(lines))
    fields[1::2] = lines
    return f"%d\t%s{end}" * len(lines) % tuple(fields)


class LineRange(NamedTuple):
    """A range of lines, by first and last number, both included."""

    first: int
    last: int


def merged_line_ranges(ranges: Iterable[LineRange]) -> tuple[LineRange, ...]:
    """Sort ranges of lines and join those that overlap or touch."""
    joined_ranges: list[LineRange] = []
    for lines in sorted(ranges):
        if joined_ranges and lines.first <= joined_ranges[-1].last + 1:
            joined_ranges[-1] = LineRange(joined_ranges[-1].first, max(lines.last, joined_ranges[-1].last))
        else:
            joined_ranges.append(lines)
    return tuple(joined_ranges)


def utf16_column(line: str, column: int) -> int:
    """Convert a character column of a line to UTF-16 units, as language servers count."""
    head = line[:column]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


def column_of_utf16(line: str, units: int) -> int:
    """Convert a column in UTF-16 units to a character column; the end of the line for units beyond it."""
    if line.isascii():
        return min(units, len(line))
    data = line.encode("utf-16-le", "surrogatepass")[: 2 * units]
    return len(data.decode("utf-16-le", "ignore"))
