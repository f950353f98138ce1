"""An OpenAI agent with the tools that its models know from OpenAI's API: `apply_patch` and `shell`."""

from collections.abc import Callable
from pathlib import Path

from agents import Agent, Runner
from agents.models.interface import Model

from handtools import Policy, Rule, coding
from handtools.adapters.openai_agents import questions, run_config
from handtools.adapters.openai_agents_builtin_tools import apply_patch_and_shell_tools

LOOK_FIRST = Policy(rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"})),))


async def work(folder: Path, model: Model, task: str, person: Callable[[str, str], bool]) -> str:
    """Let an agent work in a folder; `person` is shown what it is about to change, and says yes or no."""
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = Agent(name="coder", model=model, tools=apply_patch_and_shell_tools(toolbox))
        config = run_config(toolbox, tracing_disabled=True)
        done = await Runner.run(agent, task, run_config=config)
        while done.interruptions:
            state = done.to_state()
            asked = state.get_interruptions()
            for call, question in zip(asked, await questions(toolbox, asked), strict=True):
                if person(question.title, question.preview):
                    state.approve(call)
                else:
                    state.reject(call)
            done = await Runner.run(agent, state, run_config=config)
        return str(done.final_output)
