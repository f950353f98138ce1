"""Limits of web requests: bytes and seconds of one response, and a rate limiter per host."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from handtools.core.errors import Throttled
from handtools.core.web import PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """What one answer may cost."""

    page_bytes: int = PAGE_BYTES
    """As it comes over the wire, and again unpacked."""
    connect: float = 10.0
    silence: float = 15.0
    """Seconds without a byte."""
    total: float = 45.0
    """Seconds for one server altogether, however it trickles."""


MOST_HOLD_SECONDS = 300.0
"""A server that wants more is believed so far."""
MOST_REMEMBERED_HOSTS = 1_000


@dataclass(slots=True)
class RateLimiter:
    """Remembers when each host was asked."""

    burst: int = 10
    window: float = 5.0
    """Seconds in which one host is asked at most `burst` times."""
    clock: Callable[[], float] = time.monotonic
    _asked: dict[str, deque[float]] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    async def turn(self, host: str) -> None:
        """Wait until the host may be asked; raises `Throttled` while it does not want to be."""
        left = self._until.get(host, 0.0) - self.clock()
        if left > 0:
            raise Throttled(f"{host} wants us to wait.", hint=f"Try in {left:.0f} s.")
        while (wait := self._wait(host)) > 0:  # noqa: ASYNC110 — it is time that is waited for
            await anyio.sleep(wait)

    def hold(self, host: str, seconds: float) -> None:
        """Leave a host alone for a while."""
        self._forget(self._until)
        self._until[host] = self.clock() + min(seconds, MOST_HOLD_SECONDS)

    def _wait(self, host: str) -> float:
        """Seconds until there is room; takes the place when there is."""
        now = self.clock()
        self._forget(self._asked)
        asked = self._asked.setdefault(host, deque())
        while asked and asked[0] <= now - self.window:
            asked.popleft()
        if len(asked) >= self.burst:
            return asked[0] + self.window - now
        asked.append(now)
        return 0.0

    @staticmethod
    def _forget(kept: dict[str, deque[float]] | dict[str, float]) -> None:
        if len(kept) > MOST_REMEMBERED_HOSTS:
            del kept[next(iter(kept))]
