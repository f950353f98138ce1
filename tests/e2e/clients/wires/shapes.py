"""What the four wires of model services have in common: offered tools, what a call gave back, and an answer."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True)
class Returned:
    """What a model is given for one call of a tool: all of it, and nothing else."""

    texts: tuple[str, ...] = ()
    images: tuple[bytes, ...] = ()
    error: bool = False
    """Whether the wire itself marks it as a failure; only some can."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    body: bytes
    kind: str = "application/json"


@dataclass(frozen=True)
class Chosen:
    """The call that the model makes now."""

    name: str
    args: Json
    number: int


class Wire(Protocol):
    """One service's way of talking with models."""

    def offered(self, body: Json) -> list[str]:
        """The full names of the tools that the model may call."""
        ...

    def returned(self, body: Json) -> list[Returned]:
        """What the calls so far gave back, in order."""
        ...

    def answer(self, path: str, body: Json, chosen: Chosen | None) -> Reply:
        """The model's turn: a call, or the end."""
        ...


DONE = "done."


def in_json(value: Any) -> Reply:
    return Reply(json.dumps(value).encode())


def in_events(events: Iterable[tuple[str, Any]]) -> Reply:
    """Server-sent events; one without a name is only data."""
    parts = []
    for name, value in events:
        data = value if isinstance(value, str) else json.dumps(value)
        parts.append((f"event: {name}\n" if name else "") + f"data: {data}\n\n")
    return Reply("".join(parts).encode(), "text/event-stream")


def from_data_url(url: str) -> bytes:
    assert url.startswith("data:image/"), url[:80]
    return base64.b64decode(url.partition(",")[2])


def parts_of(
    content: Any, *, text: Mapping[str, str], image: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """Texts and images of a content that is a string or a list of parts; what is neither stays visible as JSON."""
    if isinstance(content, str):
        return (content,), ()
    texts, images = [], []
    for part in content or []:
        kind = part.get("type")
        if kind in text:
            texts.append(part[text[kind]])
        elif kind in image:
            images.append(image[kind](part))
        else:
            texts.append(json.dumps(part))
    return tuple(texts), tuple(images)
