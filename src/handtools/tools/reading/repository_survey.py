"""Survey of the source files below a folder: definitions and words, the input of the repository map."""

from collections import Counter
from dataclasses import dataclass

from handtools.core.search import Search, SearchGaps, SearchScope
from handtools.core.syntax import Symbol, SymbolKind, Syntax, qualified_name, symbol_chains
from handtools.text.encoding import decode
from handtools.text.lines import split_lines, without_line_ending
from handtools.text.repository_map import MappedDefinition, mentioned_names
from handtools.text.truncation import clip_line

MAX_MAPPED_FILES = 1_000
MAX_SOURCE_BYTES = 300_000
"""Largest source file in bytes that is surveyed; larger ones are usually generated or data."""
DEFINITION_LINE_CHARS = 120
_BATCH = 50
_DEFINING: frozenset[SymbolKind] = frozenset(
    {"class", "enum", "function", "impl", "interface", "macro", "method", "struct", "trait", "type"}
)


@dataclass(frozen=True, slots=True)
class DefinitionSurvey:
    """Result of a survey: definitions, words of each file, and number of files."""

    definitions: tuple[MappedDefinition, ...]
    mentions: dict[str, Counter[str]]
    files: int
    gaps: SearchGaps


async def survey_repository(search: Search, syntax: Syntax, root: str) -> DefinitionSurvey:
    """Parse the source files below a folder in batches and collect definitions and words.

    Skips hidden files.
    """
    found = await search.paths(SearchScope(root=root), wanted="file", most=MAX_MAPPED_FILES)
    small = sorted(entry.path for entry in found.found if (entry.bytes or 0) <= MAX_SOURCE_BYTES)
    definitions: list[MappedDefinition] = []
    mentions: dict[str, Counter[str]] = {}
    for start in range(0, len(small), _BATCH):
        sources = await search.read(small[start : start + _BATCH])
        for path, outline in sorted((await syntax.outlines(sources)).items()):
            if outline is None:
                continue
            body = decode(sources[path]).body
            mentions[path] = mentioned_names(body)
            lines = split_lines(body)
            definitions += [
                MappedDefinition(
                    path, qualified_name(way), way[-1].line, _definition_line(lines, way[-1].line)
                )
                for way in symbol_chains(outline.symbols)
                if _is_defined(way)
            ]
    return DefinitionSurvey(tuple(definitions), mentions, found.total, found.gaps)


def _is_defined(symbols: tuple[Symbol, ...]) -> bool:
    """Whether a symbol is visible from outside: not local to a function."""
    local = any(outer.kind in {"function", "method"} for outer in symbols[:-1])
    return symbols[-1].kind in _DEFINING and len(symbols) <= 2 and not local


def _definition_line(lines: list[str], line: int) -> str:
    return clip_line(without_line_ending(lines[line - 1]).rstrip(), DEFINITION_LINE_CHARS)
