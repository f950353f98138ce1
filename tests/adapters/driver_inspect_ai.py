"""Inspect's `react` agent in an evaluation, with its mock model.

Its approvers wait in the process, so a paused run is a running task.
"""

import asyncio
import json
import tempfile

from inspect_ai import Task, eval_async
from inspect_ai.agent import react
from inspect_ai.approval import Approval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelOutput, ModelUsage, get_model
from inspect_ai.model._call_tools import parse_tool_call
from inspect_ai.tool import ToolCall

from handtools.adapters.inspect_ai import tools
from tests.adapters.drivers import Said

VERSION = "inspect-ai"


def scripted_model(*steps, read=None):
    """Make a model of these steps; `read` is filled with the messages that it was given last."""
    left = iter(steps)

    def speak(messages, *_):
        if read is not None:
            read[:] = messages
        return spoken(next(left))

    return get_model("mockllm/model", custom_outputs=speak, memoize=False)


def spoken(step):
    output = ModelOutput.from_content("mockllm", step if isinstance(step, str) else "")
    # Else the mock counts tokens, for which it loads a table from the network.
    output.usage = ModelUsage()
    if isinstance(step, str):
        return output
    # As providers do it: arguments as text are parsed by Inspect.
    called = [
        parse_tool_call(
            one.id, one.tool, one.args if isinstance(one.args, str) else json.dumps(dict(one.args))
        )
        for one in step
    ]
    output.choices[0].message = ChatMessageAssistant(content="", tool_calls=called)
    return output


async def run_to_the_end(box, calls, **options):
    read = []
    made = react(tools=tools(box, **options), prompt=None, submit=False)
    [log] = await eval_async(
        Task(dataset=[Sample("go")], solver=made),
        model=scripted_model(calls, "done", read=read),
        log_dir=tempfile.mkdtemp(),
    )
    assert log.status == "success", log.error
    [sample] = log.samples
    assert sample.output.completion == "done"
    return all_said(read)


def all_said(messages):
    found = []
    for one in messages:
        if isinstance(one, ChatMessageTool):
            found.append(
                Said(one.error.message if one.error else one.text, one.error is not None, media(one))
            )
        elif found:
            # A provider without media in the results of tools gets them in a message after those.
            found[-1].media += media(one)
    return found


def media(message):
    blocks = message.content if isinstance(message.content, list) else []
    images = [one.image[5 : one.image.index(";")] for one in blocks if one.type == "image"]
    return images + [one.mime_type for one in blocks if one.type == "document"]


class Driver:
    limits = {
        "bad arguments": "inspect-ai 0.3.285: it validates arguments against the schema itself, and the model "
        "reads its words.",
        "malformed JSON": "inspect-ai 0.3.285: it parses arguments itself, and the model reads its words.",
        "ask, yes in a new process": "inspect-ai 0.3.285: an approver waits in the process; no pause is stored.",
    }

    async def run(self, box, *calls, conversation=""):
        return await run_to_the_end(box, calls, conversation=conversation)

    async def go_on(self, box, *calls, conversation):
        return await run_to_the_end(box, calls, conversation=conversation)

    async def ask(self, box, call):
        asked, answered = asyncio.Future(), asyncio.Future()

        async def approver(message, call, view, history):
            asked.set_result({"title": message, "preview": view.call.content})
            return await answered

        running = asyncio.create_task(run_to_the_end(box, [call], approver=approver))
        await asyncio.wait([running, asked], return_when=asyncio.FIRST_COMPLETED)
        return (running, answered, call), asked.result()

    async def answer(self, box, paused, *, allow, args=None):
        running, answered, call = paused
        if not allow:
            answer = Approval(decision="reject", explanation="Not now.")
        elif args is None:
            answer = Approval(decision="approve")
        else:
            answer = Approval(decision="modify", modified=ToolCall(call.id, call.tool, args))
        answered.set_result(answer)
        return await running

    def dump(self, paused):
        raise NotImplementedError

    def load(self, data):
        raise NotImplementedError
