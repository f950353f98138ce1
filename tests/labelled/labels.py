"""Labelled sources: a `§` ends a line of code, and after it stands what the parser should know about the line."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "breadcrumbs"
MARK = "§"


@dataclass(frozen=True)
class Labelled:
    """A source without its labels, and the labels by line."""

    path: str
    data: bytes
    labels: dict[int, str]

    def __str__(self) -> str:
        return self.path


def labelled(path: Path) -> Labelled:
    """Read one file: `python.py.txt` is a source called `python.py`."""
    rows = path.read_text("utf-8").split("\n")
    labels = {line: row.partition(MARK)[2].strip() for line, row in enumerate(rows, 1) if MARK in row}
    source = "\n".join(row.partition(MARK)[0].rstrip() if MARK in row else row for row in rows)
    return Labelled(path.name.removesuffix(".txt"), source.encode(), labels)


def every() -> list[Labelled]:
    """All labelled sources, by name."""
    return [labelled(path) for path in sorted(FOLDER.glob("*.txt"))]
