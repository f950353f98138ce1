"""Strands with a scripted model (it ships none) and sessions in files."""

import json
import secrets
import tempfile

from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager

from handtools.adapters.strands import tools
from tests.adapters.drivers import Said

VERSION = "strands-agents"


class ScriptedModel(Model):
    def __init__(self, *steps):
        self.left = iter(steps)

    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        step = next(self.left)
        yield {"messageStart": {"role": "assistant"}}
        for part in [step] if isinstance(step, str) else step:
            for event in spoken(part):
                yield event
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(step, str) else "tool_use"}}


def spoken(part):
    if isinstance(part, str):
        start, delta = {}, {"text": part}
    else:
        start = {"toolUse": {"name": part.tool, "toolUseId": part.id}}
        delta = {"toolUse": {"input": part.args if isinstance(part.args, str) else json.dumps(part.args)}}
    return [
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
    ]


def scripted_model(*steps):
    return ScriptedModel(*steps)


def agent(box, session, *steps, agent_id=None):
    return Agent(
        model=ScriptedModel(*steps),
        tools=tools(box),
        session_manager=session,
        agent_id=agent_id,
        callback_handler=None,
    )


def session(conversation="", folder=None):
    return FileSessionManager(conversation or secrets.token_hex(4), folder or tempfile.mkdtemp())


def said(messages):
    found = []
    for message in messages:
        for block in message["content"]:
            if "toolResult" in block:
                found.append(result_said(block["toolResult"]))
    return found


def result_said(result):
    text = "\n".join(one["text"] for one in result["content"] if "text" in one)
    media = [f"image/{one['image']['format']}" for one in result["content"] if "image" in one]
    media += [f"application/{one['document']['format']}" for one in result["content"] if "document" in one]
    return Said(text, result["status"] == "error", media)


class Driver:
    limits = {
        "malformed JSON": "strands-agents 1.62.0: arguments that are no JSON reach a tool as an empty object, "
        "so the model reads which ones are missing.",
    }

    def __init__(self):
        self.folders = {}

    async def run(self, box, *calls, conversation=""):
        stored = session(conversation)
        self.folders[conversation] = stored.storage_dir
        return await run_to_the_end(agent(box, stored, calls, "done"))

    async def go_on(self, box, *calls, conversation):
        stored = session(conversation, self.folders[conversation])
        # The first answers are the SDK's own: it closes the calls that the history left open.
        return (await run_to_the_end(agent(box, stored, calls, "done")))[-len(calls) :]

    async def ask(self, box, call):
        stored = session()
        paused = await agent(box, stored, [call]).invoke_async("go")
        assert paused.stop_reason == "interrupt"
        [asked] = paused.interrupts
        return [stored.session_id, stored.storage_dir, asked.id], asked.reason

    async def answer(self, box, paused, *, allow, args=None):
        conversation, folder, asked = paused
        made = agent(box, session(conversation, folder), "done")
        response = {"allow": allow, "args": args}
        return await run_to_the_end(
            made, [{"interruptResponse": {"interruptId": asked, "response": response}}]
        )

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)


async def run_to_the_end(made, prompt="go"):
    before = len(made.messages)
    done = await made.invoke_async(prompt)
    assert str(done).strip() == "done"
    return said(made.messages[before:])
