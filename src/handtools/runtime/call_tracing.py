"""OpenTelemetry spans for calls."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from handtools.core.call import Call
from handtools.core.result import Result

SPAN_NAME = "execute_tool"


class CallSpan:
    """Wraps a call's OpenTelemetry span; does nothing if there is no span."""

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
    """Open an OpenTelemetry span for a call, or a null span if OpenTelemetry is not imported."""
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
