"""Judging: what of a document a converted page still holds, read as a Markdown reader would."""

import re
from dataclasses import dataclass

from bench.web.documents import Code, Document, Table

_FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1`*[ \t]*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Lost:
    """What is no longer there."""

    headings: tuple[str, ...]
    fences: tuple[str, ...]
    tables: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.headings or self.fences or self.tables)


def lost(document: Document, markdown: str) -> Lost:
    """Headings in order and of their rank, samples letter by letter, tables cell by cell."""
    samples = [found[3] for found in _FENCE.finditer(markdown)]
    prose = _FENCE.sub("", markdown)
    return Lost(
        tuple(_missing([_heading(*each) for each in document.headings], _headings(prose))),
        tuple(
            _missing([_trimmed(each.text) for each in document.every(Code)], [_trimmed(s) for s in samples])
        ),
        tuple(_missing([_rows(each) for each in document.every(Table)], _tables(prose))),
    )


def _missing(wanted: list[str], found: list[str]) -> list[str]:
    """Those that do not come, in this order, in what was found."""
    gone, rest = [], iter(found)
    for each in wanted:
        remaining = list(rest)
        if each in remaining:
            rest = iter(remaining[remaining.index(each) + 1 :])
        else:
            gone.append(each)
            rest = iter(remaining)
    return gone


def _heading(level: int, title: str) -> str:
    return f"{'#' * level} {title}"


def _headings(prose: str) -> list[str]:
    plain = [
        (found[1], re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[2])) for found in _HEADING.finditer(prose)
    ]
    return [f"{marks} {title.removeprefix('Struct ').strip(' ¶')}" for marks, title in plain]


def _trimmed(sample: str) -> str:
    return "\n".join(line.rstrip() for line in sample.strip("\n").split("\n"))


def _rows(table: Table) -> str:
    return "\n".join(" | ".join(cell.strip() for cell in row) for row in (table.head, *table.rows))


def _tables(prose: str) -> list[str]:
    """Every block of rows, its ruler left out."""
    tables = []
    for block in re.findall(r"(?:^\|.*\|[ \t]*\n?)+", prose, re.MULTILINE):
        rows = [_cells(row) for row in block.strip().split("\n")]
        tables.append("\n".join(" | ".join(row) for row in [rows[0], *rows[2:]]))
    return tables


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    cells = re.split(r"(?<!\\)\|", inner)
    return [re.sub(r"[`\\]", "", cell).strip() for cell in cells]
