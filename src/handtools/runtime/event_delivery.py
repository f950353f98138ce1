"""Delivery of events to listeners, from a background thread."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from handtools.core.errors import exception_raised_by
from handtools.core.events import Event, EventListener, Progressed, call_id_of_event

MAX_QUEUED_PROGRESS = 256
"""Most queued progress events; beyond that, a new one replaces the last one. Other events are always queued."""


class EventAnnouncer:
    """Delivers events to listeners in order, from a thread that runs only while events are queued."""

    def __init__(self, listeners: tuple[EventListener, ...] = ()) -> None:
        self._listeners = list(listeners)
        self._followers: dict[str, EventListener] = {}
        self._events: deque[tuple[Event, tuple[EventListener, ...]]] = deque()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    def copy(self) -> "EventAnnouncer":
        """Return an announcer with the same listeners; listeners added later to one are not added to the other."""
        return EventAnnouncer(tuple(self._listeners))

    def listen(self, listener: EventListener) -> None:
        """Add a listener for all later events."""
        self._listeners.append(listener)

    @contextmanager
    def listen_to_call(self, call_id: str, listener: EventListener | None) -> Iterator[None]:
        """Context manager that adds a listener for the events of one call."""
        if listener is not None:
            self._followers[call_id] = listener
        try:
            yield
        finally:
            self._followers.pop(call_id, None)

    def is_heard(self, call_id: str) -> bool:
        """Whether anyone listens to the events of a call."""
        return bool(self._listeners) or call_id in self._followers

    def announce(self, event: Event) -> None:
        """Queue an event for the listeners; returns at once."""
        follower = self._followers.get(call_id_of_event(event)) if self._followers else None
        listeners = (*self._listeners, follower) if follower else tuple(self._listeners)
        if not listeners:
            return
        with self._lock:
            crowded = len(self._events) >= MAX_QUEUED_PROGRESS and isinstance(event, Progressed)
            if crowded and isinstance(self._events[-1][0], Progressed):
                self._events[-1] = event, listeners
            else:
                self._events.append((event, listeners))
            if not self._idle.is_set():
                return
            self._idle.clear()
        threading.Thread(target=self._deliver_events, name="handtools-events", daemon=True).start()

    def drain(self, timeout: float) -> bool:
        """Wait until all events were delivered; return False after `timeout` seconds."""
        return self._idle.wait(timeout)

    def _deliver_events(self) -> None:
        while True:
            with self._lock:
                if not self._events:
                    self._idle.set()
                    return
                event, listeners = self._events.popleft()
            for listener in listeners:
                exception_raised_by(partial(listener, event))
