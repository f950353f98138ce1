"""Surveying: what the sources below a folder define and mention, gathered through the ports."""

from collections import Counter
from dataclasses import dataclass

from handtools.core.ports import Search, Syntax
from handtools.core.searching import Gaps, Scope
from handtools.core.syntax import Symbol, SymbolKind, flattened, qualified
from handtools.text.clipping import clip_line
from handtools.text.encoding import decode
from handtools.text.lines import bare, split
from handtools.text.mapping import Definition, words

MOST_FILES = 1_000
MOST_BYTES = 300_000
"""Larger sources are generated or data."""
HEAD_CHARS = 120
_BATCH = 50
_DEFINING: frozenset[SymbolKind] = frozenset(
    {"class", "enum", "function", "impl", "interface", "macro", "method", "struct", "trait", "type"}
)


@dataclass(frozen=True, slots=True)
class Survey:
    """Definitions of a tree, the words of each file, and how many files there are."""

    definitions: tuple[Definition, ...]
    mentions: dict[str, Counter[str]]
    files: int
    gaps: Gaps


async def survey(search: Search, syntax: Syntax, root: str) -> Survey:
    """Look at the sources below a folder, a batch at a time; what rules hide is not among them."""
    found = await search.paths(Scope(root=root), wanted="file", most=MOST_FILES)
    small = sorted(entry.path for entry in found.found if (entry.bytes or 0) <= MOST_BYTES)
    definitions: list[Definition] = []
    mentions: dict[str, Counter[str]] = {}
    for start in range(0, len(small), _BATCH):
        for path, data in sorted((await search.read(small[start : start + _BATCH])).items()):
            outline = await syntax.outline(path, data)
            if outline is None:
                continue
            body = decode(data).body
            mentions[path] = words(body)
            lines = split(body)
            definitions += [
                Definition(path, qualified(way), way[-1].line, _head(lines, way[-1].line))
                for way in flattened(outline.symbols)
                if _is_defined(way)
            ]
    return Survey(tuple(definitions), mentions, found.total, found.gaps)


def _is_defined(way: tuple[Symbol, ...]) -> bool:
    """Whether others can name it: what a function defines for itself is its own affair."""
    local = any(outer.kind in {"function", "method"} for outer in way[:-1])
    return way[-1].kind in _DEFINING and len(way) <= 2 and not local


def _head(lines: list[str], line: int) -> str:
    return clip_line(bare(lines[line - 1]).rstrip(), HEAD_CHARS)
