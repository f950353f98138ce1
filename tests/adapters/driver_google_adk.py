"""Google's ADK with a scripted `BaseLlm`; sessions are in an SQLite file."""

import json
import secrets
import tempfile
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from handtools.adapters.google_adk import Toolset
from tests.adapters.drivers import Said

VERSION = "google-adk"
WHO = {"app_name": "tests", "user_id": "somebody"}
CONFIRM = "adk_request_confirmation"


class ScriptedLlm(BaseLlm):
    steps: list

    async def generate_content_async(self, llm_request, stream=False):
        step = self.steps.pop(0)
        parts = [types.Part(text=step)] if isinstance(step, str) else [called(one) for one in step]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def called(one):
    return types.Part(function_call=types.FunctionCall(name=one.tool, args=one.args, id=one.id))


def scripted_model(*steps):
    return ScriptedLlm(model="scripted", steps=list(steps))


def new_database():
    return str(Path(tempfile.mkdtemp()) / "sessions.sqlite")


async def events(box, database, session, given, *steps):
    """Run with a message of the user's; without one, the last invocation goes on."""
    agent = LlmAgent(name="coder", model=scripted_model(*steps), tools=[Toolset(box)])
    sessions = SqliteSessionService(database)
    stored = await sessions.get_session(session_id=session, **WHO)
    stored = stored or await sessions.create_session(session_id=session, **WHO)
    resumable = ResumabilityConfig(is_resumable=True)
    app = App(name="tests", root_agent=agent, resumability_config=resumable)
    runner = Runner(app=app, session_service=sessions)
    if given is None:
        what = {"invocation_id": stored.events[-1].invocation_id}
    else:
        what = {"new_message": types.Content(role="user", parts=[given])}
    found = [event async for event in runner.run_async(user_id="somebody", session_id=session, **what)]
    await runner.close()
    return found


def said(found, order=()):
    answers = {}
    for event in found:
        for one in event.get_function_responses():
            media = [part.inline_data.mime_type for part in one.parts or ()]
            error = "error" in one.response
            answers[one.id] = Said(str(one.response.get("error" if error else "result", "")), error, media)
    texts = [part.text for event in found if event.content for part in event.content.parts if part.text]
    assert texts == ["done"]
    return [answers[known] for known in order] or list(answers.values())


class Driver:
    limits = {
        "malformed JSON": "google-adk 2.13.0: the arguments of a call are an object before any tool is asked",
    }

    def __init__(self):
        self.databases = {}

    async def run(self, box, *calls, conversation=""):
        conversation = conversation or secrets.token_hex(4)
        database = self.databases[conversation] = new_database()
        found = await events(box, database, conversation, types.Part(text="go"), calls, "done")
        return said(found, [one.id for one in calls])

    async def go_on(self, box, *calls, conversation):
        return said(await events(box, self.databases[conversation], conversation, None, "done"))

    async def ask(self, box, call):
        database, session = new_database(), secrets.token_hex(4)
        found = await events(box, database, session, types.Part(text="go"), [call])
        [asked] = [one for event in found for one in event.get_function_calls() if one.name == CONFIRM]
        return (database, session, asked.id), asked.args["toolConfirmation"]["payload"]

    async def answer(self, box, paused, *, allow, args=None):
        database, session, known = paused
        reply = {"confirmed": allow, "payload": {"args": args, "message": "Not now."}}
        given = types.Part(function_response=types.FunctionResponse(id=known, name=CONFIRM, response=reply))
        return said(await events(box, database, session, given, "done"))

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)
