"""Read: files, or parts of them, as a model can use them: lines, outlines, folds, maps, pictures."""

from pydantic import BaseModel, Field

from handtools.core import viewing
from handtools.core.content import Text
from handtools.core.context import Context
from handtools.core.errors import NotFound, ToolError
from handtools.core.media import Wish
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.viewing import Part, Piece, Viewing
from handtools.text.paging import Budget, Span
from handtools.text.targets import Target, target

MAX_LINES = viewing.MAX_LINES
MAX_BYTES = viewing.MAX_BYTES
MAX_LINE_CHARS = viewing.MAX_LINE_CHARS
MAP_TOKENS = viewing.MAP_TOKENS
MAX_PARTS = 20
HEAD_TOKENS = 20
"""About what it costs to name one of several parts and say that it was left out."""


class ReadParams(BaseModel):
    """What the model sends."""

    path: str = Field(description="File to read, relative to the workspace root.")
    start_line: int | None = Field(None, description="First line, from 1; negative counts from the end.")
    end_line: int | None = Field(None, description="Last line, included.")
    limit: int | None = Field(None, ge=1, description="At most this many lines.")
    also: list[str] = Field(
        default=[], max_length=MAX_PARTS, description="More files or parts for the same answer."
    )
    view: viewing.View = Field("auto", description="How to show it.")
    pages: str | None = Field(None, pattern=r"^\d+(-\d*)?$", description="Pages of a PDF: 3, 3-5 or 3-.")
    max_tokens: int | None = Field(None, ge=100, description="Fit the answer into this many tokens.")


class ReadDetails(Part):
    """What programs get: the first part, and the others."""

    also: list[Part] = Field(default=[])


@tool(effects=("read",), paths=lambda params: [target(each).path for each in (params.path, *params.also)])
async def read(ctx: Context, params: ReadParams) -> Result[ReadDetails]:
    """Read files or parts of files."""
    budget = Budget(MAX_LINES, MAX_BYTES, params.max_tokens)
    if not params.also:
        piece = await _piece(ctx, params, params.path, budget)
        return Result((Text(piece.text), *piece.images), ReadDetails(**dict(piece.part)))

    pieces: list[Piece] = []
    shown: list[str] = []
    for path in (params.path, *params.also):
        left = len(params.also) - len(pieces)
        pieces.append(await _one_of_several(ctx, params, path, budget.keeping(HEAD_TOKENS * left)))
        shown.append(f"== {pieces[-1].part.path} ==\n{pieces[-1].text}")
        budget = budget.less(shown[-1])
    details = ReadDetails(**dict(pieces[0].part), also=[piece.part for piece in pieces[1:]])
    images = (image for piece in pieces for image in piece.images)
    return Result((Text("\n\n".join(shown)), *images), details)


async def _one_of_several(ctx: Context, params: ReadParams, path: str, budget: Budget) -> Piece:
    """What fails says so in its place, so that the others are still of use."""
    if budget.spent:
        left_out = "all of it: the answer is full"
        return Piece(f"(Left out {left_out}.)", Part(path=path, left_out=left_out, clipped=True))
    try:
        return await _piece(ctx, params, path, budget)
    except ToolError as failure:
        return Piece(str(failure), Part(path=path, fault=failure.code))


async def _piece(ctx: Context, params: ReadParams, text: str, budget: Budget) -> Piece:
    wanted = target(text)
    try:
        return await _viewing(ctx, params, wanted, budget, first=text == params.path).piece()
    except NotFound:
        # A name may end like a range: what is really there goes before what it looks like.
        if wanted.whole or await ctx.files.facts(text) is None:
            raise
        return await _viewing(ctx, params, Target(text), budget, first=text == params.path).piece()


def _viewing(ctx: Context, params: ReadParams, wanted: Target, budget: Budget, *, first: bool) -> Viewing:
    span = Span(wanted.first, wanted.last)
    if first:
        span = Span(
            wanted.first if params.start_line is None else params.start_line,
            wanted.last if params.end_line is None else params.end_line,
            params.limit,
        )
    return Viewing(ctx, Target(wanted.path, wanted.symbol), span, params.view, _wish(params), budget)


def _wish(params: ReadParams) -> Wish:
    first, dash, last = (params.pages or "").partition("-")
    end = None if dash and not last else int(last or first or 0) or None
    return Wish(first=int(first) if first else None, last=end, rendered=params.view == "image")
