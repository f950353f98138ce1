"""Metrics of a host for Prometheus: through Ray if available, otherwise as text (`text.prometheus`) on loopback.

Labels are tool names and call outcomes, both from short fixed lists. They never contain workspace names,
paths, arguments or tenants.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from handtools.core.errors import ToolError
from handtools.core.result import Result
from handtools.text.prometheus import SECONDS_BUCKETS

OTHER = "other"
"""Label for values that are not on our lists, because callers can send arbitrary ones."""
M = TypeVar("M")


class CounterMetric(Protocol):
    """A counter, which only grows. The methods match `ray.util.metrics`."""

    def inc(self, value: float = ..., tags: dict[str, str] | None = ...) -> None:
        """Add to the counter."""


class GaugeMetric(Protocol):
    """A gauge, which shows the last value that was set."""

    def set(self, value: float | None, tags: dict[str, str] | None = ...) -> None:
        """Set the gauge."""


class HistogramMetric(Protocol):
    """A histogram, which counts values by size."""

    def observe(self, value: float, tags: dict[str, str] | None = ...) -> None:
        """Count a value."""


class MetricRegistry(Protocol):
    """Creates metrics and exposes them to a collector."""

    def create_counter(self, name: str, description: str, labels: Sequence[str] = ()) -> CounterMetric:
        """Create a counter."""
        ...

    def create_gauge(self, name: str, description: str, labels: Sequence[str] = ()) -> GaugeMetric:
        """Create a gauge."""
        ...

    def create_seconds_histogram(
        self, name: str, description: str, labels: Sequence[str] = ()
    ) -> HistogramMetric:
        """Create a histogram of seconds."""
        ...


class HostMetrics:
    """The metrics of a host."""

    def __init__(self, registry: MetricRegistry, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)
        self._codes = {each.code for each in ToolError.__subclasses__()}
        self._calls = registry.create_counter(
            "handtools_calls_total", "Finished calls by outcome.", ("tool", "outcome")
        )
        self._seconds = registry.create_seconds_histogram(
            "handtools_call_seconds", "Duration of calls, including the wait for a turn.", ("tool",)
        )
        self._waits = registry.create_seconds_histogram(
            "handtools_turn_wait_seconds", "Time calls waited for a turn."
        )
        self._stores = registry.create_seconds_histogram(
            "handtools_store_seconds", "Time to store new changes in a workspace's log."
        )
        self._sums = {
            name: registry.create_counter(f"handtools_{name}_total", description)
            for name, description in {
                "busy": "Calls refused as busy.",
                "stored_bytes": "Log bytes stored, compressed.",
                "store_failures": "Failed attempts to store a log.",
                "recovered_workspaces": "Workspaces recovered from their logs.",
                "moved_workspaces": "Workspaces moved to another host.",
            }.items()
        }
        self._gauges = {
            name: registry.create_gauge(f"handtools_{name}", description)
            for name, description in {
                "slots": "Maximum number of workspaces on the host.",
                "workspaces": "Workspaces on the host.",
                "open_workspaces": "Open workspaces.",
                "running_calls": "Running calls.",
                "waiting_calls": "Calls waiting for a turn.",
                "memory_bytes": "Memory of the host's process.",
                "disk_free_bytes": "Free bytes on the disk with the workspaces.",
                "unstored_seconds": "Age of the oldest change not yet stored in its log.",
                "draining": "Whether the host is draining and accepts no new workspaces.",
            }.items()
        }
        self._added: dict[str, float] = {}

    def count_finished_call(self, tool: str, result: Result[Any], seconds: float) -> None:
        """Count a finished call."""
        known = tool if tool in self._tools else OTHER
        self._calls.inc(1.0, {"tool": known, "outcome": self._outcome_label(result)})
        self._seconds.observe(seconds, {"tool": known})

    def record_queue_wait(self, seconds: float) -> None:
        """Record how long a call waited in the queue."""
        self._waits.observe(seconds)

    def record_store_time(self, seconds: float) -> None:
        """Record the time that it took to store new changes in a log."""
        self._stores.observe(seconds)

    def add_to_counter(self, name: str, value: float = 1.0) -> None:
        """Add to the counter with this name."""
        if value > 0:
            self._sums[name].inc(value)

    def set_totals_and_gauges(self, sums: Mapping[str, float], gauges: Mapping[str, float]) -> None:
        """Set metrics from the host's numbers: `sums` has totals for counters, `gauges` current values."""
        for name, total in sums.items():
            self.add_to_counter(name, total - self._added.get(name, 0.0))
            self._added[name] = total
        for name, value in gauges.items():
            self._gauges[name].set(float(value))

    def _outcome_label(self, result: Result[Any]) -> str:
        if result.fault is None:
            return result.status
        return result.fault.code if result.fault.code in self._codes else OTHER


class RayMetricRegistry:
    """Metrics that Ray's agent on the node exports, with the host's name as a label."""

    def __init__(self, host: str) -> None:
        self._host = host

    def create_counter(self, name: str, description: str, labels: Sequence[str] = ()) -> CounterMetric:
        from ray.util.metrics import Counter  # pyright: ignore[reportMissingImports]

        counter_metric: CounterMetric = Counter(
            name.removesuffix("_total"), description, tag_keys=(*labels, "host")
        )
        return self._with_host_tag(counter_metric)

    def create_gauge(self, name: str, description: str, labels: Sequence[str] = ()) -> GaugeMetric:
        from ray.util.metrics import Gauge  # pyright: ignore[reportMissingImports]

        gauge_metric: GaugeMetric = Gauge(name, description, tag_keys=(*labels, "host"))
        return self._with_host_tag(gauge_metric)

    def create_seconds_histogram(
        self, name: str, description: str, labels: Sequence[str] = ()
    ) -> HistogramMetric:
        from ray.util.metrics import Histogram  # pyright: ignore[reportMissingImports]

        histogram_metric: HistogramMetric = Histogram(
            name, description, boundaries=list(SECONDS_BUCKETS), tag_keys=(*labels, "host")
        )
        return self._with_host_tag(histogram_metric)

    def _with_host_tag(self, metric: M) -> M:
        named: Any = metric
        named.set_default_tags({"host": self._host})
        return metric
