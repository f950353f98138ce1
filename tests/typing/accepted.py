"""Code that uses handtools and that type checkers must accept, with the types they must see."""

from typing import Any, assert_type

from pydantic import BaseModel

from handtools import BlockingToolbox, Call, Change, ChangeSet, Context, Result, Tool, Toolbox, coding, tool
from handtools.core.changes import RecordedChanges
from handtools.core.tool import json_schema


class CountParams(BaseModel):
    path: str


class CountDetails(BaseModel):
    lines: int


@tool
async def count(ctx: Context, params: CountParams) -> Result[CountDetails]:
    """Count the lines of a file."""
    data = await ctx.files.read(params.path)
    assert_type(data, bytes)
    return Result(f"{len(data)} bytes", CountDetails(lines=data.count(b"\n")))


@tool(effects=("read", "change"), paths=lambda params: [params.path])
async def clear(ctx: Context, params: CountParams) -> Result[CountDetails]:
    """Empty a file."""
    before = await ctx.files.read(params.path)
    done = await ctx.files.apply(ChangeSet.of(Change.of(params.path, before=before, after=b"")))
    assert_type(done, RecordedChanges)
    return Result("Cleared.", CountDetails(lines=0))


assert_type(count, Tool[CountParams, CountDetails])
assert_type(clear, Tool[CountParams, CountDetails])


async def use(toolbox: Toolbox) -> None:
    result = await toolbox.call(Call(tool="count", args={"path": "a"}))
    assert_type(result, Result[Any])
    assert_type(result.text, str)
    assert_type(json_schema(CountParams, "strict"), dict[str, Any])


def use_blocking() -> None:
    tools = BlockingToolbox(coding("."))
    assert_type(tools.call("count", {"path": "a"}), Result[Any])
    assert_type(tools.close(), None)
