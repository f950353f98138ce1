"""Turns: reads of a path run together, a write has it alone, first come first served."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True)
class _Waiter:
    keys: frozenset[str]
    exclusive: bool
    ready: anyio.Event = field(default_factory=anyio.Event)


class Scheduler:
    """Reader/writer locks by key, within one process. All keys of a call are taken at once: no deadlock."""

    def __init__(self) -> None:
        self._readers: dict[str, int] = {}
        self._writers: set[str] = set()
        self._waiting: deque[_Waiter] = deque()

    @asynccontextmanager
    async def turn(self, keys: Iterable[str], *, exclusive: bool) -> AsyncIterator[None]:
        """Hold the keys for the length of the block."""
        waiter = _Waiter(frozenset(keys), exclusive)
        if self._blocked(waiter, self._waiting):
            self._waiting.append(waiter)
            try:
                await waiter.ready.wait()
            except BaseException:
                self._give_up(waiter)
                raise
        else:
            self._take(waiter)
        try:
            yield
        finally:
            self._release(waiter)

    def _blocked(self, waiter: _Waiter, ahead: Iterable[_Waiter]) -> bool:
        """Whether a holder or someone who came earlier is in the way."""
        for key in waiter.keys:
            if key in self._writers or (waiter.exclusive and self._readers.get(key)):
                return True
        return any(
            (waiter.exclusive or earlier.exclusive) and not waiter.keys.isdisjoint(earlier.keys)
            for earlier in ahead
        )

    def _take(self, waiter: _Waiter) -> None:
        if waiter.exclusive:
            self._writers |= waiter.keys
        else:
            for key in waiter.keys:
                self._readers[key] = self._readers.get(key, 0) + 1

    def _release(self, waiter: _Waiter) -> None:
        if waiter.exclusive:
            self._writers -= waiter.keys
        else:
            for key in waiter.keys:
                self._readers[key] -= 1
                if not self._readers[key]:
                    del self._readers[key]
        self._wake()

    def _give_up(self, waiter: _Waiter) -> None:
        if waiter.ready.is_set():
            self._release(waiter)
        else:
            self._waiting.remove(waiter)
            self._wake()

    def _wake(self) -> None:
        still: deque[_Waiter] = deque()
        for waiter in self._waiting:
            if self._blocked(waiter, still):
                still.append(waiter)
            else:
                self._take(waiter)
                waiter.ready.set()
        self._waiting = still
