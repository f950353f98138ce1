"""Tool `read`: shows files or parts of them as lines, outline, folded code, repository map or pictures."""

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from handtools.core.context import Context
from handtools.core.errors import NotFound, ToolError
from handtools.core.media import PreviewRequest
from handtools.core.result import Result, Text
from handtools.core.tool import tool
from handtools.text.numbered_page import ReadBudget, RequestedLines
from handtools.text.paths import PathSpec, parse_path_spec
from handtools.tools.reading import file_view
from handtools.tools.reading.file_view import FileViewRequest, FileViewResult, ViewFacts

MAX_LINES = file_view.MAX_VIEW_LINES
MAX_BYTES = file_view.MAX_VIEW_BYTES
MAX_LINE_CHARS = file_view.MAX_VIEW_LINE_CHARS
MAP_TOKENS = file_view.MAP_TOKENS
MAX_READ_PARTS = 20
LEFT_OUT_PART_TOKENS = 20
"""Estimated tokens to name a part that was left out."""


class ReadParams(BaseModel):
    """Arguments of the `read` tool."""

    path: str = Field(title="File to read, relative to the workspace root.")
    start_line: int | None = Field(None, description="Negative counts from the end.")
    end_line: int | None = Field(None, title="Last line, included.")
    limit: int | None = Field(None, ge=1, title="Maximum number of lines.")
    also: list[str] = Field(
        default=[], max_length=MAX_READ_PARTS, title="More files or parts to include in the result."
    )
    view: file_view.ViewKind = Field("auto", title="How to show it.")
    pages: str | None = Field(None, pattern=r"^\d+(-\d*)?$", description="PDF: 3-5 or 3-.")
    max_tokens: SkipJsonSchema[int | None] = Field(
        None, ge=100, title="Maximum size of the result in tokens."
    )


class ReadDetails(ViewFacts):
    """Structured result of the `read` tool: facts about the first part, and about the others."""

    also: list[ViewFacts] = Field(default=[])


@tool(
    effects=("read",),
    paths=lambda params: [parse_path_spec(each).path for each in (params.path, *params.also)],
)
async def read(ctx: Context, params: ReadParams) -> Result[ReadDetails]:
    """Read files or parts of files."""
    budget = ReadBudget(MAX_LINES, MAX_BYTES, params.max_tokens)
    if not params.also:
        piece = await _read_part(ctx, params, params.path, budget)
        return Result((Text(piece.text), *piece.images), ReadDetails(**dict(piece.facts)))

    views: list[FileViewResult] = []
    shown: list[str] = []
    for path in (params.path, *params.also):
        left = len(params.also) - len(views)
        views.append(
            await _read_part_or_error(
                ctx, params, path, budget.with_tokens_reserved(LEFT_OUT_PART_TOKENS * left)
            )
        )
        shown.append(f"== {views[-1].facts.path} ==\n{views[-1].text}")
        budget = budget.budget_after_text(shown[-1])
    details = ReadDetails(**dict(views[0].facts), also=[piece.facts for piece in views[1:]])
    images = (image for piece in views for image in piece.images)
    return Result((Text("\n\n".join(shown)), *images), details)


async def _read_part_or_error(
    ctx: Context, params: ReadParams, path: str, budget: ReadBudget
) -> FileViewResult:
    """Read one of several requested parts; an error is returned as its text."""
    if budget.is_spent:
        left_out = "all of it: the result is full"
        return FileViewResult(
            f"(Left out {left_out}.)", ViewFacts(path=path, left_out=left_out, clipped=True)
        )
    try:
        return await _read_part(ctx, params, path, budget)
    except ToolError as failure:
        return FileViewResult(str(failure), ViewFacts(path=path, fault=failure.code))


async def _read_part(ctx: Context, params: ReadParams, text: str, budget: ReadBudget) -> FileViewResult:
    wanted = parse_path_spec(text)
    try:
        return await _view_request(ctx, params, wanted, budget, first=text == params.path).read_view()
    except NotFound:
        # A file name may end like a range: an existing file takes precedence.
        if wanted.is_whole_file or await ctx.files.facts(text) is None:
            raise
        return await _view_request(
            ctx, params, PathSpec(text), budget, first=text == params.path
        ).read_view()


def _view_request(
    ctx: Context, params: ReadParams, spec: PathSpec, budget: ReadBudget, *, first: bool
) -> FileViewRequest:
    requested = RequestedLines(spec.first, spec.last)
    if first:
        requested = RequestedLines(
            spec.first if params.start_line is None else params.start_line,
            spec.last if params.end_line is None else params.end_line,
            params.limit,
        )
    return FileViewRequest(
        ctx, PathSpec(spec.path, spec.symbol), requested, params.view, _preview_request(params), budget
    )


def _preview_request(params: ReadParams) -> PreviewRequest:
    first, dash, last = (params.pages or "").partition("-")
    end = None if dash and not last else int(last or first or 0) or None
    return PreviewRequest(first=int(first) if first else None, last=end, rendered=params.view == "image")
