"""A Strands agent that mends a bug: a person looks at each edit first, and the session survives a restart."""

from collections.abc import Callable
from pathlib import Path

from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager

from handtools import Policy, Rule, coding
from handtools.adapters.strands import tools

TASK = "A test fails. Find the bug, mend it, run the tests, commit, and take the commit back for review."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(folder: Path, model: Model, person: Callable[[str, str], bool], sessions: Path) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = Agent(
            model=model,
            tools=tools(toolbox),
            session_manager=FileSessionManager("mend", str(sessions)),
            callback_handler=None,
        )
        done = await agent.invoke_async(TASK)
        while done.stop_reason == "interrupt":
            # Here the process may end: another one with the same session goes on from the answers.
            done = await agent.invoke_async([answer(one, person) for one in done.interrupts])
        return str(done).strip()


def answer(interrupt, person):
    asked = interrupt.reason
    return {
        "interruptResponse": {
            "interruptId": interrupt.id,
            "response": person(asked["title"], asked["preview"]),
        }
    }
