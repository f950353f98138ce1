"""Counters, gauges and histograms kept in memory and rendered in Prometheus text format."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0)
M = TypeVar("M", bound="TextMetric")


class TextMetric:
    """A counter or gauge with one value for each combination of labels. The methods match `ray.util.metrics`."""

    def __init__(self, name: str, kind: str, description: str, labels: Sequence[str]) -> None:
        self.name, self.kind, self.description, self.labels = name, kind, description, tuple(labels)
        self.values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def inc(self, value: float = 1.0, tags: Mapping[str, str] | None = None) -> None:
        """Add to the counter."""
        key = self._label_values(tags)
        self.values[key] = self.values.get(key, 0.0) + value

    def set(self, value: float | None, tags: Mapping[str, str] | None = None) -> None:
        """Set the gauge."""
        self.values[self._label_values(tags)] = value or 0.0

    def text(self) -> str:
        """The metric in Prometheus text format."""
        lines = [
            f"# HELP {self.name} {self.description}",
            f"# TYPE {self.name} {self.kind}",
            *self.value_lines(),
        ]
        return "".join(f"{line}\n" for line in lines)

    def value_lines(self) -> list[str]:
        """The lines with the values, without the comments above them."""
        return [
            _value_line(self.name, zip(self.labels, key, strict=True), value)
            for key, value in sorted(self.values.items())
        ]

    def _label_values(self, tags: Mapping[str, str] | None) -> tuple[str, ...]:
        return tuple((tags or {})[label] for label in self.labels)


class TextHistogram(TextMetric):
    """A histogram of seconds, which counts values by size."""

    def __init__(self, name: str, kind: str, description: str, labels: Sequence[str]) -> None:
        super().__init__(name, kind, description, labels)
        self._buckets: dict[tuple[str, ...], list[int]] = {}

    def observe(self, value: float, tags: Mapping[str, str] | None = None) -> None:
        """Count a value."""
        key = self._label_values(tags)
        counts = self._buckets.setdefault(key, [0] * (len(SECONDS_BUCKETS) + 1))
        counts[bisect_left(SECONDS_BUCKETS, value)] += 1
        self.values[key] = self.values.get(key, 0.0) + value

    def value_lines(self) -> list[str]:
        found: list[str] = []
        for key, counts in sorted(self._buckets.items()):
            labels, total = list(zip(self.labels, key, strict=True)), 0
            for bound, count in zip((*map(str, SECONDS_BUCKETS), "+Inf"), counts, strict=True):
                total += count
                found.append(_value_line(f"{self.name}_bucket", [*labels, ("le", bound)], total))
            found += [
                _value_line(f"{self.name}_sum", labels, self.values[key]),
                _value_line(f"{self.name}_count", labels, total),
            ]
        return found


class TextMetricRegistry:
    """Creates metrics and renders all of them in Prometheus text format."""

    def __init__(self) -> None:
        self._metrics: list[TextMetric] = []

    def create_counter(self, name: str, description: str, labels: Sequence[str] = ()) -> TextMetric:
        """Create a counter, which only grows."""
        return self._register(TextMetric(name, "counter", description, labels))

    def create_gauge(self, name: str, description: str, labels: Sequence[str] = ()) -> TextMetric:
        """Create a gauge, which has the value last set."""
        return self._register(TextMetric(name, "gauge", description, labels))

    def create_seconds_histogram(
        self, name: str, description: str, labels: Sequence[str] = ()
    ) -> TextHistogram:
        """Create a histogram of seconds."""
        return self._register(TextHistogram(name, "histogram", description, labels))

    def text(self) -> str:
        """All metrics in Prometheus text format."""
        return "".join(metric.text() for metric in self._metrics)

    def _register(self, metric: M) -> M:
        self._metrics.append(metric)
        return metric


def _value_line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    shown = ",".join(f'{label}="{text}"' for label, text in labels)
    number = repr(value).removesuffix(".0")
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"
