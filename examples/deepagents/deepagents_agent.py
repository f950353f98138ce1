"""A deep agent that mends a bug with its own tools: a person looks at each edit first, also after a restart."""

from collections.abc import Callable
from pathlib import Path

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from handtools import Policy, Rule, coding
from handtools.adapters.deepagents import ToolboxBackend

TASK = "A test fails. Find the bug, mend it, run the tests and commit."
THREAD = {"configurable": {"thread_id": "mend"}}
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(
    folder: Path, model: BaseChatModel, person: Callable[[str, str], bool], sessions: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    async with (
        coding(folder, policy=LOOK_FIRST) as toolbox,
        AsyncSqliteSaver.from_conn_string(str(sessions)) as saver,
    ):
        agent = create_deep_agent(model=model, backend=ToolboxBackend(toolbox), checkpointer=saver)
        state = await agent.ainvoke({"messages": TASK}, THREAD)
        while asked := state.get("__interrupt__"):
            # Here the process may end: another one goes on from the checkpoint.
            answers = {one.id: person(one.value["title"], one.value["preview"]) for one in asked}
            state = await agent.ainvoke(Command(resume=answers), THREAD)
        return str(state["messages"][-1].text)
