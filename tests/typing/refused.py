"""Code that type checkers must refuse: each line that ends in a mark, and no other."""

from pydantic import BaseModel

from handtools import Call, Change, Context, Policy, Reply, Result, Rule, coding, tool
from handtools.core.tool import json_schema


class Params(BaseModel):
    path: str


class Details(BaseModel):
    lines: int


@tool  # refused: type-var
async def untyped_details(ctx: Context, params: Params) -> Result[str]:
    return Result("", "")


@tool  # refused: arg-type
def not_async(ctx: Context, params: Params) -> Result[Details]:
    return Result("", Details(lines=0))


Call("read", {})  # refused: call-arg
Reply(allow="yes")  # refused: arg-type
Change("a", b"old", b"new")  # refused: arg-type
Rule("mine", "forbid", "Because.")  # refused: arg-type
Policy(tools="reading")  # refused: arg-type
json_schema(Params, "openai")  # refused: arg-type
coding(".").cancel(1)  # refused: arg-type
coding(".", time_limit=3.0)  # refused: call-arg
