"""Tool `grep`: searches file contents and shows matching lines with their enclosing symbols."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.core.search import Hit, MatchCount, SearchGaps, SearchPatterns, SearchScope
from handtools.core.syntax import SyntaxRole
from handtools.core.tool import tool
from handtools.text.encoding import without_surrogates
from handtools.text.plurals import number_with_noun
from handtools.text.search.hit_rendering import LINE_CHARS, path_on_one_line
from handtools.text.token_estimate import count_rows_that_fit, estimate_tokens
from handtools.text.truncation import clip_line
from handtools.tools.search import ranked_hits
from handtools.tools.search.result_pages import BadCursor, SearchCursor, parse_cursor

PAGE = 20
MAX_GREP_PAGE_HITS = 200
MAX_GREP_CONTEXT_LINES = 50
MAX_GREP_RESULT_TOKENS = 10_000
FOOTER_TOKENS = 45
"""Estimated tokens of the result's last line, without notes."""
CONTEXT_LINES_BY_HITS = {
    1: 20,
    2: 8,
    3: 8,
}  # lines of context by the number of hits, if there are very few


class GrepParams(BaseModel):
    """Arguments of the `grep` tool."""

    pattern: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)] = Field(
        title="Pattern to search for; a list matches any of them."
    )
    path: str = Field(".", title="File or folder to search.")
    include: str | None = Field(None, description="Glob of files; a leading `!` excludes.")
    syntax: Literal["regex", "literal", "structure"] = Field(
        "regex", title="Syntax of the pattern; `structure` is ast-grep: `open($FILE, $$$)`."
    )
    kind: SyntaxRole | None = Field(None, title="Only matches with this syntactic role.")
    mode: Literal["content", "files", "counts"] = Field("content", title="Show lines, paths, or counts.")
    case_sensitive: bool = Field(default=True, title="Whether `A` differs from `a`.")
    multiline: bool = Field(default=False, title="Let a match span lines.")
    context: Annotated[int, AfterValidator(partial(min, MAX_GREP_CONTEXT_LINES))] | None = Field(
        None, ge=0, title="Lines before and after each hit."
    )
    include_ignored: bool = Field(default=False, title="Include hidden and ignored files.")
    limit: Annotated[int, AfterValidator(partial(min, MAX_GREP_PAGE_HITS))] = Field(
        PAGE, ge=1, title="Hits per page."
    )
    offset: int = Field(0, ge=0, le=10_000, title="Hits to skip.")
    cursor: str | None = Field(None, description="From the last page.")
    max_tokens: SkipJsonSchema[int | None] = Field(None, ge=100, title="Maximum size of the result.")


@dataclass(slots=True)
class GrepHit:
    """One hit."""

    path: str
    line: int
    text: str
    symbols: list[str]


@dataclass(slots=True)
class GrepFile:
    """Number of matches in one file."""

    path: str
    matches: int


class GrepDetails(BaseModel):
    """Structured result of the `grep` tool: hits or files, total and cursor."""

    hits: list[GrepHit] = []
    files: list[GrepFile] = []
    total: int | None
    """Total number of hits; None when the search stopped early."""
    next_offset: int | None = None
    cursor: str | None = None
    complete: bool
    left_out: list[str]


@tool(effects=("read",))
async def grep(ctx: Context, params: GrepParams) -> Result[GrepDetails]:
    """Search file contents."""
    if params.mode != "content":
        return await _matching_files_result(ctx, params)
    most = ranked_hits.hits_needed(params.offset, _cursor_from_params(params), params.limit)
    found = await _hit_query(params).hits(ctx.search, ctx.syntax, most=most)
    if not found.hits:
        return await _empty_result(ctx, params, found.gaps)

    total = None if found.gaps.capped or found.gaps.timed_out else len(found.hits)
    page = ranked_hits.page_of_hits(
        found, params.path, offset=params.offset, cursor=_cursor_from_params(params), limit=params.limit
    )
    context = params.context if params.context is not None else CONTEXT_LINES_BY_HITS.get(total or 0, 0)
    seen = await ranked_hits.hits_in_context(ctx.search, ctx.syntax, page.found, context)
    text, shown = ranked_hits.hits_text_within(seen, _tokens_for_hits(params, found.gaps))

    end = page.start + shown
    more = total is None or end < total
    details = GrepDetails(
        hits=[_hit_detail(sight) for sight in seen[:shown]],
        total=total,
        next_offset=end if more else None,
        cursor=page.after(shown) if more else None,
        complete=found.gaps.complete and shown == total,
        left_out=found.gaps.notes,
    )
    of = (
        f"more than {number_with_noun(len(page.keys), 'match')}"
        if total is None
        else number_with_noun(total, "match")
    )
    return Result(f"{text}\n{_footer_text(details, page, of)}", details)


def _hit_query(params: GrepParams) -> ranked_hits.HitQuery:
    given = [params.pattern] if isinstance(params.pattern, str) else params.pattern
    ends = any("\n" in one or (params.syntax == "regex" and r"\n" in one) for one in given)
    patterns = SearchPatterns(
        patterns=tuple(given),
        literal=params.syntax == "literal",
        case_sensitive=params.case_sensitive,
        multiline=params.multiline or ends,
    )
    include = (params.include,) if params.include else ()
    # A glob that names a hidden file includes it.
    named = any(part.startswith(".") for glob in include for part in glob.split("/"))
    every = params.include_ignored
    scope = SearchScope(root=params.path or ".", include=include, hidden=every or named, ignored=every)
    return ranked_hits.HitQuery(
        patterns=patterns, scope=scope, shape=params.syntax == "structure", kind=params.kind
    )


def _cursor_from_params(params: GrepParams) -> SearchCursor | None:
    try:
        return parse_cursor(params.cursor) if params.cursor else None
    except BadCursor as problem:
        raise InvalidInput(f"`cursor`: {problem}.", hint="Leave it out to start again.") from None


def _hit_detail(sight: ranked_hits.HitInContext) -> GrepHit:
    hit = sight.hit
    text = clip_line(hit.text, LINE_CHARS, around=sight.rendered_hit.at, part=hit.clipped)
    names = [without_surrogates(symbol.name) for symbol in sight.symbols]
    return GrepHit(
        path=without_surrogates(hit.path), line=hit.line, text=without_surrogates(text), symbols=names
    )


def _tokens_for_hits(params: GrepParams, gaps: SearchGaps) -> int:
    """Return the number of tokens available for hits."""
    return (
        (params.max_tokens or MAX_GREP_RESULT_TOKENS)
        - FOOTER_TOKENS
        - estimate_tokens(" ".join(gaps.notes))
    )


def _footer_text(
    details: GrepDetails, page: ranked_hits.HitPage[Hit] | ranked_hits.HitPage[MatchCount], of: str
) -> str:
    end = page.start + len(details.hits or details.files)
    shown = f"{page.start + 1}-{end}" if page.start else f"{end}"
    notes = [f"Showing {shown} of {of}."]
    if details.cursor:
        notes.append(f"Next page: cursor={details.cursor}.")
    if page.moved:
        notes.append("Files changed since the last page: hits may be missing or duplicated.")
    return f"({' '.join([*notes, *details.left_out])})"


async def _empty_result(ctx: Context, params: GrepParams, gaps: SearchGaps) -> Result[GrepDetails]:
    reasons = [] if gaps.timed_out else await ranked_hits.why_no_hits(ctx.search, _hit_query(params))
    notes = ["No matches.", *gaps.notes, *reasons]
    return Result(" ".join(notes), GrepDetails(total=0, complete=gaps.complete, left_out=gaps.notes))


async def _matching_files_result(ctx: Context, params: GrepParams) -> Result[GrepDetails]:
    """List matching files, best first, or their match counts, highest first."""
    found = await _hit_query(params).tallies(ctx.search, ctx.syntax)
    if not found.tallies:
        return await _empty_result(ctx, params, found.gaps)
    total, matches = len(found.tallies), sum(tally.matches for tally in found.tallies)
    unknown = found.gaps.capped or found.gaps.timed_out
    by_count = params.mode == "counts"
    page = ranked_hits.page_of_files(
        found,
        by_count=by_count,
        offset=params.offset,
        cursor=_cursor_from_params(params),
        limit=params.limit,
    )
    rows = [path_on_one_line(tally.path) + f":{tally.matches}" * by_count for tally in page.found]
    rows = rows[: count_rows_that_fit(rows, _tokens_for_hits(params, found.gaps))]
    end = page.start + len(rows)
    details = GrepDetails(
        files=[
            GrepFile(path=without_surrogates(tally.path), matches=tally.matches)
            for tally in page.found[: len(rows)]
        ],
        total=None if unknown else matches,
        next_offset=end if end < total else None,
        cursor=page.after(len(rows)) if end < total else None,
        complete=found.gaps.complete and len(rows) == total,
        left_out=found.gaps.notes,
    )
    more = "more than " if unknown else ""
    of = f"{more}{number_with_noun(total, 'file')} with {more}{number_with_noun(matches, 'match')}"
    return Result("\n".join([*rows, _footer_text(details, page, of)]), details)
