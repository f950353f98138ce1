"""Outlining: a long text by its heads, or whole with its bodies folded away."""

from collections.abc import Sequence
from dataclasses import dataclass

from handtools.text.clipping import clip_line
from handtools.text.lines import bare
from handtools.text.paging import Budget

HEAD_CHARS = 160
FOLDED_LINES = 4
"""A body of fewer lines is shown: folding it would save nothing."""


@dataclass(frozen=True, slots=True)
class Head:
    """A symbol as far as its lines go."""

    depth: int
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    foldable: bool
    """Whether its body is detail, rather than a list of more symbols."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A view of a text, and how much of it was left out for lack of room."""

    text: str
    left_out: int


def outlined(lines: Sequence[str], heads: Sequence[Head], budget: Budget) -> Shown:
    """One row per symbol: its line range and its head. The deepest go first when there is no room."""
    deepest = max((head.depth for head in heads), default=0)
    for depth in range(deepest, -1, -1):
        kept = [head for head in heads if head.depth <= depth]
        text = _rows(lines, kept)
        if budget.holds(text):
            return Shown(text, len(heads) - len(kept))
    top = [head for head in heads if head.depth == 0]
    count = len(top)
    while count > 1 and not budget.holds(_rows(lines, top[:count])):
        count = count * 3 // 4
    return Shown(_rows(lines, top[:count]), len(heads) - count)


def folded(lines: Sequence[str], heads: Sequence[Head]) -> list[str]:
    """Every line, numbered, but the bodies of functions: of those only how many lines they have."""
    rows = []
    folds = {head.body_line: head for head in heads if _folds(head)}
    line = 1
    while line <= len(lines):
        head = folds.get(line)
        if head is None:
            rows.append(f"{line:6}\t{bare(lines[line - 1])}")
            line += 1
            continue
        closing = _closing(lines, head)
        indent = _indent(lines[line - 1])
        rows.append(f"      \t{indent}… {closing - line + 1} lines: {line}-{closing}")
        line = closing + 1
    return rows


def _folds(head: Head) -> bool:
    return (
        head.foldable and head.body_line is not None and head.end_line - head.body_line + 1 >= FOLDED_LINES
    )


def _closing(lines: Sequence[str], head: Head) -> int:
    """The last line of the body: a bracket that closes it stays in sight."""
    last = bare(lines[head.end_line - 1]).strip()
    return head.end_line - 1 if (last[:1] in "})]" and last) or last.startswith("end") else head.end_line


def _rows(lines: Sequence[str], heads: Sequence[Head]) -> str:
    return "\n".join(_row(lines, head) for head in heads)


def _row(lines: Sequence[str], head: Head) -> str:
    text = bare(lines[head.line - 1]).rstrip() if head.line <= len(lines) else ""
    span = f"{head.start_line}-{head.end_line}" if head.end_line > head.start_line else f"{head.start_line}"
    return f"{span:>11}\t{clip_line(text, HEAD_CHARS)}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
