"""Views of a source file: an outline of its symbols, folded bodies, or lines of a large file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.encoding import decode
from handtools.text.lines import indentation_of_line, without_line_ending
from handtools.text.numbered_page import ReadBudget
from handtools.text.truncation import clip_line


@dataclass(frozen=True, slots=True)
class LargeTextEncoding:
    """How to read a large file: its line ending, and its encoding if that is UTF-16 or UTF-32."""

    end: bytes = b"\n"
    r"""The line ending: `\n`, or `\r` in a file that has no other."""
    wide: str = ""
    """The encoding of the file if it is UTF-16 or UTF-32; otherwise empty."""

    @classmethod
    def detect(cls, head: bytes) -> "LargeTextEncoding":
        """Detect the line ending and encoding from the first bytes of a file."""
        encoding = decode(head).encoding
        wide = encoding if encoding.startswith(("utf-16", "utf-32")) else ""
        known = cls(wide=wide).to_utf8(head)
        return cls(b"\r" if b"\r" in known and b"\n" not in known else b"\n", wide)

    def to_utf8(self, window: bytes) -> bytes:
        """Convert a window of UTF-16 or UTF-32 bytes to UTF-8; other bytes are unchanged."""
        if not self.wide:
            return window
        return window.decode(self.wide, "replace").removeprefix("\ufeff").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class LargeFileIndex:
    """Index of a large file: how many line endings each window of bytes has."""

    counts: Sequence[int]
    ended: bool
    """Whether the last line of the file has a line ending."""
    encoding: LargeTextEncoding = LargeTextEncoding()
    bytes: int = 0

    @property
    def total(self) -> int:
        """The number of lines of the file."""
        return sum(self.counts) + (not self.ended)

    def window_of_line(self, line: int) -> tuple[int, int]:
        """Locate the start of a line: its window's number, and how many line endings to skip in it."""
        before = line - 1
        for window, count in enumerate(self.counts):
            if before <= count:
                return window, before
            before -= count
        return len(self.counts), 0


def bytes_after_skipped_lines(data: bytes, ends: int, end: bytes = b"\n") -> bytes:
    """Return the bytes of a window after its first `ends` line endings."""
    start = 0
    for _ in range(ends):
        start = data.find(end, start) + 1
    return data[start:]


def cut_at_character(data: bytes, max_bytes: int) -> bytes:
    """Cut UTF-8 bytes to at most `max_bytes`, without splitting a character."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(max_bytes - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


OUTLINE_ROW_CHARS = 160
MIN_FOLDED_LINES = 4
"""Function bodies of fewer lines than this are shown, not folded."""


@dataclass(frozen=True, slots=True)
class OutlineSymbol:
    """The line numbers of one symbol in an outline: its range, its head and where its body begins."""

    depth: int
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    foldable: bool
    """Whether the body can be folded: true for a function, false for a class, whose members are listed."""


@dataclass(frozen=True, slots=True)
class OutlineView:
    """A rendered view of a text, and how many symbols were left out because they did not fit."""

    text: str
    left_out: int


def render_outline(
    lines: Sequence[str], symbols: Sequence[OutlineSymbol], budget: ReadBudget
) -> OutlineView:
    """Render an outline with a row per symbol (line range and head); leave out the deepest to fit."""
    by_depth = Counter(head.depth for head in symbols)
    rows = len(symbols)
    for depth in sorted(by_depth, reverse=True):
        # Skip rendering if there are too many rows: there can be tens of thousands, at tens of depths.
        if rows <= budget.lines:
            text = _rows_text(lines, [head for head in symbols if head.depth <= depth])
            if budget.has_room_for(text):
                return OutlineView(text, len(symbols) - rows)
        rows -= by_depth[depth]
    top = [head for head in symbols if head.depth == 0]
    count = min(len(top), budget.lines)
    while count > 1 and not budget.has_room_for(_rows_text(lines, top[:count])):
        count = count * 3 // 4
    return OutlineView(_rows_text(lines, top[:count]), len(symbols) - count)


def fold_bodies(lines: Sequence[str], symbols: Sequence[OutlineSymbol]) -> list[str]:
    """Render all lines with numbers, with function bodies folded into a note of their line count."""
    rows = []
    folds = {head.body_line: head for head in symbols if _is_folded(head)}
    line = 1
    while line <= len(lines):
        head = folds.get(line)
        if head is None:
            rows.append(f"{line}\t{without_line_ending(lines[line - 1])}")
            line += 1
            continue
        closing = _last_folded_line(lines, head)
        indent = indentation_of_line(lines[line - 1])
        rows.append(f"\t{indent}… {closing - line + 1} lines: {line}-{closing}")
        line = closing + 1
    return rows


def _is_folded(symbol: OutlineSymbol) -> bool:
    return (
        symbol.foldable
        and symbol.body_line is not None
        and symbol.end_line - symbol.body_line + 1 >= MIN_FOLDED_LINES
    )


def _last_folded_line(lines: Sequence[str], symbol: OutlineSymbol) -> int:
    """Return the last line of a body to fold; a closing bracket or `end` stays visible."""
    last = without_line_ending(lines[symbol.end_line - 1]).strip()
    return (
        symbol.end_line - 1 if (last[:1] in "})]" and last) or last.startswith("end") else symbol.end_line
    )


def _rows_text(lines: Sequence[str], symbols: Sequence[OutlineSymbol]) -> str:
    return "\n".join(_symbol_row(lines, head) for head in symbols)


def _symbol_row(lines: Sequence[str], symbol: OutlineSymbol) -> str:
    text = without_line_ending(lines[symbol.line - 1]).rstrip() if symbol.line <= len(lines) else ""
    span = (
        f"{symbol.start_line}-{symbol.end_line}"
        if symbol.end_line > symbol.start_line
        else f"{symbol.start_line}"
    )
    return f"{span}\t{clip_line(text, OUTLINE_ROW_CHARS)}"
