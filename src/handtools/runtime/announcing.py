"""Announcing events: in order, and never at the expense of the call."""

import threading
from collections import deque
from functools import partial

from handtools.core.attempting import attempt
from handtools.core.events import Event, Listener, Progressed

WAITING = 256
"""Progress beyond this many untold events replaces the newest instead of queueing; other events always queue."""


class Announcer:
    """Tells listeners from a thread of its own that lives only while there is something to tell."""

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self._listeners = list(listeners)
        self._events: deque[Event] = deque()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    def listen(self, listener: Listener) -> None:
        """Add a listener for everything from now on."""
        self._listeners.append(listener)

    def announce(self, event: Event) -> None:
        """Queue an event; returns at once."""
        if not self._listeners:
            return
        with self._lock:
            crowded = len(self._events) >= WAITING and isinstance(event, Progressed)
            if crowded and isinstance(self._events[-1], Progressed):
                self._events[-1] = event
            else:
                self._events.append(event)
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
                event = self._events.popleft()
            for listener in self._listeners:
                attempt(partial(listener, event))
