"""A loop over Anthropic's Messages API that mends a bug: a person looks at each edit first."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
from anthropic import AsyncAnthropic

from handtools import Policy, Rule, coding
from handtools.adapters.anthropic import definitions, tool_results

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(
    folder: Path, model: AsyncAnthropic, person: Callable[[str, str], bool], sessions: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    stored = anyio.Path(sessions) / "messages.json"
    await stored.parent.mkdir(exist_ok=True)
    messages = [{"role": "user", "content": TASK}]
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        while True:
            said = await model.messages.create(
                model="claude-sonnet-5", max_tokens=8000, messages=messages, tools=definitions(toolbox)
            )
            messages.append(
                {"role": "assistant", "content": [block.model_dump() for block in said.content]}
            )
            results = await tool_results(toolbox, said, conversation="mend")
            while results.questions:
                await stored.write_text(json.dumps(messages))
                # Here the process may end: another one goes on from the file, and what has run does not run again.
                messages = json.loads(await stored.read_text())
                replies = {
                    known: person(one.title, one.preview) for known, one in results.questions.items()
                }
                results = await tool_results(toolbox, messages[-1], conversation="mend", replies=replies)
            if not results.content:
                return "".join(block.text for block in said.content if block.type == "text")
            messages.append(results.message)
