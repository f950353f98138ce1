"""Think: room for a thought; nothing happens."""

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool


class ThinkParams(BaseModel):
    """What the model sends."""

    thought: str = Field(description="The thought.")


class ThinkDetails(BaseModel):
    """What programs get."""

    thought: str


@tool(effects=())
async def think(ctx: Context, params: ThinkParams) -> Result[ThinkDetails]:  # noqa: ARG001
    """Note a thought."""
    return Result("Noted.", ThinkDetails(thought=params.thought))
