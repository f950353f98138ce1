"""An agent of Microsoft Agent Framework that mends a bug: a person looks at each edit first."""

import json
from collections.abc import Callable
from pathlib import Path

from agent_framework import Agent, AgentSession, BaseChatClient, Message

from handtools import Policy, Rule, coding
from handtools.adapters.agent_framework import ToolboxProvider

TASK = "A test fails. Find the bug, mend it, run the tests, commit, and take the commit back for review."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)


async def mend(
    folder: Path, client: BaseChatClient, person: Callable[[str, str], bool], sessions: Path
) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    session = AgentSession()
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = Agent(client, context_providers=[ToolboxProvider(toolbox)])
        done = await agent.run(TASK, session=session)
        while requests := done.user_input_requests:
            # Here the process may end: another one goes on from the stored session and the answers.
            store(session, sessions)
            answers = [answer(one, person) for one in requests]
            done = await agent.run(Message(role="user", contents=answers), session=session)
        return done.text


def store(session: AgentSession, sessions: Path) -> None:
    """Write down a paused session; `AgentSession.from_dict` makes it again."""
    sessions.mkdir(exist_ok=True)
    (sessions / "mend.json").write_text(json.dumps(session.to_dict()))


def answer(request, person):
    asked = request.additional_properties["handtools"]
    return request.to_function_approval_response(approved=person(asked["title"], asked["preview"]))
