"""Tool `think`: lets the model write down a thought; has no effect."""

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool


class ThinkParams(BaseModel):
    """Arguments of the `think` tool."""

    thought: str = Field(title="The thought.")


class ThinkDetails(BaseModel):
    """Structured result of the `think` tool; empty."""

    thought: str


@tool(effects=())
async def think(ctx: Context, params: ThinkParams) -> Result[ThinkDetails]:  # noqa: ARG001
    """Accept a thought and do nothing."""
    return Result("Noted.", ThinkDetails(thought=params.thought))
