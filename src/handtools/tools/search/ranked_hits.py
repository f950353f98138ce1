"""Search hits: runs a query, ranks files and hits, and shows pages of them with their enclosing symbols."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Generic, Literal, TypeVar

from handtools.core.errors import InvalidInput
from handtools.core.search import Hit, Hits, MatchCount, MatchCounts, Search, SearchPatterns, SearchScope
from handtools.core.syntax import Symbol, Syntax, SyntaxRole, TextPosition, enclosing_symbols
from handtools.text.encoding import decode
from handtools.text.lines import split_lines_without_endings
from handtools.text.plurals import inflect_for_number, number_with_noun
from handtools.text.search.hit_rendering import RenderedHit, render_hits
from handtools.text.token_estimate import estimate_tokens
from handtools.tools.search import result_pages
from handtools.tools.search.result_pages import SearchCursor

FileCategory = Literal[0, 1, 2, 3]
"""Rank of a file in search results: 0 source, 1 tests, 2 documents, 3 vendored or generated."""
MatchOffsets = Sequence[tuple[int, int]]
MatchedLine = tuple[str, MatchOffsets]
"""The text of a matched line, and the start and end of each match in it."""
_TEST_FOLDERS = {"test", "tests", "spec", "specs", "__tests__", "__mocks__", "testdata", "fixtures", "e2e"}
_TEST_NAMES = re.compile(r"test_.*|conftest\.py|.*[._-](?:test|tests|spec)\.\w+|.*Tests?\.\w+")


_FOREIGN_FOLDERS = {
    "vendor", "vendored", "_vendor", "third_party", "third-party", "node_modules", "bower_components",
    "site-packages", "external", "dist", "build", "out", "target", "generated", "__generated__",
}  # fmt: skip


_FOREIGN_NAMES = re.compile(
    r".*\.min\.(?:js|css)|.*\.(?:lock|map|svg|snap|ipynb)|.*_pb2(?:_grpc)?\.pyi?|.*\.pb\.\w+|.*\.g\.\w+|.*-lock\.\w+"
)


_DOCUMENTS = re.compile(r".*\.(?:md|mdx|rst|txt|adoc|log|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg)")


_WORDS = (
    "def|class|fn|func|function|fun|struct|enum|union|interface|type|typedef|trait|impl|mod|module|package|namespace"
    "|const|let|var|val|static|object|record|protocol|extension|actor|macro_rules!|macro|sub|proc|template|define"
)


# Allows a receiver (Go), generics (Rust) or a type (C) between the keyword and the name.
_INTRODUCES = re.compile(
    rf"(?:^|[\s(#@;{{}}])(?:{_WORDS})(?:<[^>]*>)?\s+(?:\([^)]*\)\s*|<[^>]*>\s*|mut\s+|\w+[\s*&]+)?\Z"
)


_WORD_LIST = tuple(_WORDS.split("|"))
_CLOSING = frozenset("*&)>")
"""Characters other than white space that can come right before a defined name."""
_BEGINS_WITH_WORD = re.compile(rf"\s*(?:\w+\s+)*(?:{_WORDS})\s")
_ASSIGNS = re.compile(r"\s*(?::[^=]*)?(?::=|=(?!=))")


@lru_cache(maxsize=4096)
def file_category(path: str) -> FileCategory:
    """Classify a file by its path, relative to the folder searched: source, test, document, or vendored."""
    *folders, name = path.split("/")
    if not _FOREIGN_FOLDERS.isdisjoint(folders) or _FOREIGN_NAMES.fullmatch(name):
        return 3
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(name):
        return 1
    return 2 if _DOCUMENTS.fullmatch(name) else 0


def has_definition(lines: Sequence[MatchedLine]) -> bool:
    """Whether one of a file's matched lines seems to define what matched, as `def name` does.

    A heuristic for ranking, not a parser. Most matches are names after some other character, most files
    contain few of the keywords, and most lines none of them, so cheap checks avoid most of the regex
    matching.
    """
    candidates = [
        (text, start, end)
        for text, spans in lines
        for start, end in spans
        if not start or _can_precede_name(text[start - 1]) or not text[start:end].isidentifier()
    ]
    if not candidates:
        return False
    whole = "\n".join([text for text, _, _ in candidates])
    words = [word for word in _WORD_LIST if word in whole]
    return any(_is_definition_match(text, start, end, words) for text, start, end in candidates)


def _can_precede_name(sign: str) -> bool:
    return sign in _CLOSING or sign.isspace()


def _is_definition_match(text: str, start: int, end: int, words: Sequence[str]) -> bool:
    if not start and _ASSIGNS.match(text, end):
        return True
    if not text[start:end].isidentifier() and _BEGINS_WITH_WORD.match(text[start : min(end, start + 200)]):
        return True
    fits = start and _can_precede_name(text[start - 1]) and any(word in text for word in words)
    return bool(fits and _INTRODUCES.search(text[max(start - 200, 0) : start]))


def path_sort_key(path: str) -> tuple[str, ...]:
    """Return a sort key that orders paths component by component, as a folder walk visits them."""
    return tuple(path.split("/"))


RANKING_BLOCK = 100
"""Hits are ranked in blocks of this size, so that the first page does not need a complete search."""
MAX_COUNTED_FILES = 10_000
"""Maximum number of files whose matches are counted."""


@dataclass(frozen=True, slots=True)
class HitInContext:
    """A hit with its enclosing symbols and the rendered lines around it."""

    hit: Hit
    symbols: tuple[Symbol, ...]
    rendered_hit: RenderedHit


T = TypeVar("T", Hit, MatchCount)


@dataclass(frozen=True, slots=True)
class HitPage(Generic[T]):
    """One page of ranked hits or files, with the data for the next page's cursor."""

    found: list[T]
    start: int
    """Number of results before this page."""
    moved: bool
    """Whether the results changed since the previous page."""
    keys: list[str]
    block: int
    """Offset of the ranking block in which the page starts."""
    size: int

    def after(self, shown: int) -> str:
        """Return the cursor for the page that follows the first `shown` results of this one."""
        return str(
            result_pages.cursor_after(self.keys, self.block, self.size, self.start - self.block + shown)
        )


def hits_needed(offset: int, cursor: SearchCursor | None, limit: int) -> int:
    """Return the number of hits to search for in order to fill a page.

    With a cursor, it is one block more, in case hits were added.
    """
    if cursor is None:
        return -(-(offset + limit) // RANKING_BLOCK) * RANKING_BLOCK
    return (cursor.block + 1 - (-(cursor.shown + limit) // RANKING_BLOCK)) * RANKING_BLOCK


def page_of_hits(
    hits: Hits, root: str, *, offset: int, cursor: SearchCursor | None, limit: int
) -> HitPage[Hit]:
    """Rank hits in blocks of fixed size and return the requested page."""
    keys = _hit_keys(hits.hits)
    place = result_pages.ResultPageStart(
        offset // RANKING_BLOCK * RANKING_BLOCK, offset % RANKING_BLOCK, moved=False
    )
    if cursor:
        place = result_pages.find_result_page_start(cursor, keys, RANKING_BLOCK)
    hits_ahead: list[Hit] = []
    for start in range(place.start, place.start + place.shown + limit, RANKING_BLOCK):
        hits_ahead += rank_hits(hits.hits[start : start + RANKING_BLOCK], root)
    shown = hits_ahead[place.shown :][:limit]
    _refuse_empty_page(
        shown, f"{inflect_for_number(len(keys), 'is')} only {number_with_noun(len(keys), 'match')}"
    )
    return HitPage(shown, place.start + place.shown, place.moved, keys, place.start, RANKING_BLOCK)


def page_of_files(
    counts: MatchCounts, *, by_count: bool, offset: int, cursor: SearchCursor | None, limit: int
) -> HitPage[MatchCount]:
    """Rank all files together and return the requested page."""
    ranking = sort_match_counts(counts.tallies, by_count=by_count)
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


def rank_hits(hits: Sequence[Hit], root: str) -> list[Hit]:
    """Rank hits: source files before tests, defining files before other files.

    The order is deterministic.
    """
    start = 0 if root in {"", "."} else len(root) + 1
    hits_by_file: dict[str, list[Hit]] = {}
    for hit in hits:
        hits_by_file.setdefault(hit.path, []).append(hit)

    def rank(path: str) -> tuple[int, bool, tuple[str, ...]]:
        defining = has_definition([(hit.text, hit.spans) for hit in hits_by_file[path]])
        return file_category(path[start:]), not defining, path_sort_key(path)

    return [hit for path in sorted(hits_by_file, key=rank) for hit in hits_by_file[path]]


async def hits_in_context(
    search: Search, syntax: Syntax, hits: Sequence[Hit], context: int
) -> list[HitInContext]:
    """Add enclosing symbols and context lines to hits; files changed since the search get no context."""
    sources = await search.read(paths_of_hits(hits))
    outlines = await syntax.outlines(sources)
    shown_hits: list[HitInContext] = []
    for path, group in groupby(hits, key=lambda hit: hit.path):
        of_file = list(group)
        data = sources.get(path)
        if data is None:
            shown_hits += [HitInContext(hit, (), _render_hit(hit)) for hit in of_file]
            continue
        lines = source_lines(data) if context else []
        outline = outlines[path]
        last_symbols: tuple[Symbol, ...] = ()
        crumbs = ""
        for hit in of_file:
            symbols = enclosing_symbols(outline.symbols, hit.line) if outline else ()
            if symbols != last_symbols:
                last_symbols, crumbs = symbols, _breadcrumb_text(symbols)
            shown_hits.append(HitInContext(hit, symbols, _render_hit(hit, crumbs, lines, context)))
    return shown_hits


def hits_text(shown_hits: Sequence[HitInContext]) -> str:
    """Format hits as text, grouped by file."""
    files = groupby(shown_hits, key=lambda sight: sight.hit.path)
    return "\n".join(render_hits(path, [sight.rendered_hit for sight in group]) for path, group in files)


def hits_text_within(shown_hits: Sequence[HitInContext], tokens: int) -> tuple[str, int]:
    """Format as many hits as fit into a token budget, at least one.

    Return the text and the number shown.
    """
    text, count = "", 0
    for some in _smaller_selections(shown_hits):
        text, count = hits_text(some), len(some)
        if estimate_tokens(text) <= tokens:
            break
    return text, count


def _smaller_selections(shown_hits: Sequence[HitInContext]) -> Iterator[Sequence[HitInContext]]:
    yield shown_hits
    bare = [
        HitInContext(sight.hit, sight.symbols, _render_hit(sight.hit, sight.rendered_hit.crumbs))
        for sight in shown_hits
    ]
    for count in range(len(bare), 0, -1):
        yield bare[:count]


def _breadcrumb_text(symbols: Sequence[Symbol]) -> str:
    return " › ".join([f"{symbol.name} {symbol.start_line}-{symbol.end_line}" for symbol in symbols])


def _render_hit(hit: Hit, crumbs: str = "", lines: Sequence[str] = (), context: int = 0) -> RenderedHit:
    at = hit.spans[0][0] if hit.spans else 0
    if not lines:
        return RenderedHit(hit.line, hit.text, at, crumbs, part=hit.clipped)
    first, last = hit.line - context, hit.end_line + context
    unchanged = lines[hit.line - 1 : hit.line] and hit.text.startswith(lines[hit.line - 1])
    numbers = range(max(first, 1), min(last, len(lines)) + 1) if unchanged else ()
    around = {number: lines[number - 1] for number in numbers}
    return RenderedHit(hit.line, hit.text, at, crumbs, around, hit.clipped)


def source_lines(data: bytes) -> list[str]:
    """Split a file's bytes into lines as the `read` tool numbers them."""
    return split_lines_without_endings(decode(data).body)


def sort_match_counts(counts: Sequence[MatchCount], *, by_count: bool) -> list[MatchCount]:
    """Sort match counts by rank of the file, or by count."""

    def rank(count: MatchCount) -> tuple[int, tuple[str, ...]]:
        return (-count.matches if by_count else file_category(count.path), path_sort_key(count.path))

    return sorted(counts, key=rank)


def paths_of_hits(hits: Sequence[Hit]) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in hits))


MAX_PARSED_HITS = 1_000
"""Maximum number of hits that are parsed to find those with a syntactic role."""
EMPTY_RESULT_PROBE_SECONDS = 0.25
"""Time limit in seconds of each additional search that is made to explain an empty result."""
MAX_PARSED_FILES = 300
"""Maximum number of files that are parsed for a structural pattern."""
MAX_MATCH_LINES = 6
"""Maximum number of lines shown of a long structural match."""
_HOLE = re.compile(r"\$+\w*")
_WORD = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitQuery:
    """Search request: patterns, scope, and a syntactic role or structural pattern."""

    patterns: SearchPatterns
    scope: SearchScope
    shape: bool = False
    """Whether the patterns are structural (ast-grep) instead of text."""
    kind: SyntaxRole | None = None

    async def hits(self, search: Search, syntax: Syntax, *, most: int) -> Hits:
        """Search and return up to `most` hits sorted by path; syntax searches return all parsed hits."""
        if self.shape:
            return await _structural_hits(search, syntax, self.patterns.patterns, self.scope)
        if self.kind is not None:
            return await _hits_with_syntactic_role(search, syntax, self.patterns, self.scope, self.kind)
        return await search.hits(self.patterns, self.scope, most=most)

    async def tallies(self, search: Search, syntax: Syntax) -> MatchCounts:
        """Search and return match counts by file."""
        if not self.shape and self.kind is None:
            return await search.tallies(self.patterns, self.scope, most=MAX_COUNTED_FILES)
        found = await self.hits(search, syntax, most=MAX_PARSED_HITS)
        counts = Counter(hit.path for hit in found.hits)
        return MatchCounts(tuple(MatchCount(path, count) for path, count in counts.items()), found.gaps)


async def why_no_hits(search: Search, query: HitQuery) -> list[str]:
    """Explain an empty search result: sentences on hits that other options would have found."""
    patterns, scope, kind = query.patterns, query.scope, query.kind
    if query.shape:
        return []
    if kind is not None:
        others = await _sentences_about_other_hits(
            search, patterns, scope, f"that the parser does not classify as a {kind} (kind)"
        )
        if others:
            return others
    wider = {
        "in hidden or ignored files (include_ignored)": (
            patterns,
            replace(scope, hidden=True, ignored=True),
        ),
        "when case is ignored (case_sensitive=false)": (replace(patterns, case_sensitive=False), scope),
        "outside `include`": (patterns, replace(scope, include=())),
    }
    notes = []
    for where, (other, there) in wider.items():
        if (other, there) != (patterns, scope):
            notes += await _sentences_about_other_hits(search, other, there, where)
    return notes


async def _sentences_about_other_hits(
    search: Search, patterns: SearchPatterns, scope: SearchScope, where: str
) -> list[str]:
    found = await search.hits(
        patterns, replace(scope, timeout=EMPTY_RESULT_PROBE_SECONDS), most=RANKING_BLOCK
    )
    if not found.hits:
        return [f"There may be some {where}: that search timed out."] if found.gaps.timed_out else []
    unsure = "more than " if found.gaps.capped else "at least " if found.gaps.timed_out else ""
    return [f"There {inflect_for_number(len(found.hits), 'is')} {unsure}{len(found.hits)} {where}."]


async def _hits_with_syntactic_role(
    search: Search, syntax: Syntax, patterns: SearchPatterns, scope: SearchScope, kind: SyntaxRole
) -> Hits:
    found = await search.hits(patterns, scope, most=MAX_PARSED_HITS)
    sources = await search.read(paths_of_hits(found.hits))
    hits: list[Hit] = []
    for path, group in groupby(found.hits, key=lambda hit: hit.path):
        if path not in sources:
            continue
        spots = {TextPosition(hit.line, start): hit for hit in group for start, _ in hit.spans}
        roles = await syntax.classify(path, sources[path], list(spots)) or {}
        hits += dict.fromkeys(hit for spot, hit in spots.items() if kind in roles.get(spot, ()))
    unparsed = len({hit.path for hit in found.hits} - sources.keys())
    unseen = f"Only the first {MAX_PARSED_HITS:,} matches were parsed." if found.gaps.capped else ""
    return Hits(tuple(hits), replace(found.gaps, capped=False, unparsed=unparsed, unseen=unseen))


async def _structural_hits(
    search: Search, syntax: Syntax, patterns: Sequence[str], scope: SearchScope
) -> Hits:
    """Find matches of structural patterns in files that contain each pattern's longest word."""
    words = [max(_WORD.findall(_HOLE.sub(" ", one)), key=len, default="") for one in patterns]
    if not all(words):
        hint = "Write `open($FILE)`, not only `$CALL($FILE)`."
        raise InvalidInput("A structural pattern needs a literal word.", hint=hint)
    search_patterns = SearchPatterns(patterns=tuple(words), literal=True)
    files = await search.tallies(search_patterns, scope, most=MAX_PARSED_FILES)
    sources = await search.read([tally.path for tally in files.tallies])
    hits: set[Hit] = set()
    errors: dict[str, InvalidInput] = {}
    read: set[str] = set()
    for path, data in sources.items():
        lines = source_lines(data)
        for pattern in patterns:
            try:
                matches = await syntax.structural(path, data, pattern)
            except InvalidInput as refusal:
                # A pattern that is invalid in one language may be valid in another.
                errors[pattern] = refusal
                continue
            if matches is not None:
                read.add(pattern)
            for match in matches or ():
                text = "\n".join(lines[match.start.line - 1 : match.end.line][:MAX_MATCH_LINES])
                hits.add(Hit(path, match.start.line, text, ((match.start.column, len(text)),)))
    unread = [errors[pattern] for pattern in patterns if pattern in errors and pattern not in read]
    if unread:
        raise unread[0]
    ordered = sorted(hits, key=lambda hit: (path_sort_key(hit.path), hit.line, hit.spans))
    unparsed = len({tally.path for tally in files.tallies} - sources.keys())
    words_there = " or ".join(f"`{word}`" for word in dict.fromkeys(words))
    unseen = (
        f"Only the first {MAX_PARSED_FILES} files with {words_there} were parsed."
        if files.gaps.capped
        else ""
    )
    return Hits(tuple(ordered), replace(files.gaps, capped=False, unparsed=unparsed, unseen=unseen))
