"""A Pydantic AI agent that mends a bug: a person looks at each edit, and the paused run survives a restart."""

from collections.abc import Callable
from pathlib import Path

import anyio
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model

from handtools import Policy, Rule, coding
from handtools.adapters.pydantic_ai import Toolset

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(folder: Path, model: Model, person: Callable[[str, str], bool], sessions: Path) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    paused = anyio.Path(sessions) / "paused.json"
    await paused.parent.mkdir(exist_ok=True)
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = Agent(model, toolsets=[Toolset(toolbox)], output_type=[str, DeferredToolRequests])
        done = await agent.run(TASK)
        while isinstance(done.output, DeferredToolRequests):
            await paused.write_bytes(done.all_messages_json())
            # Here the process may end: another one goes on from the file.
            answers = {
                call: person(question["title"], question["preview"]) or ToolDenied("The person said no.")
                for call, question in done.output.metadata.items()
            }
            done = await agent.run(
                message_history=ModelMessagesTypeAdapter.validate_json(await paused.read_bytes()),
                deferred_tool_results=DeferredToolResults(approvals=answers),
            )
        return done.output
