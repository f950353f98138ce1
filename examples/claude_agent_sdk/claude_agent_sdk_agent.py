"""A Claude Agent SDK agent that mends a bug: a person looks at each edit first; the session survives a restart."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from handtools import Policy, Rule, coding
from handtools.adapters.claude_agent_sdk import options, question

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(
    folder: Path, model: Mapping[str, str], person: Callable[[str, str], bool], sessions: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no.

    `model` are variables with which Claude Code finds its model: a key, or an address.
    """
    chosen: dict[str, Any] = {
        "cwd": folder,
        "env": {**model, "CLAUDE_CONFIG_DIR": str(sessions)},
        "setting_sources": [],
    }
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        done = await run(options(toolbox, **chosen), TASK)
        while asked := done.deferred_tool_use:
            # Here the process may end: another one resumes the session with the answer.
            shown = await question(toolbox, asked)
            answers = {asked.id: person(shown["title"], shown["preview"])}
            done = await run(options(toolbox, answers=answers, resume=done.session_id, **chosen))
        return done.result or ""


async def run(chosen: ClaudeAgentOptions, prompt: str = "") -> ResultMessage:
    async with ClaudeSDKClient(chosen) as client:
        if prompt:  # A resumed session goes on by itself; a prompt would be one more turn.
            await client.query(prompt)
        return [one async for one in client.receive_response() if isinstance(one, ResultMessage)][-1]
