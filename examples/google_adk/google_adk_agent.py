"""An agent of Google's ADK that mends a bug: a person looks at each edit first, and the session is stored."""

from collections.abc import Callable
from pathlib import Path

import anyio
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from handtools import Policy, Rule, coding
from handtools.adapters.google_adk import Toolset

TASK = "A test fails. Find the bug, mend it, run the tests and commit; then take the commit back."
LOOK_FIRST = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.py",)),)
)
CONFIRM = "adk_request_confirmation"


async def mend(folder: Path, model: BaseLlm, person: Callable[[str, str], bool], sessions: Path) -> str:
    """Let an agent work in a folder; `person` is shown a title and a preview, and says yes or no."""
    await anyio.Path(sessions).mkdir(exist_ok=True)
    stored = SqliteSessionService(str(sessions / "sessions.sqlite"))
    await stored.create_session(app_name="mend", user_id="me", session_id="mend")
    async with coding(folder, policy=LOOK_FIRST) as toolbox:
        agent = LlmAgent(name="mender", model=model, tools=[Toolset(toolbox)])
        runner = Runner(app_name="mend", agent=agent, session_service=stored)
        parts, said = [types.Part(text=TASK)], ""
        while parts:
            asked = []
            message = types.Content(role="user", parts=parts)
            async for event in runner.run_async(user_id="me", session_id="mend", new_message=message):
                asked += [call for call in event.get_function_calls() if call.name == CONFIRM]
                if event.is_final_response() and event.content and event.content.parts:
                    said = event.content.parts[0].text or said
            # Here the process may end: another one with the same session goes on from the answers.
            parts = [answer(call, person) for call in asked]
        return said


def answer(call: types.FunctionCall, person: Callable[[str, str], bool]) -> types.Part:
    question = call.args["toolConfirmation"]["payload"]
    response = {"confirmed": person(question["title"], question["preview"])}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=CONFIRM, response=response))
