"""A loop of one's own over Anthropic's `messages.create`, with its client over a scripted transport."""

import json

import anthropic
import httpx2

from handtools.adapters.anthropic import definitions, tool_results
from handtools.adapters.provider_calls import question_to_json
from tests.adapters.drivers import Said

VERSION = "anthropic"


def scripted_model(*steps):
    """A client whose model says these things; requests are kept in `client.requests`."""
    left, requests = iter(steps), []

    def respond(request):
        requests.append(json.loads(request.content))
        step = next(left)
        spoken = {
            "role": "assistant",
            "model": "scripted",
            "id": "msg_1",
            "type": "message",
            "stop_sequence": None,
        }
        spoken |= {"content": content(step), "usage": {"input_tokens": 1, "output_tokens": 1}}
        spoken["stop_reason"] = "end_turn" if isinstance(step, str) else "tool_use"
        return httpx2.Response(200, json=spoken)

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://127.0.0.1", http_client=transport)
    client.requests = requests
    return client


def content(step):
    if isinstance(step, str):
        return [{"type": "text", "text": step}]
    return [{"type": "tool_use", "id": one.id, "name": one.tool, "input": one.args} for one in step]


async def spoken(client, box, messages):
    options = {"model": "scripted", "max_tokens": 1000, "tools": definitions(box)}
    message = await client.messages.create(messages=messages, **options)
    messages.append({"role": "assistant", "content": [one.model_dump() for one in message.content]})
    return message


def said(results):
    found = []
    for result in results:
        blocks = result["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        text = "\n".join(one["text"] for one in blocks if one["type"] == "text")
        media = [one["source"]["media_type"] for one in blocks if "source" in one]
        found.append(Said(text, result["is_error"], media))
    return found


async def to_the_end(client, box, messages, answered):
    assert not answered.questions
    messages.append(answered.message)
    last = await spoken(client, box, messages)
    assert last.content[0].text == "done"
    return said(client.requests[-1]["messages"][-1]["content"])


class Driver:
    async def run(self, box, *calls, conversation=""):
        client, messages = scripted_model(calls, "done"), [{"role": "user", "content": "go"}]
        message = await spoken(client, box, messages)
        answered = await tool_results(box, message, conversation=conversation)
        return await to_the_end(client, box, messages, answered)

    async def go_on(self, box, *calls, conversation):
        messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": content(calls)}]
        answered = await tool_results(box, messages[-1], conversation=conversation)
        return await to_the_end(scripted_model("done"), box, messages, answered)

    async def ask(self, box, call):
        messages = [{"role": "user", "content": "go"}]
        answered = await tool_results(box, await spoken(scripted_model([call]), box, messages))
        return messages, question_to_json(answered.questions[call.id])

    async def answer(self, box, paused, *, allow, args=None):
        reply = {"allow": allow, "args": args}
        known = paused[-1]["content"][0]["id"]
        answered = await tool_results(box, paused[-1], replies={known: reply})
        return await to_the_end(scripted_model("done"), box, list(paused), answered)

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)
