"""Patience: how long a client may take to say what it wants before its connection is closed."""

from typing import Any


def hasty(seconds: float) -> type[Any]:
    """Uvicorn's HTTP protocol with a limit on the time until all headers of a request are there."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class HastyProtocol(H11Protocol):
        """Closes connections that open and say nothing, or say it byte by byte."""

        _late: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def hear(self, data: bytes) -> None:
            super().data_received(data)
            waiting = self.conn.their_state is h11.IDLE
            if waiting and self._late is None:
                self._wait()
            elif not waiting:
                self._stop_waiting()

        data_received = hear

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return HastyProtocol
