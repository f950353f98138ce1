"""Announcing events: in order, and never at the expense of the call."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from handtools.core.attempting import attempt
from handtools.core.events import Event, Listener, Progressed, call_of

WAITING = 256
"""Progress beyond this many untold events replaces the newest instead of queueing; other events always queue."""


class Announcer:
    """Tells listeners from a thread of its own that lives only while there is something to tell."""

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self._listeners = list(listeners)
        self._followers: dict[str, Listener] = {}
        self._events: deque[tuple[Event, tuple[Listener, ...]]] = deque()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    def listen(self, listener: Listener) -> None:
        """Add a listener for everything from now on."""
        self._listeners.append(listener)

    @contextmanager
    def following(self, call_id: str, listener: Listener | None) -> Iterator[None]:
        """Add a listener for what is announced of one call within the block."""
        if listener is not None:
            self._followers[call_id] = listener
        try:
            yield
        finally:
            self._followers.pop(call_id, None)

    def announce(self, event: Event) -> None:
        """Queue an event; returns at once."""
        follower = self._followers.get(call_of(event)) if self._followers else None
        listeners = (*self._listeners, follower) if follower else tuple(self._listeners)
        if not listeners:
            return
        with self._lock:
            crowded = len(self._events) >= WAITING and isinstance(event, Progressed)
            if crowded and isinstance(self._events[-1][0], Progressed):
                self._events[-1] = event, listeners
            else:
                self._events.append((event, listeners))
            if not self._idle.is_set():
                return
            self._idle.clear()
        threading.Thread(target=self._tell, name="handtools-events", daemon=True).start()

    def drain(self, timeout: float) -> bool:
        """Wait until everything was told; False when the listeners did not keep up."""
        return self._idle.wait(timeout)

    def _tell(self) -> None:
        while True:
            with self._lock:
                if not self._events:
                    self._idle.set()
                    return
                event, listeners = self._events.popleft()
            for listener in listeners:
                attempt(partial(listener, event))
