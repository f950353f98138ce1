"""An OpenAI agent that mends a bug: a person looks at each edit first, and the paused run survives a restart."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
from agents import Agent, Runner, RunState
from agents.models.interface import Model

from handtools import Policy, Rule, coding
from handtools.adapters.openai_agents import questions, run_config, tools

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(folder: Path, model: Model, person: Callable[[str, str], bool], sessions: Path) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    paused = anyio.Path(sessions) / "paused.json"
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = Agent(name="mender", model=model, tools=tools(toolbox, conversation="mend"))
        config = run_config(toolbox, tracing_disabled=True)
        done = await Runner.run(agent, TASK, run_config=config)
        while done.interruptions:
            await paused.parent.mkdir(exist_ok=True)
            await paused.write_text(json.dumps(done.to_state().to_json()))
            # Here the process may end: another one goes on from the file.
            state = await RunState.from_json(agent, json.loads(await paused.read_text()))
            asked = state.get_interruptions()
            for call, question in zip(asked, await questions(toolbox, asked), strict=True):
                if person(question.title, question.preview):
                    state.approve(call)
                else:
                    state.reject(call, rejection_message="The person said no.")
            done = await Runner.run(agent, state, run_config=config)
        return str(done.final_output)
