"""Anthropic's Messages."""

import base64
import json

from tests.e2e.clients.wires.shapes import DONE, Chosen, Json, Reply, Returned, in_events, in_json, parts_of


class AnthropicMessages:
    def offered(self, body: Json) -> list[str]:
        return [tool["name"] for tool in body.get("tools") or []]

    def returned(self, body: Json) -> list[Returned]:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [_returned(block) for block in blocks if block["type"] == "tool_result"]

    def answer(self, path: str, body: Json, chosen: Chosen | None) -> Reply:
        if path.endswith("/count_tokens"):
            return in_json({"input_tokens": 1})
        if chosen:
            made = {"type": "tool_use", "id": f"toolu_{chosen.number:04}", "name": chosen.name}
            block, delta = made | {"input": {}}, {"type": "input_json_delta"}
            delta["partial_json"] = json.dumps(chosen.args)
            whole, stop = made | {"input": chosen.args}, "tool_use"
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}
            whole, stop = {"type": "text", "text": DONE}, "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "usage": usage,
        }
        message |= {"content": [], "stop_reason": None, "stop_sequence": None}
        if not body.get("stream"):
            return in_json(message | {"content": [whole], "stop_reason": stop})
        ended = {"stop_reason": stop, "stop_sequence": None}
        events: list[Json] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return in_events((event["type"], event) for event in events)


def _returned(block: Json) -> Returned:
    texts, images = parts_of(
        block.get("content"),
        text={"text": "text"},
        image={"image": lambda part: base64.b64decode(part["source"]["data"])},
    )
    return Returned(texts, images, error=bool(block.get("is_error")))
