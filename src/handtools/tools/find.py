"""Tool `find`: finds files and folders by glob, newest first."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from handtools.core.context import Context
from handtools.core.errors import InvalidInput, OutsideWorkspace
from handtools.core.result import Result
from handtools.core.search import FolderEntry, FoundPaths, SearchScope, WantedKind
from handtools.core.tool import tool
from handtools.text.encoding import without_surrogates
from handtools.text.plurals import inflect_for_number, number_with_noun
from handtools.text.search.hit_rendering import path_on_one_line
from handtools.text.token_estimate import count_rows_that_fit, estimate_tokens
from handtools.tools.search.result_pages import BadRecencyCursor, RecencyCursor

FIND_PAGE_PATHS = 100
MAX_FIND_PAGE_PATHS = 1_000
MAX_FIND_RESULT_TOKENS = 10_000
FOOTER_TOKENS = 50
"""Estimated tokens of the result's last line, without notes."""
FIND_PROBE_SECONDS = 0.25
"""Time limit in seconds of each search that explains an empty result."""
GLOB_CHARACTERS = frozenset("*?[]{}\\")
WANTED_KINDS: dict[str, WantedKind] = {"file": "file", "directory": "folder", "any": "any"}


class FindParams(BaseModel):
    """Arguments of the `find` tool."""

    pattern: str = Field(title="Glob: `*.py`, `src/**/test_*.{ts,tsx}`, `[ab]*`.", min_length=1)
    path: str = Field(".", title="Folder to search.")
    type: Literal["file", "directory", "any"] = Field("file", title="What to find.")
    case_sensitive: bool = Field(default=True, title="Whether `A` differs from `a`.")
    include_ignored: bool = Field(default=False, title="Include hidden and ignored files.")
    limit: Annotated[int, AfterValidator(partial(min, MAX_FIND_PAGE_PATHS))] = Field(
        FIND_PAGE_PATHS, ge=1, title="Paths per page."
    )
    offset: int = Field(0, ge=0, le=100_000, title="Paths to skip.")
    cursor: str | None = Field(None, description="From the last page.")
    max_tokens: SkipJsonSchema[int | None] = Field(None, ge=100, title="Maximum size of the result.")


class FindEntry(BaseModel):
    """One path; unknown values are None."""

    path: str
    kind: str
    bytes: int | None
    modified: datetime | None


class FindDetails(BaseModel):
    """Structured result of the `find` tool: the paths, the total and the cursor."""

    entries: list[FindEntry]
    total: int
    next_offset: int | None
    cursor: str | None
    complete: bool
    left_out: list[str]


@tool(effects=("read",))
async def find(ctx: Context, params: FindParams) -> Result[FindDetails]:
    """Find paths by glob."""
    params = params.model_copy(update={"pattern": _workspace_glob(ctx, params.pattern)})
    resume = _cursor_from_params(params)
    scope = _search_scope(params)
    most = params.offset + params.limit if resume is None else resume.entries_needed + params.limit
    found = await ctx.search.paths(scope, wanted=WANTED_KINDS[params.type], most=most)
    if not found.total:
        return await _empty_result(ctx, params, found)

    aged = [(entry.path, entry.modified) for entry in found.found]
    start, sure = (params.offset, True) if resume is None else resume.place(aged)
    page = found.found[start : start + params.limit]
    if not page:
        total = f"{inflect_for_number(found.total, 'is')} only {number_with_noun(found.total, 'path')}"
        raise InvalidInput(f"There {total}.", hint="Use a smaller offset.")
    rows = [_entry_row(entry) for entry in page]
    room = (
        (params.max_tokens or MAX_FIND_RESULT_TOKENS)
        - FOOTER_TOKENS
        - estimate_tokens(" ".join(found.gaps.notes))
    )
    rows = rows[: count_rows_that_fit(rows, room)]
    end = start + len(rows)
    more = end < found.total
    details = FindDetails(
        entries=[_entry_detail(entry) for entry in page[: len(rows)]],
        total=found.total,
        next_offset=end if more else None,
        cursor=str(RecencyCursor.after(aged, end)) if more else None,
        complete=found.gaps.complete and len(rows) == found.total,
        left_out=found.gaps.notes,
    )
    shown = f"{start + 1}-{end}" if start else f"{end}"
    notes = [f"Showing {shown} of {number_with_noun(found.total, 'path')}, newest first."]
    notes += [f"Next page: cursor={details.cursor}."] * more
    if not sure:
        notes.append("Files changed since the last page: paths may be missing or duplicated.")
    elif resume and start > resume.shown:
        notes.append("Some are newer than the last page.")
    return Result("\n".join([*rows, f"({' '.join([*notes, *found.gaps.notes])})"]), details)


def _workspace_glob(ctx: Context, pattern: str) -> str:
    """Convert a pattern to a glob relative to the workspace, even if it starts with an absolute path."""
    names = pattern.split("/")
    if ".." in names:
        hint = "Send the folder as `path`, and a pattern for paths in it."
        raise InvalidInput(f"`{pattern}`: a glob can't contain `..`.", hint=hint)
    fixed = list(takewhile(GLOB_CHARACTERS.isdisjoint, names))
    if not pattern.startswith("/") or len(fixed) < 2:
        return pattern
    try:
        folder = ctx.files.shown_path("/".join(fixed))
    except OutsideWorkspace:
        return pattern
    return "/".join([*([] if folder == "." else [folder]), *names[len(fixed) :]]) or "**"


def _search_scope(params: FindParams) -> SearchScope:
    # A pattern that names a hidden file includes it.
    named = any(part.startswith(".") for part in params.pattern.split("/"))
    return SearchScope(
        root=params.path or ".",
        include=(params.pattern,),
        case_sensitive=params.case_sensitive,
        hidden=params.include_ignored or named,
        ignored=params.include_ignored,
    )


def _cursor_from_params(params: FindParams) -> RecencyCursor | None:
    try:
        return RecencyCursor.parse(params.cursor) if params.cursor else None
    except BadRecencyCursor as problem:
        raise InvalidInput(f"`cursor`: {problem}.", hint="Leave it out to start again.") from None


def _entry_row(entry: FolderEntry) -> str:
    return path_on_one_line(entry.path) + "/" * (entry.kind == "folder")


def _entry_detail(entry: FolderEntry) -> FindEntry:
    kind = "directory" if entry.kind == "folder" else entry.kind
    at = None if entry.modified is None else datetime.fromtimestamp(entry.modified, UTC)
    return FindEntry(path=without_surrogates(entry.path), kind=kind, bytes=entry.bytes, modified=at)


async def _empty_result(ctx: Context, params: FindParams, found: FoundPaths) -> Result[FindDetails]:
    """Explain an empty result: what was skipped, and which paths a wider search would have found."""
    notes = ["No path matches.", *found.gaps.notes]
    scope = replace(_search_scope(params), timeout=FIND_PROBE_SECONDS)
    wider = {
        "among hidden or ignored files (include_ignored)": replace(scope, hidden=True, ignored=True),
        "if case is ignored (case_sensitive=false)": replace(scope, case_sensitive=False),
    }
    if GLOB_CHARACTERS.isdisjoint(params.pattern):
        part = f"*{params.pattern.rstrip('/').rpartition('/')[2]}*"
        wider[f"`{part}`"] = replace(scope, include=(part,))
    if params.pattern.startswith("/"):
        notes.append("Patterns are relative to the workspace; this one starts outside it or nowhere.")
    for what, asked in wider.items():
        if asked != scope:
            there = await ctx.search.paths(asked, wanted=WANTED_KINDS[params.type], most=1)
            match = inflect_for_number(there.total, "matches")
            notes += [
                f"{there.total:,} {match} {what}, such as {_entry_row(entry)}." for entry in there.found
            ]
            if there.gaps.timed_out:
                notes.append(f"More may match {what}: that search timed out.")
    details = FindDetails(
        entries=[],
        total=0,
        next_offset=None,
        cursor=None,
        complete=found.gaps.complete,
        left_out=found.gaps.notes,
    )
    return Result(" ".join(notes), details)
