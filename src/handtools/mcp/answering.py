"""Answering: plain JSON to an HTTP request, and a stream of events only where something comes before it."""

from collections.abc import Mapping

import anyio
from pydantic import BaseModel

from handtools.mcp.asgi import JSON, Headers, Refused, Send, say, say_json, start_events

EVENTS = "text/event-stream"
PING = b": ping\r\n\r\n"
PING_SECONDS = 15.0
"""How long a connection stays silent: proxies close those that say nothing for long."""


class Answer:
    """What is said to one request."""

    def __init__(self, send: Send, headers: Headers = ()) -> None:
        self._send, self._headers = send, headers
        self._streams = False
        # A ping and a message may come at the same time, but a stream begins once.
        self._turn = anyio.Lock()

    async def tell(self, message: bytes) -> None:
        """Say something before the answer."""
        await self._say(_event(message))

    async def ping(self) -> None:
        """Say that we are still at it."""
        await self._say(PING)

    async def end(self, message: bytes, status: int = 200) -> None:
        """Say the answer itself; within a stream the status is told already."""
        if self._streams:
            await say(self._send, _event(message), more=False)
        else:
            await say_json(self._send, status, message, self._headers)

    async def open(self) -> None:
        """Begin a stream though there is nothing to say yet."""
        async with self._turn:
            if not self._streams:
                await start_events(self._send, self._headers)
                self._streams = True

    async def close(self) -> None:
        """End a stream to which no answer belongs, or none comes."""
        await say(self._send, b"", more=False)

    async def _say(self, event: bytes) -> None:
        await self.open()
        await say(self._send, event, more=True)


def check_post(headers: Mapping[str, str]) -> None:
    """Refuse a message that is no JSON, and who could not read each kind of answer."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(400, "The body must be application/json.")
    kinds = {kind.partition(";")[0].strip().lower() for kind in headers.get("accept", "").split(",")}
    if "*/*" not in kinds and not (kinds & {JSON, "application/*"} and kinds & {EVENTS, "text/*"}):
        raise Refused(406, "Accept both application/json and text/event-stream.")


def in_json(message: BaseModel) -> bytes:
    """A message of the SDK as it travels."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _event(message: bytes) -> bytes:
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"
