"""OpenTelemetry: attributes on the host's span, or a span of our own; nothing at all without the API."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from handtools.core.call import Call
from handtools.core.result import Result

NAME = "execute_tool"


class Span:
    """Takes the result's facts, wherever they go."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def settle(self, result: Result[Any]) -> None:
        """Put the outcome on the span."""
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


def traced(call: Call) -> AbstractContextManager[Span]:
    """The span of a call. A program that never imported OpenTelemetry has nobody listening, so none is made."""
    api = sys.modules.get("opentelemetry.trace")
    return nullcontext(Span()) if api is None else _spanned(api, call)


@contextmanager
def _spanned(api: Any, call: Call) -> Iterator[Span]:
    facts = {
        "gen_ai.operation.name": NAME,
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
    }
    current = api.get_current_span()
    if current.is_recording() and getattr(current, "name", "").startswith(NAME):
        current.set_attributes(facts)
        yield Span(current)
        return
    with api.get_tracer("handtools").start_as_current_span(f"{NAME} {call.tool}", attributes=facts) as span:
        yield Span(span)
