"""OpenTelemetry, with the real SDK."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from handtools.testing.memory_toolbox import memory_toolbox


@pytest.fixture(scope="module")
def provider_and_spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider, exporter


async def test_a_call_is_a_span_with_its_outcome(provider_and_spans):
    _, exporter = provider_and_spans
    exporter.clear()
    await memory_toolbox({"a": b"x"}).call("edit", {"path": "a", "old_string": "nope", "new_string": "y"})
    [span] = exporter.get_finished_spans()
    assert span.name == "execute_tool edit"
    assert span.attributes["gen_ai.tool.name"] == "edit"
    assert span.attributes["handtools.status"] == "error"
    assert span.attributes["error.type"] == "no_match"


async def test_the_hosts_own_span_is_enriched_and_not_doubled(provider_and_spans):
    provider, exporter = provider_and_spans
    exporter.clear()
    with provider.get_tracer("host").start_as_current_span("execute_tool edit"):
        await memory_toolbox({"a": b"x"}).call("edit", {"path": "a", "old_string": "x", "new_string": "y"})
    [span] = exporter.get_finished_spans()
    assert span.instrumentation_scope.name == "host"
    assert span.attributes["handtools.changed_files"] == 1
