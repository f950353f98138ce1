"""A Claude agent that mends a bug with our tools in place of its own: a person looks at each edit first."""

from collections.abc import Callable, Mapping
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from handtools import Policy, Rule, coding
from handtools.adapters.claude_agent_sdk import options, question

TASK = "A test fails. Find the bug, mend it, run the tests, commit, and take the commit back for review."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(
    folder: Path, environment: Mapping[str, str], person: Callable[[str, str], bool], home: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no.

    `environment` is Claude Code's, such as its key, and `home` is where it keeps its sessions.
    """
    known = {"env": {**environment, "HOME": str(home)}, "cwd": str(folder)}
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        done = await run(TASK, options(toolbox, **known))
        while deferred := done.deferred_tool_use:
            # Here the process may end: another one goes on with the id of the session and the answer.
            asked = await question(toolbox, deferred)
            answers = {deferred.id: person(asked["title"], asked["preview"])}
            done = await run("", options(toolbox, answers=answers, resume=done.session_id, **known))
        return done.result or ""


async def run(prompt: str, chosen: ClaudeAgentOptions) -> ResultMessage:
    async with ClaudeSDKClient(chosen) as client:
        await client.query(prompt)
        said = [one async for one in client.receive_response()]
    return next(one for one in said if isinstance(one, ResultMessage))
