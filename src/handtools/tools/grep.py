"""Grep: lines that match, each with the symbols around it."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from handtools.core import finding
from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.core.searching import Gaps, Hits, Patterns, Scope
from handtools.core.syntax import Role
from handtools.core.tool import tool
from handtools.text.citing import LINE_CHARS, named
from handtools.text.clipping import clip_line
from handtools.text.counting import agreeing, counted
from handtools.text.cursors import BadCursor, Cursor, parse
from handtools.text.encoding import displayed

PAGE = 20
MAX_PAGE = 200
COUNTED_FILES = 10_000
MAX_TOKENS = 10_000
GROWN = {1: 20, 2: 8, 3: 8}  # lines of context by the number of hits, when there are very few


class GrepParams(BaseModel):
    """What the model sends."""

    pattern: str | list[str] = Field(
        description="What to look for; several find any of them.", min_length=1
    )
    path: str = Field(".", description="File or folder to search.")
    include: str | None = Field(
        None, description="Glob of files, such as `*.{ts,tsx}`; `!` before it leaves out."
    )
    syntax: Literal["regex", "literal", "structure"] = Field(
        "regex", description="How to read the pattern; `structure` is ast-grep: `open($FILE, $$$)`."
    )
    kind: Role | None = Field(None, description="Only where the match is this to the parser.")
    mode: Literal["content", "files", "counts"] = Field("content", description="Lines, paths, or numbers.")
    case_sensitive: bool = Field(default=True, description="Whether `A` differs from `a`.")
    multiline: bool = Field(default=False, description="Let a match go over line ends.")
    context: int | None = Field(None, ge=0, le=50, description="Lines before and after each hit.")
    include_ignored: bool = Field(default=False, description="Also hidden and ignored files.")
    limit: int = Field(PAGE, ge=1, le=MAX_PAGE, description="Hits on a page.")
    offset: int = Field(0, ge=0, le=10_000, description="Hits to skip.")
    cursor: str | None = Field(None, description="Where the last page ended, instead of `offset`.")
    max_tokens: int | None = Field(None, ge=100, description="Size of the answer.")


@dataclass(slots=True)
class GrepHit:
    """One hit."""

    path: str
    line: int
    text: str
    symbols: list[str]


@dataclass(slots=True)
class GrepFile:
    """How often it occurs in a file."""

    path: str
    matches: int


class GrepDetails(BaseModel):
    """What programs get."""

    hits: list[GrepHit] = []
    files: list[GrepFile] = []
    total: int | None
    """None when the search stopped before it had seen all."""
    next_offset: int | None = None
    cursor: str | None = None
    complete: bool
    left_out: list[str]


@tool(effects=("read",))
async def grep(ctx: Context, params: GrepParams) -> Result[GrepDetails]:
    """Search the text of files."""
    if params.mode != "content":
        return await _files(ctx, params)
    found = await _found(ctx, params)
    if not found.hits:
        return await _nothing(ctx, params, found.gaps)

    total = None if found.gaps.capped or found.gaps.timed_out else len(found.hits)
    cursor = _cursor(params)
    page = finding.page(found, params.path, offset=params.offset, cursor=cursor, limit=params.limit)
    if not page.hits:
        there = f"{agreeing(len(page.keys), 'is')} only {counted(len(page.keys), 'match')}"
        raise InvalidInput(f"There {there}.", hint="Use a smaller offset.")
    context = params.context if params.context is not None else GROWN.get(total or 0, 0)
    seen = await finding.sights(ctx.search, ctx.syntax, page.hits, context)
    text, shown = finding.fitted(seen, params.max_tokens or MAX_TOKENS)

    end = page.start + shown
    more = total is None or end < total
    details = GrepDetails(
        hits=[_detail(sight) for sight in seen[:shown]],
        total=total,
        next_offset=end if more else None,
        cursor=page.after(shown) if more else None,
        complete=found.gaps.complete and shown == total,
        left_out=found.gaps.notes,
    )
    return Result(f"{text}\n{_footer(details, page)}", details)


async def _found(ctx: Context, params: GrepParams) -> Hits:
    """Hits in the order of paths, as many as the page may be taken from."""
    patterns, scope = _patterns(params), _scope(params)
    if params.syntax == "structure":
        return await finding.structural(ctx.search, ctx.syntax, patterns.patterns, scope)
    if params.kind is not None:
        return await finding.of_kind(ctx.search, ctx.syntax, patterns, scope, params.kind)
    most = finding.reach(params.offset, _cursor(params), params.limit)
    return await ctx.search.hits(patterns, scope, most=most)


def _patterns(params: GrepParams) -> Patterns:
    given = [params.pattern] if isinstance(params.pattern, str) else params.pattern
    ends = any("\n" in one or (params.syntax == "regex" and r"\n" in one) for one in given)
    return Patterns(
        patterns=tuple(given),
        literal=params.syntax == "literal",
        case_sensitive=params.case_sensitive,
        multiline=params.multiline or ends,
    )


def _scope(params: GrepParams) -> Scope:
    include = (params.include,) if params.include else ()
    # Who names a hidden file wants it.
    named = any(part.startswith(".") for glob in include for part in glob.split("/"))
    every = params.include_ignored
    return Scope(root=params.path or ".", include=include, hidden=every or named, ignored=every)


def _cursor(params: GrepParams) -> Cursor | None:
    try:
        return parse(params.cursor) if params.cursor else None
    except BadCursor as problem:
        raise InvalidInput(f"`cursor`: {problem}.", hint="Leave it out to start again.") from None


def _detail(sight: finding.Sight) -> GrepHit:
    hit = sight.hit
    text = clip_line(hit.text, LINE_CHARS, around=sight.citation.at)
    names = [displayed(symbol.name) for symbol in sight.symbols]
    return GrepHit(path=displayed(hit.path), line=hit.line, text=displayed(text), symbols=names)


def _footer(details: GrepDetails, page: finding.Page) -> str:
    end = page.start + len(details.hits)
    shown = f"{page.start + 1}-{end}" if page.start else f"{end}"
    more = "more than " if details.total is None else ""
    notes = [f"Showing {shown} of {more}{counted(details.total or len(page.keys), 'match')}."]
    if details.cursor:
        notes.append(f"Next page: cursor={details.cursor}.")
    if page.moved:
        notes.append("Files changed since the last page: hits may be missing or come twice.")
    return f"({' '.join([*notes, *details.left_out])})"


async def _nothing(ctx: Context, params: GrepParams, gaps: Gaps) -> Result[GrepDetails]:
    notes = ["No matches.", *gaps.notes]
    if params.syntax != "structure" and not gaps.timed_out:
        notes += await finding.missed(ctx.search, _patterns(params), _scope(params))
    return Result(" ".join(notes), GrepDetails(total=0, complete=gaps.complete, left_out=gaps.notes))


async def _files(ctx: Context, params: GrepParams) -> Result[GrepDetails]:
    """Paths, the best first; or numbers, the largest first."""
    found = await ctx.search.tallies(_patterns(params), _scope(params), most=COUNTED_FILES)
    if not found.tallies:
        return await _nothing(ctx, params, found.gaps)
    total, matches = len(found.tallies), sum(tally.matches for tally in found.tallies)
    by_count = params.mode == "counts"
    page = finding.ordered(found.tallies, by_count=by_count)[params.offset : params.offset + params.limit]
    end = params.offset + len(page)
    rows = [named(tally.path) + f":{tally.matches}" * by_count for tally in page]
    more = "more than " if found.gaps.capped else ""
    files, hits = more + counted(total, "file"), more + counted(matches, "match")
    notes = [f"Showing {len(page)} of {files} with {hits}."]
    notes += [f"Next page: offset={end}."] * (end < total) + found.gaps.notes
    details = GrepDetails(
        files=[GrepFile(path=displayed(tally.path), matches=tally.matches) for tally in page],
        total=None if found.gaps.capped else matches,
        next_offset=end if end < total else None,
        complete=found.gaps.complete and len(page) == total,
        left_out=found.gaps.notes,
    )
    return Result("\n".join([*rows, f"({' '.join(notes)})"]), details)
