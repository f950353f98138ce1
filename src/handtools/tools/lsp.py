"""Tool `lsp`: queries language servers for definitions, references, renames and diagnostics by name."""

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field

from handtools.core.changes import Change, ChangeSet
from handtools.core.context import Context
from handtools.core.errors import InvalidInput, NoMatch, NotFound, Unavailable
from handtools.core.language import (
    NO_SERVER_HINT,
    CodeLocation,
    Diagnostic,
    LanguageAnswer,
    LanguageOperation,
    LanguageQuestion,
    diagnostic_lines,
    unknown_report_text,
)
from handtools.core.result import Result
from handtools.core.search import Hit, Hits, Search, SearchGaps
from handtools.core.syntax import Syntax, TextPosition, symbols_named
from handtools.core.tool import tool
from handtools.text.encoding import decode
from handtools.text.lines import split_lines_without_endings
from handtools.tools.search import ranked_hits
from handtools.tools.search.result_pages import BadCursor, parse_cursor

LINE_NUMBER_TOLERANCE = 3
"""Number of lines by which the model's line number may be off."""
MAX_CANDIDATE_LINES_LISTED = 10
_COLD_NOTE = " It has just started and may not have read the whole project; ask again later."
_LAST_NAME = re.compile(r"[^\W\d][\w$]*\Z")


async def symbol_position(
    syntax: Syntax, path: str, data: bytes, symbol: str, line: int | None
) -> TextPosition:
    """Find the position of a name on or near a line; if no line is given, at its definition in the file."""
    rows = split_lines_without_endings(decode(data).body)
    match = _LAST_NAME.search(symbol)
    if match is None:
        raise InvalidInput(f"`{symbol}` is not a name.", hint="Send only the name, such as `Reader.read`.")
    word = re.compile(rf"(?<![\w$]){re.escape(match[0])}(?![\w$])")
    places = [
        TextPosition(number, found.start())
        for number, row in enumerate(rows, 1)
        if (found := word.search(row))
    ]
    if not places:
        raise NoMatch(f"`{match[0]}` is not in {path}.", hint="Read the file, or search for the name.")
    if line is not None:
        nearest = min(places, key=lambda place: abs(place.line - line))
        if abs(nearest.line - line) <= LINE_NUMBER_TOLERANCE:
            return nearest
        lines = ", ".join(str(place.line) for place in places[:MAX_CANDIDATE_LINES_LISTED])
        raise NoMatch(f"`{match[0]}` is not on line {line} of {path}.", hint=f"It is on lines {lines}.")
    outline = await syntax.outline(path, data)
    ways = symbols_named(outline.symbols, symbol) if outline else []
    if ways:
        defined = ways[0][-1].line
        return next((place for place in places if place.line == defined), places[0])
    return places[0]


async def hits_at_locations(search: Search, locations: Sequence[CodeLocation]) -> list[Hit]:
    """Convert code locations to search hits with their lines of text, each line once."""
    sources = await search.read(list(dict.fromkeys(place.path for place in locations)))
    rows = {path: split_lines_without_endings(decode(data).body) for path, data in sources.items()}
    hits: dict[tuple[str, int], Hit] = {}
    for place in sorted(locations, key=lambda place: (place.path, place.line, place.column)):
        lines = rows.get(place.path, [])
        text = lines[place.line - 1] if place.line <= len(lines) else place.name
        span = (place.column, place.column + max(len(place.name), 1))
        hits.setdefault((place.path, place.line), Hit(place.path, place.line, text, (span,)))
    return list(hits.values())


LSP_PAGE_ANSWERS = 50
MAX_LSP_PAGE_ANSWERS = 200
MAX_LSP_RESULT_TOKENS = 8_000
HOVER_CHARS = 4_000
_WHOLE_FILE_OPERATIONS: frozenset[LanguageOperation] = frozenset(
    {"symbols", "workspace_symbols", "diagnostics", "actions"}
)
"""Operations that don't need a symbol."""


class LspParams(BaseModel):
    """Arguments of the `lsp` tool."""

    operation: LanguageOperation = Field(description="What to do.")
    path: str = Field(
        "", description="The file; may be empty for workspace_symbols and project diagnostics."
    )
    symbol: str = Field("", description="Name of the symbol, such as `Reader.read`.")
    line: int | None = Field(None, ge=1, description="Line of the symbol.")
    text: str = Field("", description="rename: new name; workspace_symbols: query; actions: title to run.")
    limit: int = Field(LSP_PAGE_ANSWERS, ge=1, le=MAX_LSP_PAGE_ANSWERS, description="Results per page.")
    cursor: str | None = Field(None, description="Where the last page ended.")


class LspPlace(BaseModel):
    """A place in the code."""

    path: str
    line: int
    name: str = ""
    kind: str = ""


class LspError(BaseModel):
    """One diagnostic."""

    path: str
    line: int
    severity: str
    message: str
    code: str = ""


class LspDetails(BaseModel):
    """Structured result of the `lsp` tool: locations, errors or changed files."""

    server: str
    places: list[LspPlace] = Field(default=[])
    total: int = 0
    text: str = ""
    titles: list[str] = Field(default=[])
    diagnostics: list[LspError] = Field(default=[])
    unknown: list[str] = Field(default=[])
    """Files for which it is unknown whether they have errors."""
    changed: list[str] = Field(default=[])
    cursor: str | None = None


@tool
async def lsp(ctx: Context, params: LspParams) -> Result[LspDetails]:
    """Query the language server."""
    answer = await ctx.language.ask(await _language_question(ctx, params))
    if answer.files:
        return await _apply_changes(ctx, params, answer)
    if params.operation == "hover":
        text = answer.text[:HOVER_CHARS] or f"{answer.server} has no information on it."
        return Result(text, LspDetails(server=answer.server, text=answer.text[:HOVER_CHARS]))
    if params.operation == "actions":
        text = "\n".join(answer.titles) or f"{answer.server} offers no actions for that line."
        return Result(text, LspDetails(server=answer.server, titles=list(answer.titles)))
    if params.operation == "diagnostics":
        return _diagnostics_result(answer)
    return await _locations_result(ctx, params, answer)


async def _language_question(ctx: Context, params: LspParams) -> LanguageQuestion:
    kind = params.operation
    if not params.path:
        if kind not in {"workspace_symbols", "diagnostics"}:
            raise InvalidInput(f"`{kind}` needs a `path`.", hint="Send the path of the file.")
        return LanguageQuestion(kind=kind, path="", text=params.text or params.symbol)
    facts = await ctx.files.facts(params.path)
    if facts is None or facts.kind != "file":
        raise NotFound(f"`{params.path}` is not a file.", hint="Search for it with `find`.")
    if missing := ctx.language.missing_server_sentence(params.path):
        raise Unavailable(missing, hint=NO_SERVER_HINT)
    text = params.text or (params.symbol if kind == "workspace_symbols" else "")
    if kind == "rename" and not text:
        raise InvalidInput("`rename` needs `text`.", hint="Send the new name as `text`.")
    if kind in _WHOLE_FILE_OPERATIONS:
        if kind == "actions" and params.line is None:
            raise InvalidInput("`actions` needs a `line`.", hint="Send the line whose actions you want.")
        return LanguageQuestion(kind=kind, path=params.path, line=params.line or 0, text=text)
    if not params.symbol:
        raise InvalidInput(f"`{kind}` needs a `symbol`.", hint="Send the name as written in the file.")
    data = await ctx.files.read(params.path)
    place = await symbol_position(ctx.syntax, params.path, data, params.symbol, params.line)
    return LanguageQuestion(kind=kind, path=params.path, line=place.line, column=place.column, text=text)


async def _apply_changes(ctx: Context, params: LspParams, answer: LanguageAnswer) -> Result[LspDetails]:
    changes = [Change.of(file.path, before=file.before, after=file.after) for file in answer.files]
    await ctx.files.apply(
        ChangeSet.of(*changes, note=f"{params.operation} {params.symbol} {params.text}".strip())
    )
    paths = sorted(file.path for file in answer.files)
    done = (
        f"Renamed `{params.symbol}` to `{params.text}`"
        if params.operation == "rename"
        else f"Made: {params.text}"
    )
    said = [f"{done} in {len(paths)} file{'s' * (len(paths) > 1)}:", *paths, *answer.notes]
    return Result("\n".join(said), LspDetails(server=answer.server, changed=paths))


def _diagnostics_result(answer: LanguageAnswer) -> Result[LspDetails]:
    found = [each for verdict in answer.verdicts for each in verdict.diagnostics]
    unknown = [verdict for verdict in answer.verdicts if verdict.standing == "unknown"]
    said = []
    for severity in ("error", "warning"):
        some = [each for each in found if each.severity == severity]
        said += [f"{len(some)} {severity}{'s' * (len(some) != 1)} ({answer.server})."] if some else []
        for path in dict.fromkeys(each.path for each in some):
            said += diagnostic_lines([each for each in some if each.path == path])
    if len(unknown) < len(answer.verdicts) and not said:
        said.append(f"No errors or warnings ({answer.server}).")
    said += [unknown_report_text(verdict) for verdict in unknown]
    details = LspDetails(
        server=answer.server,
        diagnostics=[_diagnostic_details(each) for each in found],
        unknown=[verdict.path for verdict in unknown],
        total=len(found),
    )
    return Result("\n".join([*said, *answer.notes]) or "The server knows no files yet.", details)


def _diagnostic_details(diagnostic: Diagnostic) -> LspError:
    return LspError(
        path=diagnostic.path,
        line=diagnostic.line,
        severity=diagnostic.severity,
        message=diagnostic.message,
        code=diagnostic.code,
    )


async def _locations_result(ctx: Context, params: LspParams, answer: LanguageAnswer) -> Result[LspDetails]:
    if not answer.places:
        text = f"{answer.server} found none{' yet' if answer.partial else ''}."
        return Result(f"{text}{_COLD_NOTE if answer.partial else ''}", LspDetails(server=answer.server))
    try:
        cursor = parse_cursor(params.cursor) if params.cursor else None
    except BadCursor as problem:
        raise InvalidInput(f"`cursor`: {problem}.", hint="Leave it out to start again.") from None
    hits = await hits_at_locations(ctx.search, answer.places)
    page = ranked_hits.page_of_hits(
        Hits(tuple(hits), SearchGaps()), ".", offset=0, cursor=cursor, limit=params.limit
    )
    seen = await ranked_hits.hits_in_context(ctx.search, ctx.syntax, page.found, 0)
    text, shown = ranked_hits.hits_text_within(seen, MAX_LSP_RESULT_TOKENS)
    more = page.start + shown < len(hits)
    # A line may have several symbols, such as a function and its parameters: keep the first one.
    known = {(place.path, place.line): place for place in reversed(answer.places)}
    details = LspDetails(
        server=answer.server,
        places=[_location_details(known.get((hit.path, hit.line)), hit) for hit in page.found[:shown]],
        total=len(hits),
        cursor=page.after(shown) if more else None,
    )
    least = "at least " if answer.partial else ""
    notes = [f"Showing {shown} of {least}{len(hits)} ({answer.server}).", *answer.notes]
    notes += [_COLD_NOTE.strip()] if answer.partial else []
    notes += [f"Next page: cursor={details.cursor}."] if details.cursor else []
    return Result(f"{text}\n({' '.join(notes)})", details)


def _location_details(location: CodeLocation | None, hit: Hit) -> LspPlace:
    known = location or CodeLocation(hit.path, hit.line, 0, hit.line)
    return LspPlace(path=hit.path, line=hit.line, name=known.name, kind=known.kind)
