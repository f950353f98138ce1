"""Gemini's generateContent."""

import base64
import json

from tests.e2e.clients.wires.shapes import DONE, Chosen, Json, Reply, Returned, in_events, in_json


class Gemini:
    def offered(self, body: Json) -> list[str]:
        return [
            function["name"]
            for tool in body.get("tools") or []
            for function in tool.get("functionDeclarations") or []
        ]

    def returned(self, body: Json) -> list[Returned]:
        found = []
        for content in body["contents"]:
            parts = content["parts"]
            beside = tuple(_image(part) for part in parts if "inlineData" in part)
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            found += [_returned(answer, beside) for answer in answers]
        return found

    def answer(self, path: str, body: Json, chosen: Chosen | None) -> Reply:
        if "countTokens" in path:
            return in_json({"totalTokens": 1})
        part: Json = {"text": DONE}
        if chosen:
            part = {
                "functionCall": {"id": f"call_{chosen.number}", "name": chosen.name, "args": chosen.args}
            }
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
        }
        return in_events([("", answer)]) if "stream" in path else in_json(answer)


def _returned(answer: Json, beside: tuple[bytes, ...]) -> Returned:
    response = answer["response"]
    within = tuple(_image(part) for part in answer.get("parts") or [] if "inlineData" in part)
    said = next((response[key] for key in ("output", "error") if isinstance(response.get(key), str)), None)
    return Returned(
        (json.dumps(response) if said is None else said,), within + beside, error="error" in response
    )


def _image(part: Json) -> bytes:
    return base64.b64decode(part["inlineData"]["data"])
