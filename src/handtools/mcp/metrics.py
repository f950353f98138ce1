"""Metrics: what was called, how it ended and how long it took, in the text format that collectors read."""

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Metrics:
    """Counts since the start; one per server."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    running: int = 0
    began: float = field(default_factory=time.time)

    def called(self, tool: str, status: str, seconds: float) -> None:
        """Count a call that ended."""
        self.calls[tool, status] += 1
        self.seconds[tool] = self.seconds.get(tool, 0.0) + seconds

    def text(self) -> str:
        """All of it, one sample per line."""
        calls = [
            f'handtools_calls_total{{tool="{tool}",status="{status}"}} {count}'
            for (tool, status), count in sorted(self.calls.items())
        ]
        seconds = [
            f'handtools_call_seconds_total{{tool="{tool}"}} {taken:.6f}'
            for tool, taken in sorted(self.seconds.items())
        ]
        refused = [
            f'handtools_refused_total{{reason="{reason}"}} {count}'
            for reason, count in sorted(self.refused.items())
        ]
        return "\n".join(
            [
                *("# TYPE handtools_calls_total counter", *calls),
                *("# TYPE handtools_call_seconds_total counter", *seconds),
                *("# TYPE handtools_refused_total counter", *refused),
                *("# TYPE handtools_running gauge", f"handtools_running {self.running}"),
                *(
                    "# TYPE handtools_up_seconds gauge",
                    f"handtools_up_seconds {time.time() - self.began:.1f}",
                ),
                "",
            ]
        )
