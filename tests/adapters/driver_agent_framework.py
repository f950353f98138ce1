"""Microsoft Agent Framework with a scripted chat client (it ships none) and sessions as JSON."""

import json

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from handtools.adapters.agent_framework import QUESTION_KEY, STATUS_KEY, ToolboxProvider
from tests.adapters.drivers import Said

VERSION = "agent-framework-core"


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, *steps):
        super().__init__()
        self.left = iter(steps)
        self.read = []

    async def _inner_get_response(self, *, messages, stream, options, **_):
        self.read = list(messages)
        step = next(self.left)
        contents = [step] if isinstance(step, str) else [called(one) for one in step]
        return ChatResponse(messages=[Message(role="assistant", contents=contents)])


def called(one):
    return Content.from_function_call(
        one.id, one.tool, arguments=one.args if isinstance(one.args, str) else json.dumps(one.args)
    )


def scripted_model(*steps):
    return ScriptedClient(*steps)


def agent(box, *steps):
    return Agent(ScriptedClient(*steps), context_providers=[ToolboxProvider(box)])


async def run_to_the_end(made, prompt, session):
    done = await made.run(prompt, session=session)
    assert done.text == "done", done.messages
    return [
        said(content)
        for message in made.client.read
        for content in message.contents
        if content.type == "function_result"
    ]


def said(result):
    items = result.items or []
    media = [one.media_type for one in items if one.type in {"data", "uri"}]
    failed = bool(result.exception) or any(STATUS_KEY in one.additional_properties for one in items)
    return Said(str(result.result), failed, media)


class Driver:
    def __init__(self):
        self.sessions = {}

    async def run(self, box, *calls, conversation=""):
        session = AgentSession(session_id=conversation or None)
        return await run_to_the_end(agent(box, calls, "done"), "go", session)

    async def go_on(self, box, *calls, conversation):
        return await self.run(box, *calls, conversation=conversation)

    async def ask(self, box, call):
        session = AgentSession()
        paused = await agent(box, [call]).run("go", session=session)
        [asked] = paused.user_input_requests
        return [session.to_dict(), asked.to_dict()], asked.additional_properties[QUESTION_KEY]

    async def answer(self, box, paused, *, allow, args=None):
        session, asked = AgentSession.from_dict(paused[0]), Content.from_dict(paused[1])
        response = asked.to_function_approval_response(approved=allow)
        if args is not None:
            response.additional_properties[QUESTION_KEY]["args"] = args
        return await run_to_the_end(agent(box, "done"), Message(role="user", contents=[response]), session)

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)
