"""Whether something keeps the event loop of our process: then a server answers nobody meanwhile."""

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator
from dataclasses import dataclass

MAX_SECONDS = 2.0
"""How much processor time of our process may pass between two turns of the loop."""


@dataclass(slots=True)
class LoopWatch:
    """The longest stretch that the loop was kept so far, in seconds of processor time."""

    longest: float = 0.0

    def word(self, what: str) -> str | None:
        """What an attack says about it."""
        if self.longest <= MAX_SECONDS:
            return None
        return f"the event loop was kept for {self.longest:.1f} s of processor time by {what}"


@contextlib.asynccontextmanager
async def watched_loop() -> AsyncIterator[LoopWatch]:
    """Watch the loop while something is done in it."""
    watch = LoopWatch()

    async def tick() -> None:
        before = _processor_seconds()
        while True:
            await asyncio.sleep(0.01)
            now = _processor_seconds()
            watch.longest, before = max(watch.longest, now - before), now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    try:
        yield watch
    finally:
        await asyncio.sleep(0.05)
        ticking.cancel()


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
