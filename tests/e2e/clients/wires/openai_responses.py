"""OpenAI's Responses."""

import json

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


class OpenaiResponses:
    def offered(self, body: Json) -> list[str]:
        return list(_spaces(body))

    def returned(self, body: Json) -> list[Returned]:
        given = body.get("input") or []
        return [_returned(item) for item in given if item.get("type") == "function_call_output"]

    def answer(self, path: str, body: Json, chosen: Chosen | None) -> Reply:
        if chosen:
            space, name = _spaces(body)[chosen.name]
            item = {
                "type": "function_call",
                "id": f"fc_{chosen.number}",
                "call_id": f"call_{chosen.number}",
            }
            item |= {"name": name, "arguments": json.dumps(chosen.args), "status": "completed"}
            item |= {"namespace": space} if space else {}
        else:
            said = {"type": "output_text", "text": DONE, "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
            item |= {"status": "completed"}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        whole = response | {"status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            return in_json(whole)
        started = response | {"status": "in_progress", "output": []}
        events: list[Json] = [
            {"type": "response.created", "response": started},
            {"type": "response.output_item.added", "output_index": 0, "item": _opened(item)},
            *_pieces(item),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return in_events(
            (event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)
        )


def _spaces(body: Json) -> dict[str, tuple[str, str]]:
    """Full names, and the namespace and name that each is called by."""
    found = {}
    for tool in body.get("tools") or []:
        if tool["type"] == "namespace":
            space = tool["name"]
            found |= {f"{space}.{inner['name']}": (space, inner["name"]) for inner in tool["tools"]}
        elif "name" in tool:
            found[tool["name"]] = ("", tool["name"])
    return found


def _opened(item: Json) -> Json:
    empty = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    return item | empty | {"status": "in_progress"}


def _pieces(item: Json) -> list[Json]:
    where = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "function_call":
        args = item["arguments"]
        return [
            {"type": "response.function_call_arguments.delta", "delta": args} | where,
            {"type": "response.function_call_arguments.done", "arguments": args} | where,
        ]
    part = item["content"][0]
    where |= {"content_index": 0}
    return [
        {"type": "response.content_part.added", "part": part | {"text": ""}} | where,
        {"type": "response.output_text.delta", "delta": DONE} | where,
        {"type": "response.output_text.done", "text": DONE} | where,
        {"type": "response.content_part.done", "part": part} | where,
    ]


def _returned(item: Json) -> Returned:
    texts, images = parts_of(
        item["output"],
        text={"input_text": "text", "output_text": "text"},
        image={"input_image": lambda part: from_data_url(part["image_url"])},
    )
    return Returned(texts, images)
