"""An Inspect agent that mends a bug, as an evaluation: a person looks at each edit first."""

from collections.abc import Callable
from pathlib import Path

from inspect_ai import Task, eval_async
from inspect_ai.agent import react
from inspect_ai.approval import Approval
from inspect_ai.dataset import Sample
from inspect_ai.model import Model

from handtools import Policy, Rule, coding
from handtools.adapters.inspect_ai import tools

TASK = "A test fails. Find the bug, mend it, run the tests, commit, and take the commit back for review."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(folder: Path, model: Model, person: Callable[[str, str], bool], logs: Path) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""

    async def ask(message, call, view, history):  # noqa: ARG001
        # Or `human_approver()`, which shows the same on the screen.
        yes = person(message, view.call.content)
        return Approval(decision="approve" if yes else "reject")

    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = react(tools=tools(toolbox, approver=ask), submit=False)
        [log] = await eval_async(Task(dataset=[Sample(TASK)], solver=agent), model=model, log_dir=str(logs))
    return log.samples[0].output.completion
