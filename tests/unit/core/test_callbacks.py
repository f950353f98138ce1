"""Callbacks: a tool that needs one is offered when it is there."""

from pydantic import BaseModel

from handtools.core.callbacks import Callbacks, Errand
from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox


class Ask(BaseModel):
    question: str


class Answer(BaseModel):
    words: int


@tool(effects=("read",), needs="delegate")
async def ask(ctx: Context, params: Ask) -> Result[Answer]:
    """Ask another agent."""
    assert ctx.callbacks.delegate is not None
    errand = Errand(title="", prompt=params.question, session=ctx.call.session, parent=ctx.call.id)
    said = await ctx.callbacks.delegate(errand)
    return Result(said, Answer(words=len(said.split())))


async def echo(errand: Errand) -> str:
    return f"you asked: {errand.prompt}"


async def test_without_its_callback_a_tool_is_not_offered() -> None:
    toolbox = memory_toolbox(tools=[ask])
    assert toolbox.definitions() == []
    refused = await toolbox.call("ask", {"question": "who?"})
    assert refused.fault is not None
    assert refused.fault.code == "unknown_tool"


async def test_with_its_callback_it_is_offered_and_uses_it() -> None:
    toolbox = memory_toolbox(tools=[ask], callbacks=Callbacks(delegate=echo))
    assert [offered.name for offered in toolbox.definitions()] == ["ask"]
    assert (await toolbox.call("ask", {"question": "who?"})).text == "you asked: who?"


async def test_another_agent_on_the_same_workspace_has_the_same_callbacks() -> None:
    toolbox = memory_toolbox(tools=[ask], callbacks=Callbacks(delegate=echo)).under(Policy())
    assert (await toolbox.call("ask", {"question": "who?"})).ok
