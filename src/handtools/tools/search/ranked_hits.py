"""Ranks and pages search hits, and shows them with their enclosing symbols."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from handtools.core.errors import InvalidInput
from handtools.core.search import Hit, Hits, MatchCount, MatchCounts, Search
from handtools.core.syntax import Symbol, Syntax, enclosing_symbols
from handtools.text.encoding import decode
from handtools.text.lines import split_lines, without_line_ending
from handtools.text.plurals import inflect_for_number, number_with_noun
from handtools.text.search import result_pages
from handtools.text.search.file_ranking import file_category, has_definition, path_sort_key
from handtools.text.search.hit_rendering import RenderedHit, render_hits
from handtools.text.search.result_pages import SearchCursor
from handtools.text.token_estimate import estimate_tokens

RANKING_BLOCK = 100
"""Hits are ranked in blocks of this size, so that the first page does not need a complete search."""
MAX_COUNTED_FILES = 10_000
"""Most files whose matches are counted."""


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
    """Return the number of hits that a page needs.

    With a cursor, one block more in case hits were added.
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
    """Rank files as one block and return the requested page."""
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
            shown_hits += [HitInContext(hit, (), _citation(hit)) for hit in of_file]
            continue
        lines = source_lines(data) if context else []
        outline = outlines[path]
        last_symbols: tuple[Symbol, ...] = ()
        crumbs = ""
        for hit in of_file:
            symbols = enclosing_symbols(outline.symbols, hit.line) if outline else ()
            if symbols != last_symbols:
                last_symbols, crumbs = symbols, _breadcrumbs(symbols)
            shown_hits.append(HitInContext(hit, symbols, _citation(hit, crumbs, lines, context)))
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
        HitInContext(sight.hit, sight.symbols, _citation(sight.hit, sight.rendered_hit.crumbs))
        for sight in shown_hits
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


def source_lines(data: bytes) -> list[str]:
    """Split a file's bytes into lines as the `read` tool numbers them."""
    return [without_line_ending(line) for line in split_lines(decode(data).body)]


def sort_match_counts(counts: Sequence[MatchCount], *, by_count: bool) -> list[MatchCount]:
    """Sort match counts by rank of the file, or by count."""

    def rank(count: MatchCount) -> tuple[int, tuple[str, ...]]:
        return (-count.matches if by_count else file_category(count.path), path_sort_key(count.path))

    return sorted(counts, key=rank)


def paths_of_hits(hits: Sequence[Hit]) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in hits))
