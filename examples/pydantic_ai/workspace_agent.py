"""A Pydantic AI agent whose own tools work in a toolbox: what they did can be taken back."""

from pathlib import Path

from pydantic_ai import Agent, RunContext
from pydantic_ai.models import Model

from handtools import coding
from handtools.adapters.pydantic_ai_workspace import ToolboxWorkspace


async def sort_lines(ctx: RunContext[None], path: str) -> str:
    """Sort the lines of a file, and say what became of it."""
    lines = (await ctx.workspace.read_text(path)).splitlines()
    await ctx.workspace.write_text(path, "".join(f"{line}\n" for line in sorted(lines)))
    done = await ctx.workspace.run(["wc", "-l", path])
    return done.stdout if done.exit_code == 0 else done.stderr


async def work(folder: Path, model: Model, task: str) -> str:
    """Let an agent work in a folder."""
    async with coding(folder, separate_streams=True) as toolbox:
        agent = Agent(model, tools=[sort_lines])
        done = await agent.run(task, workspace=ToolboxWorkspace(toolbox))
        return done.output
