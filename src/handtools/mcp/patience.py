"""Patience: how long a client may take to say what it wants before its connection is closed."""

from collections.abc import Callable
from typing import Any

from handtools.mcp.asgi import Scope


def hasty(seconds: float, *, strangers: int, knows: Callable[[Scope], bool]) -> type[Any]:
    """Uvicorn's HTTP protocol with a limit on the time until all headers of a request are there.

    Of connections on which no request of somebody known has come yet, only so many are kept: a new one costs the
    oldest its place, and never one of those that are known.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    unknown: dict[Any, None] = {}

    class HastyProtocol(H11Protocol):
        """Closes connections that open and say nothing, or say it byte by byte."""

        _late: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            unknown[self] = None
            if len(unknown) > strangers:
                oldest = next(iter(unknown))
                del unknown[oldest]
                oldest.transport.abort()

        def hear(self, data: bytes) -> None:
            super().data_received(data)
            if self in unknown and self.scope is not None and knows(dict(self.scope)):
                del unknown[self]
            waiting = self.conn.their_state is h11.IDLE
            if waiting and self._late is None:
                self._wait()
            elif not waiting:
                self._stop_waiting()

        data_received = hear

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            unknown.pop(self, None)
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return HastyProtocol
