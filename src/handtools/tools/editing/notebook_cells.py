"""Edits of Jupyter notebooks: in the source of a cell, as a reader sees it, not in its JSON encoding."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from handtools.text.lines import SplicedText
from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    CharSpan,
    EditApplied,
    EditOutcome,
    EditRefused,
)
from handtools.tools.editing.replacement import replace_text

NOTEBOOK_SUFFIX = ".ipynb"
_INDENTS = (1, 2, 4, None)


def is_notebook(body: str) -> bool:
    """Whether a text is the JSON of a notebook with a valid list of cells."""
    return _parse_notebook(body) is not None


def replace_in_cells(body: str, old: str, new: str, *, every: bool = False) -> EditOutcome:
    """Replace text in the only cell that contains it, or with `every` in all cells that contain it.

    Text that is in no cell is replaced in the JSON itself, which must remain a valid notebook.
    """
    book = _parse_notebook(body)
    if book is None:
        return replace_text(body, old, new, every=every)
    found = {
        cell: replace_text(_cell_source(cell), old, new, every=every) for cell in _numbered_cells(book)
    }
    made = {cell: each for cell, each in found.items() if isinstance(each, EditApplied)}
    exact = {cell: each for cell, each in made.items() if each.tier == "exact"}
    chosen = exact or made
    if len(chosen) > 1 and not every:
        numbers = ", ".join(str(cell.number) for cell in chosen)
        return EditRefused(
            code="ambiguous",
            message=f"`old_string` is in cells {numbers}.",
            hint="Add surrounding lines from the cell you mean.",
        )
    if not chosen:
        there = [each for each in found.values() if isinstance(each, AlreadyApplied)]
        return there[0] if there else _replace_in_json(body, old, new, every=every)
    return _notebook_edit_outcome(body, book, chosen)


@dataclass(frozen=True, eq=False, slots=True)
class _Cell:
    """One cell: its number and its JSON object."""

    number: int
    content: dict[str, Any]


def _numbered_cells(book: dict[str, Any]) -> Iterator[_Cell]:
    for number, content in enumerate(book["cells"], 1):
        yield _Cell(number, content)


def _parse_notebook(body: str) -> dict[str, Any] | None:
    try:
        book = json.loads(body)
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not all(
        isinstance(cell, dict) and _has_text_source(cell) for cell in cells
    ):
        return None
    return dict(book)


def _has_text_source(cell: dict[str, Any]) -> bool:
    source = cell.get("source")
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(row, str) for row in source)
    )


def _cell_source(cell: _Cell) -> str:
    source = cell.content["source"]
    return source if isinstance(source, str) else "".join(source)


def _notebook_edit_outcome(body: str, book: dict[str, Any], made: dict[_Cell, EditApplied]) -> EditOutcome:
    layout = next(
        (each for each in product(_INDENTS, (False, True)) if _notebook_json(book, *each, body) == body),
        None,
    )
    if layout is None:
        return EditRefused(
            code="unclear",
            message="This notebook is not formatted as Jupyter does, so a single cell can't be changed.",
            hint="Save it from Jupyter first, or change it with a script.",
        )
    for cell, outcome in made.items():
        text, was = outcome.text, cell.content["source"]
        cell.content["source"] = (
            text
            if isinstance(was, str)
            else [f"{row}\n" for row in text.split("\n")[:-1]]
            + list(filter(None, [text.rpartition("\n")[2]]))
        )
    after = _notebook_json(book, *layout, body)
    start = _common_prefix_length(body, after)
    tail = _common_prefix_length(body[start:][::-1], after[start:][::-1])
    spliced = SplicedText(body, start, len(body) - tail, after[start : len(after) - tail])
    first = next(iter(made.values()))
    span = CharSpan(start, len(body) - tail)
    numbers = ", ".join(str(cell.number) for cell in made)
    note = f"in the source of cell {numbers}; its outputs are unchanged"
    return EditApplied(spliced=spliced, tier=first.tier, spans=(span,), notes=(*first.notes, note))


def _common_prefix_length(one: str, other: str) -> int:
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _notebook_json(book: dict[str, Any], indent: int | None, ascii_only: bool, like: str) -> str:  # noqa: FBT001
    end = "\n" if like.endswith("\n") else ""
    return json.dumps(book, indent=indent, ensure_ascii=ascii_only) + end


def _replace_in_json(body: str, old: str, new: str, *, every: bool) -> EditOutcome:
    outcome = replace_text(body, old, new, every=every)
    if isinstance(outcome, EditApplied) and outcome.tier == "exact" and is_notebook(outcome.text):
        return outcome
    if isinstance(outcome, EditApplied):
        return EditRefused(
            code="not_found",
            message="`old_string` is in no cell of this notebook.",
            hint="Read it again, and copy from a cell's source; outputs can't be edited.",
        )
    return outcome
