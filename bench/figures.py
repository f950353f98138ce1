"""What every bench prints, and how a ratio is taken on a noisy machine."""

import asyncio
import gc
import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

WORSE = 1.3
"""How much larger than when it was last settled a ratio may be that has no goal of its own."""
Action = Callable[[], object]
"""Something to time; what it returns is awaited where it can be."""


TIMING_UNITS = frozenset({"ms", "s", "/s", "GB/s", "x", "of the median"})
"""Units of figures that depend on how busy the machine is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number, with what it is held against."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    goal: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def ratio(self) -> float | None:
        """Value over baseline, where there is one."""
        return None if not self.baseline else self.value / self.baseline

    @property
    def is_timing(self) -> bool:
        """Whether the figure depends on how busy the machine is."""
        return self.unit in TIMING_UNITS

    @property
    def ok(self) -> bool:
        """Whether the goal is met; a ratio's goal is for the ratio, any other for the value."""
        if self.goal is None:
            return True
        seen = self.value if self.ratio is None else self.ratio
        return seen <= self.goal if self.better == "lower" else seen >= self.goal

    def as_json(self) -> str:
        """One line of JSON, in the order people read it."""
        ratio = None if self.ratio is None else round(self.ratio, 4)
        fields = {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "baseline": self.baseline,
            "ratio": ratio,
            "goal": self.goal,
            "ok": self.ok,
        }
        return json.dumps(fields)

    def as_text(self) -> str:
        """One line for a person."""
        ratio = "" if self.ratio is None else f"  {self.ratio:.2f}x of {self.baseline:g}"
        goal = "" if self.goal is None else f"  (goal {self.goal:g}: {'ok' if self.ok else 'MISSED'})"
        return f"{self.name:<44} {self.value:g} {self.unit}{ratio}{goal}"


@dataclass(frozen=True, slots=True)
class NotRun:
    """A part that was not measured here, and why: it is neither met nor missed."""

    name: str
    reason: str
    ok: bool = True

    def as_json(self) -> str:
        """One line of JSON, told from a figure by `not_run`."""
        return json.dumps({"name": self.name, "not_run": self.reason})

    def as_text(self) -> str:
        """One line for a person."""
        return f"{self.name:<44} NOT RUN: {self.reason}"


def bound(settled: float) -> float:
    """The bound of a ratio that is held against its own past only; where it is given, a comment has the date."""
    return round(settled * WORSE, 2)


async def paired(
    name: str,
    ours: Action,
    bare: Action,
    *,
    rounds: int,
    goal: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> Figure:
    """Time both in turn, `rounds` times; the ratio is the median over pairs: drift hits both sides alike.

    With the clock of the process, the time that the machine gives to others is not counted.
    """
    pairs = []
    await _seconds(ours, clock), await _seconds(bare, clock)
    gc.collect()
    for index in range(rounds):
        if index % 2:
            mine, theirs = await _seconds(ours, clock), await _seconds(bare, clock)
        else:
            theirs, mine = await _seconds(bare, clock), await _seconds(ours, clock)
        pairs.append((mine, theirs))
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    baseline = statistics.median(theirs for _, theirs in pairs) * 1000
    return Figure(name=name, value=baseline * ratio, unit="ms", baseline=baseline, goal=goal)


async def _seconds(action: Action, clock: Callable[[], float]) -> float:
    start = clock()
    waited = action()
    if isinstance(waited, Awaitable):
        await waited
    return clock() - start


def gathered(figures: Callable[[], AsyncIterator[Figure]]) -> list[Figure]:
    """All figures of an async bench, taken within one event loop."""

    async def gather() -> list[Figure]:
        return [figure async for figure in figures()]

    return asyncio.run(gather())
