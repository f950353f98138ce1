"""Views of a source file: an outline of its symbols, or all lines with function bodies folded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.lines import leading_blanks, without_line_ending
from handtools.text.numbered_page import ReadBudget
from handtools.text.truncation import clip_line

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
            text = _rows(lines, [head for head in symbols if head.depth <= depth])
            if budget.holds(text):
                return OutlineView(text, len(symbols) - rows)
        rows -= by_depth[depth]
    top = [head for head in symbols if head.depth == 0]
    count = min(len(top), budget.lines)
    while count > 1 and not budget.holds(_rows(lines, top[:count])):
        count = count * 3 // 4
    return OutlineView(_rows(lines, top[:count]), len(symbols) - count)


def fold_bodies(lines: Sequence[str], symbols: Sequence[OutlineSymbol]) -> list[str]:
    """Render all lines with numbers, with function bodies folded into a note of their line count."""
    rows = []
    folds = {head.body_line: head for head in symbols if _folds(head)}
    line = 1
    while line <= len(lines):
        head = folds.get(line)
        if head is None:
            rows.append(f"{line}\t{without_line_ending(lines[line - 1])}")
            line += 1
            continue
        closing = _closing(lines, head)
        indent = leading_blanks(lines[line - 1])
        rows.append(f"\t{indent}… {closing - line + 1} lines: {line}-{closing}")
        line = closing + 1
    return rows


def _folds(symbol: OutlineSymbol) -> bool:
    return (
        symbol.foldable
        and symbol.body_line is not None
        and symbol.end_line - symbol.body_line + 1 >= MIN_FOLDED_LINES
    )


def _closing(lines: Sequence[str], symbol: OutlineSymbol) -> int:
    """Return the last line of a body to fold; a closing bracket or `end` stays visible."""
    last = without_line_ending(lines[symbol.end_line - 1]).strip()
    return (
        symbol.end_line - 1 if (last[:1] in "})]" and last) or last.startswith("end") else symbol.end_line
    )


def _rows(lines: Sequence[str], symbols: Sequence[OutlineSymbol]) -> str:
    return "\n".join(_row(lines, head) for head in symbols)


def _row(lines: Sequence[str], symbol: OutlineSymbol) -> str:
    text = without_line_ending(lines[symbol.line - 1]).rstrip() if symbol.line <= len(lines) else ""
    span = (
        f"{symbol.start_line}-{symbol.end_line}"
        if symbol.end_line > symbol.start_line
        else f"{symbol.start_line}"
    )
    return f"{span}\t{clip_line(text, OUTLINE_ROW_CHARS)}"
