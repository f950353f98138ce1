"""Documents of the kind that documentation is made of, drawn from a seed: what a converted page must hold."""

import random
from dataclasses import dataclass, field
from typing import TypeVar

WORDS = (
    "the",
    "a",
    "buffer",
    "reader",
    "session",
    "returns",
    "opens",
    "whole",
    "value",
    "option",
    "default",
    "when",
    "each",
    "field",
    "before",
    "after",
    "lock",
    "worker",
    "queue",
    "may",
    "never",
    "again",
    "first",
    "last",
    "limit",
    "path",
    "name",
    "table",
    "row",
    "every",
    "other",
    "without",
    "holds",
    "keeps",
    "changes",
    "order",
)
NAMES = (
    "open_session",
    "Reader",
    "flush",
    "max_items",
    "on_close",
    "Frame::next",
    "retry",
    "parse<T>",
    "--dry-run",
    "$HOME",
)
PROGRAMS = {
    "python": (
        "def area(width: int) -> int:\n    # not a heading\n    if width < 0 and width > -9:\n        return 0\n\n"
        "    return width & 7\n"
    ),
    "bash": "# install it\n$ tool init --name=demo && tool run > out.txt\n",
    "rust": 'fn main() {\n    let items: Vec<&str> = vec!["a", "b"];\n\n    println!("{}", items.len());\n}\n',
    "java": "public class Demo {\n    Map<String, List<Integer>> seen = new HashMap<>();\n}\n",
    "json": '{\n  "name": "demo",\n  "tags": ["a", "b"],\n  "text": "1 < 2 & 3"\n}\n',
    "yaml": 'steps:\n  - run: make\n\n  # keep this\n  - name: "x: y"\n',
    "markdown": "# Title in a sample\n\n```\nfence in a fence\n```\n\n| not | a table |\n",
    "diff": "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-old\n+new\n",
    "text": "usage: demo [-h] FILE\n\n    -h    help\n",
}


@dataclass(frozen=True)
class Paragraph:
    """Words, some of them marked."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """A sample."""

    language: str
    text: str
    numbered: bool = False
    """Whether the site shows line numbers beside it."""


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Points:
    """A list."""

    items: tuple[str, ...]


Block = Paragraph | Code | Table | Points
Kind = TypeVar("Kind", Paragraph, Code, Table, Points)


@dataclass(frozen=True)
class Part:
    """A heading with what is below it."""

    level: int
    title: str
    blocks: tuple[Block, ...]


@dataclass
class Document:
    """A whole page."""

    title: str
    parts: list[Part] = field(default_factory=list)

    @property
    def headings(self) -> list[tuple[int, str]]:
        return [(1, self.title), *((part.level, part.title) for part in self.parts)]

    def every(self, kind: type[Kind]) -> list[Kind]:
        return [block for part in self.parts for block in part.blocks if isinstance(block, kind)]


def document(seed: int, parts: int) -> Document:
    """Draw a page."""
    draw = random.Random(seed)
    made = Document(f"{_title(draw)} {seed}")
    level = 2
    for number in range(parts):
        level = 2 if number == 0 else draw.choice([2, min(level + 1, 4), level])
        made.parts.append(Part(level, f"{_title(draw)} {number}", tuple(_blocks(draw))))
    return made


def _blocks(draw: random.Random) -> list[Block]:
    kinds = draw.choices(
        ["paragraph", "code", "table", "points"], weights=[4, 3, 1, 1], k=draw.randint(2, 5)
    )
    return [_block(draw, kind) for kind in ["paragraph", *kinds]]


def _block(draw: random.Random, kind: str) -> Block:
    if kind == "code":
        language = draw.choice([*PROGRAMS])
        return Code(language, PROGRAMS[language], numbered=draw.random() < 0.2)
    if kind == "table":
        width = draw.randint(2, 4)
        rows = [tuple(_cell(draw) for _ in range(width)) for _ in range(draw.randint(1, 6))]
        return Table(tuple(_title(draw) for _ in range(width)), tuple(rows))
    if kind == "points":
        return Points(tuple(_sentence(draw, 6) for _ in range(draw.randint(2, 5))))
    return Paragraph(tuple(_sentence(draw, draw.randint(10, 60)).split()))


def _cell(draw: random.Random) -> str:
    return draw.choice(
        [draw.choice(NAMES), _sentence(draw, 4), "yes", "1 | 2", "", str(draw.randint(0, 999))]
    )


def _title(draw: random.Random) -> str:
    return " ".join(draw.sample(WORDS, 2)).capitalize()


def _sentence(draw: random.Random, count: int) -> str:
    return " ".join(
        draw.choice(NAMES) if draw.random() < 0.05 else draw.choice(WORDS) for _ in range(count)
    )
