"""Count: the lines and words of a file. A whole tool, in a package of its own."""

from pydantic import BaseModel, Field

from handtools import Context, Result, tool


class CountParams(BaseModel):
    path: str = Field(description="File to count, relative to the workspace root.")


class CountDetails(BaseModel):
    lines: int
    words: int


@tool
async def count(ctx: Context, params: CountParams) -> Result[CountDetails]:
    """Count the lines and words of a file."""
    data = await ctx.files.read(params.path)
    details = CountDetails(lines=data.count(b"\n"), words=len(data.split()))
    return Result(f"{details.lines} lines, {details.words} words.", details)
