"""Sessions: HTTP of the older protocols as messages for the SDK's loop.

The SDK's own transport opens a stream of events for every answer, five tasks behind it: half of what a request
costs there. Here an answer is plain JSON, and becomes a stream only when something is to be told before it.
"""

import contextvars
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from handtools.mcp import answering
from handtools.mcp.answering import EVENTS, Answer, check_post, in_json
from handtools.mcp.asgi import Receive, Refused, Request, Scope, Send, say_json, until_gone
from handtools.mcp.registry import Registry

SESSION = "mcp-session-id"
SESSIONS = 10_000
"""How many one token may hold open."""
IDLE_SECONDS = 1800.0
SWEEP_SECONDS = 60.0
WAITING = 16
OWN = ""
"""The line of what belongs to no request."""
CANCELLED = -32800

Line = MemoryObjectSendStream[Any]
"""Where the messages for one open HTTP request go."""


class Incoming:
    """What a client posted, in the context of the request that brought it."""

    def __init__(self) -> None:
        self._give, self._take = anyio.create_memory_object_stream[tuple[contextvars.Context, Any]](WAITING)
        self.last_context: contextvars.Context | None = None

    async def put(self, item: Any) -> None:
        """Hand a message to the loop."""
        await self._give.send((contextvars.copy_context(), item))

    def end(self) -> None:
        """Nothing more comes."""
        self._give.close()

    async def receive(self) -> Any:
        """The next message."""
        self.last_context, item = await self._take.receive()
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Nothing more is read."""
        self._take.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@dataclass(slots=True)
class Session:
    """One client, from `initialize` on; also the stream that the loop writes to."""

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    incoming: Incoming = field(default_factory=Incoming)
    lines: dict[str, Line] = field(default_factory=dict)
    """By the id of the request that waits."""
    used: float = field(default_factory=time.monotonic)

    def line(self, name: str) -> MemoryObjectReceiveStream[Any]:
        """Open a line; a request that comes again under its id takes the line over."""
        if (older := self.lines.get(name)) is not None:
            older.close()
        self.lines[name], hearing = anyio.create_memory_object_stream[Any](WAITING)
        return hearing

    def hang_up(self, name: str, hearing: MemoryObjectReceiveStream[Any]) -> None:
        """Close a line, unless another request has taken it over."""
        hearing.close()
        line = self.lines.get(name)
        if line is not None and not line.statistics().open_receive_streams:
            del self.lines[name]
            line.close()
        self.used = time.monotonic()

    async def send(self, item: Any) -> None:
        """Pass a message on to the request that it belongs to; when that is gone, nobody hears it."""
        line = self.lines.get(_addressee(item))
        if line is not None:
            try:
                await line.send(item.message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async def give_up(self, request_id: str | int) -> None:
        """End a request that was cancelled: these protocols want an answer even then."""
        from mcp.shared.message import SessionMessage
        from mcp_types import ErrorData, JSONRPCError

        error = ErrorData(code=CANCELLED, message="Request cancelled")
        await self.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    def end(self) -> None:
        """Close every line; the loop ends when it has read what was posted."""
        self.incoming.end()
        for line in self.lines.values():
            line.close()
        self.lines.clear()

    async def aclose(self) -> None:
        """The loop writes no more."""
        self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Sessions:
    """An ASGI application: the sessions of one token."""

    def __init__(self, registry: Registry, *, most: int = SESSIONS, idle: float = IDLE_SECONDS) -> None:
        self._registry = registry
        self._most, self._idle = most, idle
        self._open: dict[str, Session] = {}
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Keep sessions until the block ends."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._sweep_often)
            try:
                yield self
            finally:
                for session in self._open.values():
                    session.end()
                group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose body is in one piece."""
        request = Request.of(scope)
        match scope["method"]:
            case "POST":
                check_post(request.headers)
                await self._post((await receive()).get("body", b""), request, send)
            case "GET":
                if EVENTS not in request.headers.get("accept", ""):
                    raise Refused(406, "A stream of events is all there is to GET.")
                await self._listen(self._session(request.headers), receive, send)
            case "DELETE":
                session = self._session(request.headers)
                del self._open[session.id]
                session.end()
                await say_json(send, 200, b"")

    async def _post(self, body: bytes, request: Request, send: Send) -> None:
        from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValueError:
            await say_json(send, 400, _problem(-32700, "This is no JSON-RPC message."))
            return
        opening = isinstance(message, JSONRPCRequest) and message.method == "initialize"
        fresh = opening and SESSION not in request.headers
        session = self._opened() if fresh else self._session(request.headers)
        if isinstance(message, JSONRPCRequest):
            await self._ask(session, message, request, send)
        else:
            await say_json(send, 202, b"")
            await self._tell(session, message, request)

    async def _ask(self, session: Session, message: Any, request: Request, send: Send) -> None:
        hearing = session.line(str(message.id))
        try:
            await self._tell(session, message, request)
            await _answer(hearing, Answer(send, _headers(session)))
        finally:
            session.hang_up(str(message.id), hearing)

    async def _tell(self, session: Session, message: Any, request: Request) -> None:
        from mcp.shared.message import ServerMessageMetadata, SessionMessage

        unanswered = partial(session.give_up, message.id) if hasattr(message, "id") else None
        metadata = ServerMessageMetadata(request_context=request, on_request_unanswered=unanswered)
        try:
            await session.incoming.put(SessionMessage(message, metadata))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Refused(404, "This session has ended.") from None

    async def _listen(self, session: Session, receive: Receive, send: Send) -> None:
        """Stream what belongs to no request, until the client leaves."""
        if OWN in session.lines:
            raise Refused(409, "This session is listened to already.")
        hearing, answer = session.line(OWN), Answer(send, _headers(session))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group)
                await answer.open()
                while (message := await _next(hearing)) is not None:
                    await _tell(message, answer)
                await answer.close()
                group.cancel_scope.cancel()
        finally:
            session.hang_up(OWN, hearing)

    def _session(self, headers: Mapping[str, str]) -> Session:
        name = headers.get(SESSION)
        if name is None:
            raise Refused(400, "Mcp-Session-Id is missing.")
        session = self._open.get(name)
        if session is None:
            raise Refused(404, "No such session; initialize a new one.")
        session.used = time.monotonic()
        return session

    def _opened(self) -> Session:
        if len(self._open) >= self._most or self._group is None:
            raise Refused(503, "Too many sessions are open.", **{"retry-after": "60"})
        session = Session()
        self._open[session.id] = session
        self._group.start_soon(self._serve, session)
        return session

    async def _serve(self, session: Session) -> None:
        from mcp.server.runner import serve_loop

        try:
            registry, heard, said = (
                cast("Any", each) for each in (self._registry, session.incoming, session)
            )
            await serve_loop(registry, heard, said, lifespan_state={}, session_id=session.id)
        finally:
            self._open.pop(session.id, None)
            session.end()

    def sweep(self, now: float) -> None:
        """End the sessions that nobody has used for long."""
        since = now - self._idle
        for session in [one for one in self._open.values() if one.used < since and not one.lines]:
            del self._open[session.id]
            session.end()

    async def _sweep_often(self) -> None:
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            self.sweep(time.monotonic())


def _addressee(item: Any) -> str:
    message, metadata = item.message, item.metadata
    if not hasattr(message, "method"):
        return OWN if message.id is None else str(message.id)
    related = getattr(metadata, "related_request_id", None)
    return OWN if related is None else str(related)


async def _answer(hearing: MemoryObjectReceiveStream[Any], answer: Answer) -> None:
    """Pass on what comes for a request, up to the answer."""
    message = await _next(hearing)
    if message is None:
        raise Refused(404, "The session has ended, or the request was sent again.")
    while message is not None:
        if _is_answer(message):
            await answer.end(in_json(message))
            return
        await _tell(message, answer)
        message = await _next(hearing)
    await answer.close()


async def _tell(message: Any, answer: Answer) -> None:
    await (answer.ping() if message is SILENCE else answer.tell(in_json(message)))


class _Silence:
    """Nothing was said for a while."""


SILENCE = _Silence()


async def _next(hearing: MemoryObjectReceiveStream[Any]) -> Any:
    """The next message, or silence; None when the line is closed."""
    try:
        return hearing.receive_nowait()
    except anyio.WouldBlock:
        pass
    except anyio.EndOfStream:
        return None
    with anyio.move_on_after(answering.PING_SECONDS):
        try:
            return await hearing.receive()
        except anyio.EndOfStream:
            return None
    return SILENCE


async def _cancel_when_gone(receive: Receive, group: TaskGroup) -> None:
    await until_gone(receive)
    group.cancel_scope.cancel()


def _is_answer(message: Any) -> bool:
    return message is not SILENCE and not hasattr(message, "method")


def _problem(code: int, message: str) -> bytes:
    from mcp_types import ErrorData, JSONRPCError

    return in_json(JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message)))


def _headers(session: Session) -> tuple[tuple[bytes, bytes], ...]:
    return ((SESSION.encode(), session.id.encode()),)
