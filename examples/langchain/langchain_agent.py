"""A LangChain agent that mends a bug: a person looks at each edit first, and the thread survives a restart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from handtools import Policy, Rule, coding
from handtools.adapters.langchain import MalformedCalls, tools

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)
THREAD: Any = {"configurable": {"thread_id": "mend"}}


async def mend(
    folder: Path, model: BaseChatModel, person: Callable[[str, str], bool], sessions: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    async with (
        coding(folder, policy=LOOK_FIRST) as toolbox,
        AsyncSqliteSaver.from_conn_string(f"{sessions}.sqlite") as saver,
    ):
        agent = create_agent(model, tools(toolbox), middleware=[MalformedCalls()], checkpointer=saver)
        state = await agent.ainvoke({"messages": TASK}, THREAD)
        while asked := state.get("__interrupt__"):
            # Here the process may end: another one with the same thread goes on from the answers.
            answers = {one.id: person(one.value["title"], one.value["preview"]) for one in asked}
            state = await agent.ainvoke(Command(resume=answers), THREAD)
        return str(state["messages"][-1].text)
