"""Following a call: what it has to show reaches the client while it runs, and all of it before the result."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from handtools.core.events import Event, Progressed, Settled
from handtools.core.result import Result
from handtools.text.clipping import clip
from handtools.text.encoding import displayed
from handtools.toolbox import Toolbox

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""The SDK's progress notification: how far, out of how much, and words."""

WAITING = 256
"""Progress beyond this many untold pieces is dropped: a slow client does not slow the call."""
SHOWN_BYTES = 2_000
SHOWN_LINES = 40
LAST_SECONDS = 2.0
"""How long a result waits for the last of the progress to be told."""
APART_SECONDS = 0.01
"""Between the last progress and the result: the TypeScript SDK drops progress that it reads with the result."""


class Follower:
    """Hands on progress to whoever follows a call; listens only once somebody does."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._followed: dict[str, MemoryObjectSendStream[str]] = {}
        self._loop: Any = None

    async def follow(
        self, call_id: str, run: Callable[[], Awaitable[Result[Any]]], report: Report
    ) -> Result[Any]:
        """Run a call and report its progress; returns when all of it was sent."""
        if self._loop is None:
            self._loop = anyio.lowlevel.current_token()
            self._toolbox.listen(self._hear)
        send, receive = anyio.create_memory_object_stream[str](WAITING)
        self._followed[call_id] = send
        told, count = anyio.Event(), [0]
        outcome: list[Result[Any]] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_pass_on, receive, report, told, count)
                outcome.append(await run())
                # The end of the call closes the stream, behind the last of its progress.
                with anyio.move_on_after(LAST_SECONDS):
                    await told.wait()
                if count[0]:
                    await anyio.sleep(APART_SECONDS)
                group.cancel_scope.cancel()
        finally:
            self._followed.pop(call_id, None)
            send.close()
        return outcome[0]

    def _hear(self, event: Event) -> None:
        """Runs on the announcer's thread."""
        if isinstance(event, Progressed) and event.call_id in self._followed:
            anyio.from_thread.run_sync(self._put, event.call_id, event.text, token=self._loop)
        elif isinstance(event, Settled) and event.call.id in self._followed:
            anyio.from_thread.run_sync(self._end, event.call.id, token=self._loop)

    def _put(self, call_id: str, text: str) -> None:
        stream = self._followed.get(call_id)
        if stream is not None and stream.statistics().current_buffer_used < WAITING:
            stream.send_nowait(text)

    def _end(self, call_id: str) -> None:
        if (stream := self._followed.pop(call_id, None)) is not None:
            stream.close()


async def _pass_on(
    receive: MemoryObjectReceiveStream[str], report: Report, told: anyio.Event, count: list[int]
) -> None:
    async with receive:
        async for text in receive:
            count[0] += 1
            shown = clip(text, max_lines=SHOWN_LINES, max_bytes=SHOWN_BYTES, keep="tail").text
            await report(float(count[0]), None, displayed(shown))
    told.set()
