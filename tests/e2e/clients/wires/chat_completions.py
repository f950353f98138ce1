"""OpenAI's Chat Completions, which most other services speak, too."""

import json
from itertools import takewhile

from tests.e2e.clients.wires.shapes import (
    DONE,
    Chosen,
    Json,
    Reply,
    Returned,
    from_data_url,
    in_events,
    in_json,
    parts_of,
)


class ChatCompletions:
    def offered(self, body: Json) -> list[str]:
        return [tool[tool["type"]]["name"] for tool in body.get("tools") or []]

    def returned(self, body: Json) -> list[Returned]:
        messages = body["messages"]
        return [
            _returned(message, messages[n + 1 :])
            for n, message in enumerate(messages)
            if message["role"] == "tool"
        ]

    def answer(self, path: str, body: Json, chosen: Chosen | None) -> Reply:
        if chosen:
            function = {"name": chosen.name, "arguments": json.dumps(chosen.args)}
            call = {"id": f"call_{chosen.number}", "type": "function", "function": function}
            message, end = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
            delta = message | {"tool_calls": [call | {"index": 0}]}
        else:
            message, end = {"role": "assistant", "content": DONE}, "stop"
            delta = message
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": end}
            return in_json(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
        head |= {"object": "chat.completion.chunk"}
        chunks: list[Json] = [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            head | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            head | {"choices": [], "usage": usage},
        ]
        return in_events([*(("", chunk) for chunk in chunks), ("", "[DONE]")])


def _returned(message: Json, later: list[Json]) -> Returned:
    """A tool's message; images can't be in it, so clients let the user say them right after."""
    texts, images = _parts(message["content"])
    for said in takewhile(lambda each: each["role"] == "user", later):
        images += _parts(said["content"])[1]
    return Returned(texts, images)


def _parts(content: object) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    return parts_of(
        content,
        text={"text": "text"},
        image={"image_url": lambda part: from_data_url(part["image_url"]["url"])},
    )
