"""Wire: messages of a language server as bytes and back, within bounds."""

import asyncio
import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

HEADER_BYTES = 4 << 10
BODY_BYTES = 64 << 20
"""A larger message is no answer that anybody could use."""

Message = dict[str, Any]


class Garbage(Exception):
    """What came is no message."""


def encode(message: Message) -> bytes:
    """A message as it is sent."""
    whole = {"jsonrpc": "2.0", **message}
    try:
        data = to_json(whole)
    except PydanticSerializationError:
        # A text may quote bytes that are no character: only the slower encoder gets around them.
        data = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


async def receive(stream: asyncio.StreamReader) -> Message | None:
    """The next message; None at the end."""
    try:
        header = await stream.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as end:
        if end.partial.strip():
            raise Garbage(f"it ended inside a header: {end.partial[:80]!r}") from end
        return None
    except asyncio.LimitOverrunError as error:
        raise Garbage("what it prints has no header") from error
    if len(header) > HEADER_BYTES:
        raise Garbage("a header without end")
    size = _size(header)
    try:
        body = json.loads(await stream.readexactly(size))
    except asyncio.IncompleteReadError as end:
        raise Garbage("it ended inside a message") from end
    except ValueError as error:
        raise Garbage(f"no JSON: {error}") from error
    if not isinstance(body, dict):
        raise Garbage("no message")
    return body


def _size(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            size = int(value)
            if size > BODY_BYTES:
                raise Garbage(f"a message of {size} bytes")
            return size
    raise Garbage(f"no length: {header[:80]!r}")
