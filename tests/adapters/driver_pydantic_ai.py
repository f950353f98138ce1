"""Pydantic AI with its `FunctionModel`."""

import json

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from handtools.adapters.pydantic_ai import Toolset
from tests.adapters.drivers import Said

VERSION = "pydantic-ai-slim"


def scripted_model(*steps):
    left = iter(steps)

    def speak(messages, info):
        step = next(left)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(one.tool, one.args, tool_call_id=one.id) for one in step])

    return FunctionModel(speak)


def agent(box, *steps):
    return Agent(scripted_model(*steps), toolsets=[Toolset(box)], output_type=[str, DeferredToolRequests])


def said(messages):
    found = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                content = part.content if isinstance(part.content, list) else [part.content]
                media = [one.media_type for one in content if isinstance(one, BinaryContent)]
                text = "\n".join(str(one) for one in content if not isinstance(one, BinaryContent))
                found.append(Said(text, part.outcome != "success", media))
            elif isinstance(part, RetryPromptPart):
                found.append(Said(part.model_response(), True))
    return found


class Driver:
    async def run(self, box, *calls, conversation=""):
        done = await agent(box, calls, "done").run("go", conversation_id=conversation or None)
        assert done.output == "done"
        return said(done.new_messages())

    async def go_on(self, box, *calls, conversation):
        spoken = ModelResponse(
            parts=[ToolCallPart(one.tool, one.args, tool_call_id=one.id) for one in calls],
            conversation_id=conversation,
        )
        history = [ModelRequest(parts=[UserPromptPart("go")], conversation_id=conversation), spoken]
        done = await agent(box, "done").run(message_history=history, conversation_id=conversation)
        assert done.output == "done"
        return said(done.new_messages())

    async def ask(self, box, call):
        paused = await agent(box, [call]).run("go")
        question = paused.output.metadata[call.id]
        return (ModelMessagesTypeAdapter.dump_json(paused.all_messages()), call.id), question

    async def answer(self, box, paused, *, allow, args=None):
        history, call_id = paused
        answer = ToolApproved(override_args=args) if allow else ToolDenied("Not now.")
        done = await agent(box, "done").run(
            message_history=ModelMessagesTypeAdapter.validate_json(history),
            deferred_tool_results=DeferredToolResults(approvals={call_id: answer}),
        )
        return said(done.new_messages())

    def dump(self, paused):
        history, call_id = paused
        return json.dumps([history.decode(), call_id]).encode()

    def load(self, data):
        history, call_id = json.loads(data)
        return history.encode(), call_id
