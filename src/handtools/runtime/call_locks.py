"""In-process locks for calls: shared reads and exclusive writes by path, first come, first served."""

from collections import deque
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio


@dataclass(slots=True, eq=False)
class _Turn:
    """A call that has locked keys, or waits to lock them."""

    locks: "CallLocks"
    keys: frozenset[str]
    exclusive: bool
    ready: anyio.Event | None = None

    async def __aenter__(self) -> None:
        await self.locks.enter(self)

    async def __aexit__(self, *_: object) -> None:
        self.locks.leave(self)


class CallLocks:
    """In-process reader/writer locks by key; a call takes all its keys at once, which avoids deadlocks."""

    def __init__(self) -> None:
        self._readers: dict[str, int] = {}
        self._writers: set[str] = set()
        self._waiting: deque[_Turn] = deque()

    def turn(self, keys: Iterable[str], *, exclusive: bool) -> AbstractAsyncContextManager[None]:
        """Context manager that locks keys, shared or exclusive."""
        return _Turn(self, frozenset(keys), exclusive)

    async def enter(self, turn: _Turn) -> None:
        """Wait until the keys are free, then take them."""
        if not self._is_blocked(turn, self._waiting):
            self._take(turn)
            return
        turn.ready = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.ready.wait()
        except BaseException:
            self._give_up(turn, turn.ready)
            raise

    def _is_blocked(self, turn: _Turn, turns_ahead: Iterable[_Turn]) -> bool:
        """Whether a conflicting call has locked one of the keys, or waits for one ahead of this call."""
        for key in turn.keys:
            if key in self._writers or (turn.exclusive and self._readers.get(key)):
                return True
        return any(
            (turn.exclusive or earlier.exclusive) and not turn.keys.isdisjoint(earlier.keys)
            for earlier in turns_ahead
        )

    def _take(self, turn: _Turn) -> None:
        if turn.exclusive:
            self._writers |= turn.keys
        else:
            for key in turn.keys:
                self._readers[key] = self._readers.get(key, 0) + 1

    def leave(self, turn: _Turn) -> None:
        """Release the keys and wake waiters."""
        if turn.exclusive:
            self._writers -= turn.keys
        else:
            for key in turn.keys:
                self._readers[key] -= 1
                if not self._readers[key]:
                    del self._readers[key]
        if self._waiting:
            self._wake()

    def _give_up(self, turn: _Turn, ready: anyio.Event) -> None:
        if ready.is_set():
            self.leave(turn)
        else:
            self._waiting.remove(turn)
            self._wake()

    def _wake(self) -> None:
        turns: deque[_Turn] = deque()
        for waiter in self._waiting:
            if self._is_blocked(waiter, turns):
                turns.append(waiter)
            else:
                self._take(waiter)
                if waiter.ready:
                    waiter.ready.set()
        self._waiting = turns
