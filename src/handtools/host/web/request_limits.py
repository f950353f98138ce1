"""Limits for web requests: size and time of one response, and a rate limiter per host."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from handtools.core.errors import RateLimited
from handtools.core.web import MAX_WEB_PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """Size and time limits for one response."""

    page_bytes: int = MAX_WEB_PAGE_BYTES
    """The largest body in bytes, both before and after decoding."""
    connect: float = 10.0
    silence: float = 15.0
    """Seconds without data after which a response is aborted."""
    total: float = 45.0
    """Total seconds for one response."""


MAX_HOST_PAUSE_SECONDS = 300.0
"""The longest pause, in seconds, that a server can request; longer ones are shortened to this."""
MAX_REMEMBERED_HOSTS = 1_000


@dataclass(slots=True)
class RateLimiter:
    """Limits the rate of requests per host, and honours pauses that servers request."""

    burst: int = 10
    window: float = 5.0
    """The seconds in which one host gets at most `burst` requests."""
    clock: Callable[[], float] = time.monotonic
    _asked: dict[str, deque[float]] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    async def turn(self, host: str) -> None:
        """Wait until a request to a host is allowed; raises `RateLimited` while the host wants a pause."""
        left = self._until.get(host, 0.0) - self.clock()
        if left > 0:
            raise RateLimited(f"{host} is rate-limiting us.", hint=f"Try again in {left:.0f} s.")
        while (wait := self._seconds_until_allowed(host)) > 0:  # noqa: ASYNC110 — waits for time, not for an event
            await anyio.sleep(wait)

    def hold(self, host: str, seconds: float) -> None:
        """Block requests to a host for a number of seconds."""
        self._drop_oldest_if_full(self._until)
        self._until[host] = self.clock() + min(seconds, MAX_HOST_PAUSE_SECONDS)

    def _seconds_until_allowed(self, host: str) -> float:
        """If a request is allowed now, count it and return 0; otherwise return the seconds to wait."""
        now = self.clock()
        self._drop_oldest_if_full(self._asked)
        asked = self._asked.setdefault(host, deque())
        while asked and asked[0] <= now - self.window:
            asked.popleft()
        if len(asked) >= self.burst:
            return asked[0] + self.window - now
        asked.append(now)
        return 0.0

    @staticmethod
    def _drop_oldest_if_full(kept: dict[str, deque[float]] | dict[str, float]) -> None:
        if len(kept) > MAX_REMEMBERED_HOSTS:
            del kept[next(iter(kept))]
