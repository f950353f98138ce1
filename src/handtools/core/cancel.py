"""A handle that takes a call back, for callers that hold nothing else."""

import logging
import threading
from collections.abc import Callable

from handtools.core.attempting import attempt
from handtools.core.errors import Cancelled

log = logging.getLogger("handtools")


def taken_back() -> Cancelled:
    """What a call ends with that its caller took back."""
    return Cancelled("The call was cancelled.", hint="Do not repeat it unasked.")


class CancelToken:
    """Cancelled once, for good; callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Take the call back. A callback that fails is logged: it stops neither the others nor the caller."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call_back(callback)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back on cancellation, at once if it has happened; returns what unregisters it."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        _call_back(callback)
        return lambda: None

    def check(self) -> None:
        """Raise `Cancelled` if the call was taken back."""
        if self._cancelled:
            raise taken_back()

    def _forget(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def _call_back(callback: Callable[[], object]) -> None:
    if failure := attempt(callback):
        log.warning("A callback on cancelling failed: %r", failure, exc_info=failure)
