"""Delivery of events to listeners from a background thread, and OpenTelemetry spans of calls."""

import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from handtools.core.call import Call
from handtools.core.errors import exception_raised_by
from handtools.core.events import Event, EventListener, Progressed, call_id_of_event
from handtools.core.result import Result

MAX_QUEUED_PROGRESS = 256
"""Most undelivered progress events; beyond it the newest is replaced. Other events always queue."""


class EventAnnouncer:
    """Delivers events to listeners in order, from a thread that lives only while events wait."""

    def __init__(self, listeners: tuple[EventListener, ...] = ()) -> None:
        self._listeners = list(listeners)
        self._followers: dict[str, EventListener] = {}
        self._events: deque[tuple[Event, tuple[EventListener, ...]]] = deque()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    def copy(self) -> "EventAnnouncer":
        """Return another announcer that tells the same listeners; who listens later hears one of them."""
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
        threading.Thread(target=self._tell, name="handtools-events", daemon=True).start()

    def drain(self, timeout: float) -> bool:
        """Wait until all events were delivered; return False after `timeout` seconds."""
        return self._idle.wait(timeout)

    def _tell(self) -> None:
        while True:
            with self._lock:
                if not self._events:
                    self._idle.set()
                    return
                event, listeners = self._events.popleft()
            for listener in listeners:
                exception_raised_by(partial(listener, event))


SPAN_NAME = "execute_tool"


class CallSpan:
    """Wrapper of a call's OpenTelemetry span; does nothing when there is no span."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def settle(self, result: Result[Any]) -> None:
        """Set the call's outcome as span attributes."""
        if self._span is None:
            return
        facts: dict[str, Any] = {
            "handtools.status": result.status,
            "handtools.tokens": result.usage.tokens,
            "handtools.changed_files": len(result.changes.touched) if result.changes else 0,
        }
        if result.fault:
            facts["error.type"] = result.fault.code
        self._span.set_attributes(facts)


def traced_call(call: Call) -> AbstractContextManager[CallSpan]:
    """Open an OpenTelemetry span for a call; a null span if the program has not imported OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    return nullcontext(CallSpan()) if api is None else _call_span(api, call)


@contextmanager
def _call_span(api: Any, call: Call) -> Iterator[CallSpan]:
    facts = {
        "gen_ai.operation.name": SPAN_NAME,
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
    }
    current = api.get_current_span()
    if current.is_recording() and getattr(current, "name", "").startswith(SPAN_NAME):
        current.set_attributes(facts)
        yield CallSpan(current)
        return
    with api.get_tracer("handtools").start_as_current_span(
        f"{SPAN_NAME} {call.tool}", attributes=facts
    ) as span:
        yield CallSpan(span)
