"""Tool `task`: delegates work to another agent, through the embedding program's `delegate` callback."""

from pydantic import BaseModel, Field

from handtools.core.callbacks import Errand
from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool


class TaskParams(BaseModel):
    """What the model sends."""

    title: str = Field(min_length=1, max_length=100, description="What it is about, in a few words.")
    prompt: str = Field(
        min_length=1,
        description="All the other agent must know, and what it is to report: it sees nothing else.",
    )


class TaskDetails(BaseModel):
    """Structured result of the `task` tool; the agent's answer is in the content."""

    title: str
    answer_chars: int


@tool(effects=("delegate",), paths=lambda _: (), needs="delegate")
async def task(ctx: Context, params: TaskParams) -> Result[TaskDetails]:
    """Have another agent do it."""
    assert ctx.callbacks.delegate is not None, "not offered without it"
    errand = Errand(title=params.title, prompt=params.prompt, session=ctx.call.session, parent=ctx.call.id)
    answer = await ctx.callbacks.delegate(errand)
    details = TaskDetails(title=params.title, answer_chars=len(answer))
    return Result(answer.strip() or "(The other agent came to an end without an answer.)", details)
