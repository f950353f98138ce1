"""Tool `task`: delegates work to another agent, through the embedding program's `delegate` callback."""

from pydantic import BaseModel, Field

from handtools.core.callbacks import Errand
from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool


class TaskParams(BaseModel):
    """Arguments of the `task` tool."""

    title: str = Field(min_length=1, max_length=100, description="A few words on the task.")
    prompt: str = Field(
        min_length=1,
        description="Everything the other agent must know and what to report: it sees nothing else.",
    )


class TaskDetails(BaseModel):
    """Structured result of the `task` tool; the agent's report is in the content."""

    title: str
    answer_chars: int


@tool(effects=("delegate",), paths=lambda _: (), needs="delegate")
async def task(ctx: Context, params: TaskParams) -> Result[TaskDetails]:
    """Have another agent do the task."""
    assert ctx.callbacks.delegate is not None, "not offered without the callback"
    errand = Errand(title=params.title, prompt=params.prompt, session=ctx.call.session, parent=ctx.call.id)
    answer = await ctx.callbacks.delegate(errand)
    details = TaskDetails(title=params.title, answer_chars=len(answer))
    return Result(answer.strip() or "(The other agent finished without a report.)", details)
