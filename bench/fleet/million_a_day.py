"""The plan for a million workspaces a day, computed from measured figures: `python -m bench.fleet.million_a_day`.

It reads `million_a_day.jsonl` beside this file, which is what `python -m bench fleet --json` printed, and writes
the table of docs/explanation/million-a-day.md.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("million_a_day.jsonl")
PAGE = Path(__file__).parents[2] / "docs/explanation/million-a-day.md"
BEGIN, END = "<!-- table: python -m bench.fleet.million_a_day -->\n", "<!-- end of the table -->\n"
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Load:
    """What is assumed, not measured: change it for your own."""

    workspaces: int = 1_000_000
    calls: int = 60
    life_minutes: int = 20
    peak: float = 4.0
    """The busiest minute beside the mean."""
    command_cpu_seconds: float = 3.0
    """CPU time of the programs that a call runs, in the mean over all calls."""
    slots: int = 400
    """Workspaces of a worker."""
    cores: int = 16
    """Of a worker."""
    retention_days: int = 30


@dataclass(frozen=True, slots=True)
class Measured:
    """The constants of the plan; None for one that the bench did not print."""

    create_ms: float | None
    disk_kb: float | None
    memory_mb: float | None
    calls_per_second: float | None
    log_kb: float | None
    puts: float | None


def measured(path: Path = FIGURES) -> Measured:
    """The constants in what the bench printed."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def value(begin: str, end: str = "") -> float | None:
        for row in rows:
            whole, _, part = row["name"].partition(": ")
            if whole.startswith(begin) and part == end:
                return float(row["value"])
        return None

    return Measured(
        create_ms=value("workspace of a template"),
        disk_kb=value("workspace of a template", "disk"),
        memory_mb=value("workspace of ", "memory"),
        calls_per_second=value("no-ops of one driver"),
        log_kb=value("log of a workspace"),
        puts=value("log of a workspace", "puts"),
    )


def table(load: Load, constants: Measured) -> str:
    """The table of the page."""
    live = load.workspaces * load.life_minutes * 60 / DAY_SECONDS
    calls = load.workspaces * load.calls / DAY_SECONDS
    cores = calls * load.command_cpu_seconds
    made = load.workspaces / DAY_SECONDS
    stored = load.workspaces / 1e9  # of kB in TB
    by_slots, by_cores = math.ceil(live / load.slots), math.ceil(cores / load.cores)
    rows = [
        ("workspaces alive at once", f"{live:,.0f}", f"{load.life_minutes} minutes each"),
        (
            "calls a second, mean and peak",
            f"{calls:,.0f} and {calls * load.peak:,.0f}",
            f"{load.calls} each",
        ),
        _row(
            "workspaces made a second, and what that takes",
            constants.create_ms,
            lambda each: (f"{made:,.1f}; {made * each / 1000:.3f} cores", f"**{each:.1f} ms** each"),
        ),
        _row(
            "memory of all that are alive",
            constants.memory_mb,
            lambda each: (f"{live * each / 1000:,.1f} GB", f"**{each:.2f} MB** each"),
        ),
        _row(
            "disk of all that are alive, before they write",
            constants.disk_kb,
            lambda each: (f"{live * each / 1e6:,.1f} GB", f"**{each:.0f} kB** each"),
        ),
        _row(
            "drivers at the peak",
            constants.calls_per_second,
            lambda each: (
                f"{math.ceil(calls * load.peak / each):,}",
                f"**{each:,.0f}** no-ops a second each",
            ),
        ),
        ("workers by slots", f"{by_slots:,}", f"{load.slots} slots each"),
        (
            "cores for commands, and workers by cores",
            f"{cores:,.0f}; {by_cores:,}",
            f"{load.command_cpu_seconds:g} s of CPU a call, {load.cores} cores a worker",
        ),
        _row(
            "puts a second to the object store, mean and peak",
            constants.puts,
            lambda each: (
                f"{made * each:,.0f} and {made * each * load.peak:,.0f}",
                f"**{each:.0f}** for each workspace",
            ),
        ),
        _row(
            f"stored a day, and in {load.retention_days} days",
            constants.log_kb,
            lambda each: (
                f"{stored * each:,.2f} TB; {stored * each * load.retention_days:,.1f} TB",
                f"**{each:,.0f} kB** for each workspace",
            ),
        ),
    ]
    lines = ["| what | how much | from |", "|---|---|---|"]
    return "".join(f"{line}\n" for line in [*lines, *(f"| {a} | {b} | {c} |" for a, b, c in rows)])


def _row(
    what: str, constant: float | None, computed: Callable[[float], tuple[str, str]]
) -> tuple[str, str, str]:
    return (what, "not measured", "") if constant is None else (what, *computed(constant))


def page() -> str:
    """The whole page with its table made anew."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table(Load(), measured())}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
