"""Content blocks: what a model reads."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, in a format that models accept."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file handed over whole, a PDF for example."""

    data: bytes
    media_type: str
    name: str


Block = Text | Image | Document


def blocks(content: str | Block | Sequence[Block]) -> tuple[Block, ...]:
    """Normalise what a tool returned."""
    if isinstance(content, str):
        return (Text(content),)
    return (content,) if isinstance(content, Text | Image | Document) else tuple(content)


def block_to_json(block: Block) -> dict[str, Any]:
    """A block as plain JSON values."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    data = base64.b64encode(block.data).decode()
    shown: dict[str, Any] = {"type": "image", "media_type": block.media_type, "data": data}
    return shown if isinstance(block, Image) else shown | {"type": "document", "name": block.name}


def block_from_json(value: dict[str, Any]) -> Block:
    """The inverse of `block_to_json`."""
    match value:
        case {"type": "text", "text": text}:
            return Text(text)
        case {"type": "image", "media_type": kind, "data": data}:
            return Image(base64.b64decode(data), kind)
        case {"type": "document", "media_type": kind, "data": data, "name": name}:
            return Document(base64.b64decode(data), kind, name)
    raise UsageError(f"Not a content block: {value!r}")
