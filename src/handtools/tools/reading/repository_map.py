"""Repository map: surveys a code base and shows its most important definitions, ranked by mentions (PageRank)."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from handtools.core.search import Search, SearchGaps, SearchScope
from handtools.core.syntax import Symbol, SymbolKind, Syntax, qualified_name, symbol_chains
from handtools.text.encoding import decode
from handtools.text.lines import split_lines, without_line_ending
from handtools.text.token_estimate import estimate_tokens
from handtools.text.truncation import clip_line

PAGERANK_ROUNDS = 20
PAGERANK_DAMPING = 0.85
# Text that looks like a use: a call or a type name; names on import lines are counted separately.
_USE = re.compile(r"\b(?:[^\W\d]\w{2,}(?=\s?[(!<])|[A-Z]\w{2,})")
_IMPORT = re.compile(
    r"^[ \t]*(?:import|from|use|using|require|#include|export|local .*require)\b.*", re.MULTILINE
)
_WORD = re.compile(r"[^\W\d]\w{2,}")
_MEMBER = 0.3
"""The weight of a method relative to a function: its name alone seldom identifies its class."""
_COMMON_HOMES = 5
"""A name defined in more files than this counts little for each of them."""


@dataclass(frozen=True, slots=True)
class MappedDefinition:
    """One definition in a file: its name, its line, and the text of that line."""

    path: str
    name: str
    line: int
    head: str
    """The source line of the definition."""


def count_used_names(text: str) -> Counter[str]:
    """Count how often source code uses each name, by syntax: only calls, capitalized names and imports."""
    found = Counter(_USE.findall(text))
    for line in _IMPORT.findall(text):
        found.update(_WORD.findall(line))
    return found


def rank_definitions_by_mentions(
    definitions: Sequence[MappedDefinition], mentions: Mapping[str, Counter[str]]
) -> list[MappedDefinition]:
    """Sort definitions by PageRank: files vote for the names they mention, weighted by the file's rank."""
    homes: dict[str, list[str]] = {}
    for one in sorted(definitions, key=lambda one: (one.path, one.line)):
        homes.setdefault(_last_name_part(one.name), []).append(one.path)
    links = _mention_links(homes, mentions)
    weights = _file_pageranks(sorted(mentions), links)
    scores: dict[tuple[str, str], float] = {}
    for path in sorted(links):
        for (name, home), strength in links[path].items():
            scores[home, name] = scores.get((home, name), 0.0) + weights[path] * strength
    return sorted(
        definitions,
        key=lambda one: (-_definition_score(one, scores), one.path, one.line, one.name, one.head),
    )


def _definition_score(definition: MappedDefinition, scores: Mapping[tuple[str, str], float]) -> float:
    score = scores.get((definition.path, _last_name_part(definition.name)), 0.0)
    return score if _last_name_part(definition.name) == definition.name else score * _MEMBER


def map_that_fits(definitions: Sequence[MappedDefinition], tokens: int) -> tuple[str, int]:
    """Render as many of the first definitions as fit a number of tokens.

    Returns the text and the number of definitions in it.
    """
    low, high = 0, len(definitions)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(render_map(definitions[:middle])) <= tokens:
            low = middle
        else:
            high = middle - 1
    return render_map(definitions[:low]), low


def render_map(definitions: Sequence[MappedDefinition]) -> str:
    """Render definitions grouped by file, sorted by line; files are in order of their first definition."""
    order = {one.path: rank for rank, one in reversed(list(enumerate(definitions)))}
    every = sorted(definitions, key=lambda one: (order[one.path], one.line))
    parts = []
    for path, group in groupby(every, key=lambda one: one.path):
        parts.append(path)
        parts += [f"{one.line}\t{one.head}" for one in group]
    return "\n".join(parts)


MentionLinks = dict[str, dict[tuple[str, str], float]]
"""By file: the weight of each (name, defining file) that the file mentions."""


def _mention_links(
    homes: Mapping[str, Sequence[str]], mentions: Mapping[str, Counter[str]]
) -> MentionLinks:
    links: MentionLinks = {}
    for path in sorted(mentions):
        found = links.setdefault(path, {})
        for name in sorted(mentions[path].keys() & homes.keys()):
            others = sorted(set(homes[name]) - {path})
            for home in others:
                strength = math.sqrt(mentions[path][name]) * _name_weight(name, len(set(homes[name])))
                found[name, home] = strength / len(others)
    return links


def _name_weight(name: str, homes: int) -> float:
    """Weigh a mention by its name: long multi-word names count more, common and private names less."""
    telling = 1.0
    if len(name) >= 8 and ("_" in name.strip("_") or name.lower() != name):
        telling *= 3.0
    if name.startswith("_"):
        telling *= 0.3
    return telling * (0.1 if homes > _COMMON_HOMES else 1.0)


def _file_pageranks(paths: Sequence[str], links: MentionLinks) -> dict[str, float]:
    """Compute the PageRank of each file from the mentions between files."""
    if not paths:
        return {}
    weights = dict.fromkeys(paths, 1.0 / len(paths))
    shares = {path: _link_share_per_file(links.get(path, {})) for path in paths}
    for _ in range(PAGERANK_ROUNDS):
        fresh = dict.fromkeys(paths, (1.0 - PAGERANK_DAMPING) / len(paths))
        for path in paths:
            for home, share in shares[path].items():
                fresh[home] = fresh.get(home, 0.0) + PAGERANK_DAMPING * weights[path] * share
        weights = fresh
    return weights


def _link_share_per_file(found: Mapping[tuple[str, str], float]) -> dict[str, float]:
    total = sum(found.values())
    shares: dict[str, float] = {}
    for (_, home), strength in found.items():
        shares[home] = shares.get(home, 0.0) + strength / total
    return shares


def _last_name_part(name: str) -> str:
    return re.split(r"[.:#]", name)[-1]


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
    """Result of a survey: definitions, the names that each file mentions, number of files, and gaps."""

    definitions: tuple[MappedDefinition, ...]
    mentions: dict[str, Counter[str]]
    files: int
    gaps: SearchGaps


async def survey_repository(search: Search, syntax: Syntax, root: str) -> DefinitionSurvey:
    """Parse the source files below a folder in batches; collect definitions and mentioned names.

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
            mentions[path] = count_used_names(body)
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
    """Whether the innermost symbol is a definition for the map: not local to a function or deeply nested."""
    local = any(outer.kind in {"function", "method"} for outer in symbols[:-1])
    return symbols[-1].kind in _DEFINING and len(symbols) <= 2 and not local


def _definition_line(lines: list[str], line: int) -> str:
    return clip_line(without_line_ending(lines[line - 1]).rstrip(), DEFINITION_LINE_CHARS)
