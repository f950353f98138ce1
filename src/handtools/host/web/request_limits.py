"""Limits of web requests: bytes and seconds of one response, and a rate limiter per host."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from handtools.core.errors import RateLimited
from handtools.core.web import MAX_WEB_PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """Size and time limits of one response."""

    page_bytes: int = MAX_WEB_PAGE_BYTES
    """The most bytes of a body, both as received and decoded."""
    connect: float = 10.0
    silence: float = 15.0
    """Seconds without a byte after which a response is given up."""
    total: float = 45.0
    """Seconds for one response in total."""


MOST_HOST_PAUSE_SECONDS = 300.0
"""The longest pause, in seconds, that a server can ask for; more is cut to this."""
MOST_REMEMBERED_HOSTS = 1_000


@dataclass(slots=True)
class RateLimiter:
    """Limits how often each host is asked, and keeps pauses that servers asked for."""

    burst: int = 10
    window: float = 5.0
    """The seconds in which one host is asked at most `burst` times."""
    clock: Callable[[], float] = time.monotonic
    _asked: dict[str, deque[float]] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    async def turn(self, host: str) -> None:
        """Wait until a host may be asked; raises `RateLimited` while a pause that it asked for lasts."""
        left = self._until.get(host, 0.0) - self.clock()
        if left > 0:
            raise RateLimited(f"{host} wants us to wait.", hint=f"Try in {left:.0f} s.")
        while (wait := self._wait(host)) > 0:  # noqa: ASYNC110 — it is time that is waited for
            await anyio.sleep(wait)

    def hold(self, host: str, seconds: float) -> None:
        """Ask a host nothing for so many seconds."""
        self._forget(self._until)
        self._until[host] = self.clock() + min(seconds, MOST_HOST_PAUSE_SECONDS)

    def _wait(self, host: str) -> float:
        """Seconds until the host may be asked; 0 if it may, and the request is then counted."""
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
