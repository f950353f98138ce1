"""OpenAI Agents with its `ScriptedModel`; a paused run is stored as the JSON of its `RunState`."""

import json

from agents import Agent, Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from handtools.adapters.openai_agents import questions, run_config, tools
from handtools.adapters.provider_calls import question_to_json
from tests.adapters.drivers import Said

VERSION = "openai-agents"


def scripted_model(*steps):
    return ScriptedModel([spoken(step) for step in steps])


def spoken(step):
    if isinstance(step, str):
        return [assistant_message(step)]
    return [function_call(one.tool, text(one.args), call_id=one.id) for one in step]


def text(args):
    return args if isinstance(args, str) else json.dumps(dict(args))


def agent(box, *steps, conversation=""):
    return Agent(name="coder", model=scripted_model(*steps), tools=tools(box, conversation=conversation))


async def run(box, started, given):
    return await Runner.run(started, given, run_config=run_config(box, tracing_disabled=True))


def said(done, order=()):
    found = {}
    for item in done.new_items:
        if item.type == "tool_call_output_item":
            output = item.raw_item["output"]
            parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
            texts = [one["text"] for one in parts if one["type"] == "input_text"]
            urls = [
                one.get("image_url") or one.get("file_data") for one in parts if one["type"] != "input_text"
            ]
            media = [url.removeprefix("data:").partition(";")[0] for url in urls]
            status = (item.custom_data or {}).get("status")
            found[item.raw_item["call_id"]] = Said("\n".join(texts), status != "ok", media)
    return [found[known] for known in order] or list(found.values())


class Driver:
    limits = {
        "edited arguments": "openai-agents 0.24.0: an interrupted call is approved or rejected as it is",
    }

    async def run(self, box, *calls, conversation=""):
        done = await run(box, agent(box, calls, "done", conversation=conversation), "go")
        assert done.final_output == "done"
        return said(done, [one.id for one in calls])

    async def go_on(self, box, *calls, conversation):
        return await self.run(box, *calls, conversation=conversation)

    async def ask(self, box, call):
        paused = await run(box, agent(box, [call]), "go")
        [question] = await questions(box, paused.interruptions)
        return paused.to_state().to_json(), question_to_json(question)

    async def answer(self, box, paused, *, allow, args=None):
        if args is not None:
            raise NotImplementedError
        later = agent(box, "done")
        state = await RunState.from_json(later, paused)
        [asked] = state.get_interruptions()
        if allow:
            state.approve(asked)
        else:
            state.reject(asked, rejection_message="Not now.")
        done = await run(box, later, state)
        assert done.final_output == "done"
        return said(done)

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)
