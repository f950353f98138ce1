"""Search hits ranked, paged and shown with their symbols; searches by syntactic role and structural pattern.

ADR 10, 223.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

from handtools.core.errors import InvalidInput
from handtools.core.search import Hit, Hits, MatchCount, MatchCounts, Search, SearchPatterns, SearchScope
from handtools.core.syntax import Symbol, Syntax, SyntaxRole, TextPosition
from handtools.text.encoding import decode
from handtools.text.lines import split_lines, without_line_ending
from handtools.text.plurals import inflect_for_number, number_with_noun
from handtools.text.search import result_pages
from handtools.text.search.result_pages import (
    RenderedHit,
    SearchCursor,
    file_category,
    has_definition,
    path_sort_key,
    render_hits,
)
from handtools.text.token_budget import estimate_tokens

MAX_PARSED_HITS = 1_000
"""Most hits that are parsed to find those with a syntactic role."""
MAX_PARSED_FILES = 300
"""Most files that are parsed for a structural pattern."""
MAX_MATCH_LINES = 6
"""Most lines shown of a long structural match."""
RANKING_BLOCK = 100
"""Hits are ranked within blocks of this many, so that the first page needs no complete search."""
MAX_COUNTED_FILES = 10_000
"""Most files whose matches are counted."""
EMPTY_RESULT_PROBE_SECONDS = 0.25
"""Time limit in seconds of each search that explains an empty result: nobody asked for it, and somebody waits."""
_HOLE = re.compile(r"\$+\w*")
_WORD = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, slots=True)
class HitInContext:
    """A hit with its enclosing symbols and the rendered lines around it."""

    hit: Hit
    symbols: tuple[Symbol, ...]
    citation: RenderedHit


T = TypeVar("T", Hit, MatchCount)


@dataclass(frozen=True, slots=True)
class HitPage(Generic[T]):
    """One page of ranked hits or files, with the data for the next page's cursor."""

    found: list[T]
    start: int
    """Number of results before this page."""
    moved: bool
    """Whether the results changed since the page before."""
    keys: list[str]
    block: int
    """Offset of the ranking block in which the page starts."""
    size: int

    def after(self, shown: int) -> str:
        """Return the cursor for the page that follows the first `shown` results of this one."""
        return str(
            result_pages.cursor_after(self.keys, self.block, self.size, self.start - self.block + shown)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HitQuery:
    """Search request: patterns, scope, and a syntactic role or structural pattern."""

    patterns: SearchPatterns
    scope: SearchScope
    shape: bool = False
    """Whether the patterns are structural (ast-grep) instead of text."""
    kind: SyntaxRole | None = None

    async def hits(self, search: Search, syntax: Syntax, *, most: int) -> Hits:
        """Search and return up to `most` hits sorted by path; searches by syntax return all that were parsed."""
        if self.shape:
            return await structural_hits(search, syntax, self.patterns.patterns, self.scope)
        if self.kind is not None:
            return await hits_with_syntactic_role(search, syntax, self.patterns, self.scope, self.kind)
        return await search.hits(self.patterns, self.scope, most=most)

    async def tallies(self, search: Search, syntax: Syntax) -> MatchCounts:
        """Search and return match counts by file."""
        if not self.shape and self.kind is None:
            return await search.tallies(self.patterns, self.scope, most=MAX_COUNTED_FILES)
        found = await self.hits(search, syntax, most=MAX_PARSED_HITS)
        counts = Counter(hit.path for hit in found.hits)
        return MatchCounts(tuple(MatchCount(path, count) for path, count in counts.items()), found.gaps)


def hits_needed(offset: int, cursor: SearchCursor | None, limit: int) -> int:
    """Return how many hits a page needs; with a cursor one block more, in case hits were added."""
    if cursor is None:
        return -(-(offset + limit) // RANKING_BLOCK) * RANKING_BLOCK
    return (cursor.block + 1 - (-(cursor.shown + limit) // RANKING_BLOCK)) * RANKING_BLOCK


def page_of_hits(
    found: Hits, root: str, *, offset: int, cursor: SearchCursor | None, limit: int
) -> HitPage[Hit]:
    """Rank hits in blocks of fixed size and return the requested page."""
    keys = _hit_keys(found.hits)
    place = result_pages.ResultPageStart(
        offset // RANKING_BLOCK * RANKING_BLOCK, offset % RANKING_BLOCK, moved=False
    )
    if cursor:
        place = result_pages.find_result_page_start(cursor, keys, RANKING_BLOCK)
    ahead: list[Hit] = []
    for start in range(place.start, place.start + place.shown + limit, RANKING_BLOCK):
        ahead += rank_hits(found.hits[start : start + RANKING_BLOCK], root)
    shown = ahead[place.shown :][:limit]
    _refuse_empty_page(
        shown, f"{inflect_for_number(len(keys), 'is')} only {number_with_noun(len(keys), 'match')}"
    )
    return HitPage(shown, place.start + place.shown, place.moved, keys, place.start, RANKING_BLOCK)


def page_of_files(
    found: MatchCounts, *, by_count: bool, offset: int, cursor: SearchCursor | None, limit: int
) -> HitPage[MatchCount]:
    """Rank files as one block and return the requested page."""
    ranking = sort_match_counts(found.tallies, by_count=by_count)
    keys = [f"{tally.path}\0{tally.matches * by_count}" for tally in ranking]
    place = (
        result_pages.find_result_page_start(cursor, keys, MAX_COUNTED_FILES)
        if cursor
        else result_pages.ResultPageStart(0, offset, moved=False)
    )
    shown = ranking[place.shown :][:limit]
    _refuse_empty_page(
        shown, f"{inflect_for_number(len(keys), 'is')} only {number_with_noun(len(keys), 'file')}"
    )
    return HitPage(shown, place.shown, place.moved, keys, 0, MAX_COUNTED_FILES)


def _refuse_empty_page(shown: Sequence[Hit | MatchCount], there: str) -> None:
    if not shown:
        raise InvalidInput(f"There {there}.", hint="Use a smaller offset.")


def _hit_keys(hits: Sequence[Hit]) -> list[str]:
    """Return keys that identify hits across searches, without line numbers, which edits may shift."""
    keys = [f"{hit.path}\0{hit.text}" for hit in hits]
    if len(set(keys)) == len(keys):
        return keys
    before: Counter[str] = Counter()
    for index, key in enumerate(keys):
        before[key] += 1
        keys[index] = f"{key}\0{before[key]}"
    return keys


async def why_no_hits(search: Search, asked: HitQuery) -> list[str]:
    """Explain an empty search result: sentences on hits that other options would have found."""
    patterns, scope, kind = asked.patterns, asked.scope, asked.kind
    if asked.shape:
        return []
    if kind is not None:
        others = await _hits_elsewhere(
            search, patterns, scope, f"that the parser does not take for a {kind} (kind)"
        )
        if others:
            return others
    wider = {
        "in hidden or ignored files (include_ignored)": (
            patterns,
            replace(scope, hidden=True, ignored=True),
        ),
        "when case is ignored (case_sensitive=false)": (replace(patterns, case_sensitive=False), scope),
        "outside of `include`": (patterns, replace(scope, include=())),
    }
    notes = []
    for where, (other, there) in wider.items():
        if (other, there) != (patterns, scope):
            notes += await _hits_elsewhere(search, other, there, where)
    return notes


async def _hits_elsewhere(
    search: Search, patterns: SearchPatterns, scope: SearchScope, where: str
) -> list[str]:
    found = await search.hits(
        patterns, replace(scope, timeout=EMPTY_RESULT_PROBE_SECONDS), most=RANKING_BLOCK
    )
    if not found.hits:
        return [f"There may be some {where}: that search was cut short."] if found.gaps.timed_out else []
    unsure = "more than " if found.gaps.capped else "at least " if found.gaps.timed_out else ""
    return [f"There {inflect_for_number(len(found.hits), 'is')} {unsure}{len(found.hits)} {where}."]


async def hits_with_syntactic_role(
    search: Search, syntax: Syntax, patterns: SearchPatterns, scope: SearchScope, kind: SyntaxRole
) -> Hits:
    """Search for hits whose text has the given syntactic role."""
    found = await search.hits(patterns, scope, most=MAX_PARSED_HITS)
    sources = await search.read(_paths(found.hits))
    kept: list[Hit] = []
    for path, group in groupby(found.hits, key=lambda hit: hit.path):
        if path not in sources:
            continue
        spots = {TextPosition(hit.line, start): hit for hit in group for start, _ in hit.spans}
        roles = await syntax.classify(path, sources[path], list(spots)) or {}
        kept += dict.fromkeys(hit for spot, hit in spots.items() if kind in roles.get(spot, ()))
    unparsed = len({hit.path for hit in found.hits} - sources.keys())
    unseen = f"Only the first {MAX_PARSED_HITS:,} matches were parsed." if found.gaps.capped else ""
    return Hits(tuple(kept), replace(found.gaps, capped=False, unparsed=unparsed, unseen=unseen))


async def structural_hits(
    search: Search, syntax: Syntax, patterns: Sequence[str], scope: SearchScope
) -> Hits:
    """Find matches of structural patterns in files that contain each pattern's longest word."""
    words = [max(_WORD.findall(_HOLE.sub(" ", one)), key=len, default="") for one in patterns]
    if not all(words):
        hint = "Write `open($FILE)`, not only `$CALL($FILE)`."
        raise InvalidInput("A structural pattern needs a word to look for.", hint=hint)
    literal = SearchPatterns(patterns=tuple(words), literal=True)
    files = await search.tallies(literal, scope, most=MAX_PARSED_FILES)
    sources = await search.read([tally.path for tally in files.tallies])
    found: set[Hit] = set()
    refusals: dict[str, InvalidInput] = {}
    read: set[str] = set()
    for path, data in sources.items():
        lines = _lines(data)
        for pattern in patterns:
            try:
                matches = await syntax.structural(path, data, pattern)
            except InvalidInput as refusal:
                # What is no code in one language may be in the next.
                refusals[pattern] = refusal
                continue
            if matches is not None:
                read.add(pattern)
            for match in matches or ():
                text = "\n".join(lines[match.start.line - 1 : match.end.line][:MAX_MATCH_LINES])
                found.add(Hit(path, match.start.line, text, ((match.start.column, len(text)),)))
    unread = [refusals[pattern] for pattern in patterns if pattern in refusals and pattern not in read]
    if unread:
        raise unread[0]
    ordered = sorted(found, key=lambda hit: (path_sort_key(hit.path), hit.line, hit.spans))
    unparsed = len({tally.path for tally in files.tallies} - sources.keys())
    words_there = " or ".join(f"`{word}`" for word in dict.fromkeys(words))
    unseen = (
        f"Only the first {MAX_PARSED_FILES} files with {words_there} were parsed."
        if files.gaps.capped
        else ""
    )
    return Hits(tuple(ordered), replace(files.gaps, capped=False, unparsed=unparsed, unseen=unseen))


def rank_hits(hits: Sequence[Hit], root: str) -> list[Hit]:
    """Rank hits: sources before tests, defining files before using ones; the order is deterministic."""
    start = 0 if root in {"", "."} else len(root) + 1
    files: dict[str, list[Hit]] = {}
    for hit in hits:
        files.setdefault(hit.path, []).append(hit)

    def rank(path: str) -> tuple[int, bool, tuple[str, ...]]:
        defining = has_definition([(hit.text, hit.spans) for hit in files[path]])
        return file_category(path[start:]), not defining, path_sort_key(path)

    return [hit for path in sorted(files, key=rank) for hit in files[path]]


async def hits_in_context(
    search: Search, syntax: Syntax, hits: Sequence[Hit], context: int
) -> list[HitInContext]:
    """Add enclosing symbols and context lines to hits; files changed since the search get no context."""
    sources = await search.read(_paths(hits))
    seen: list[HitInContext] = []
    for path, group in groupby(hits, key=lambda hit: hit.path):
        of_file = list(group)
        data = sources.get(path)
        if data is None:
            seen += [HitInContext(hit, (), _citation(hit)) for hit in of_file]
            continue
        lines = _lines(data) if context else []
        around = await syntax.enclosing(path, data, [hit.line for hit in of_file])
        last: tuple[Symbol, ...] = ()
        crumbs = ""
        for hit in of_file:
            symbols = around.get(hit.line, ())
            if symbols != last:
                last, crumbs = symbols, _breadcrumbs(symbols)
            seen.append(HitInContext(hit, symbols, _citation(hit, crumbs, lines, context)))
    return seen


def hits_text(seen: Sequence[HitInContext]) -> str:
    """Format hits as text, grouped by file."""
    files = groupby(seen, key=lambda sight: sight.hit.path)
    return "\n".join(render_hits(path, [sight.citation for sight in group]) for path, group in files)


def hits_text_within(seen: Sequence[HitInContext], tokens: int) -> tuple[str, int]:
    """Format as many hits as fit into a token budget, at least one; return the text and the number shown."""
    text, count = "", 0
    for some in _smaller_selections(seen):
        text, count = hits_text(some), len(some)
        if estimate_tokens(text) <= tokens:
            break
    return text, count


def _smaller_selections(seen: Sequence[HitInContext]) -> Iterator[Sequence[HitInContext]]:
    yield seen
    bare = [
        HitInContext(sight.hit, sight.symbols, _citation(sight.hit, sight.citation.crumbs))
        for sight in seen
    ]
    for count in range(len(bare), 0, -1):
        yield bare[:count]


def _breadcrumbs(symbols: Sequence[Symbol]) -> str:
    return " › ".join([f"{symbol.name} {symbol.start_line}-{symbol.end_line}" for symbol in symbols])


def _citation(hit: Hit, crumbs: str = "", lines: Sequence[str] = (), context: int = 0) -> RenderedHit:
    at = hit.spans[0][0] if hit.spans else 0
    if not lines:
        return RenderedHit(hit.line, hit.text, at, crumbs, part=hit.clipped)
    first, last = hit.line - context, hit.end_line + context
    unchanged = lines[hit.line - 1 : hit.line] and hit.text.startswith(lines[hit.line - 1])
    numbers = range(max(first, 1), min(last, len(lines)) + 1) if unchanged else ()
    around = {number: lines[number - 1] for number in numbers}
    return RenderedHit(hit.line, hit.text, at, crumbs, around, hit.clipped)


def _lines(data: bytes) -> list[str]:
    """Split a file's bytes into lines as the `read` tool numbers them."""
    return [without_line_ending(line) for line in split_lines(decode(data).body)]


def sort_match_counts(tallies: Sequence[MatchCount], *, by_count: bool) -> list[MatchCount]:
    """Sort match counts by rank of the file, or by count."""

    def rank(tally: MatchCount) -> tuple[int, tuple[str, ...]]:
        return (-tally.matches if by_count else file_category(tally.path), path_sort_key(tally.path))

    return sorted(tallies, key=rank)


def _paths(hits: Sequence[Hit]) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in hits))
