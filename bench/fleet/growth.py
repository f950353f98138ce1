"""What a call costs where few and where many workspaces are, and what an idle workspace takes.

A host for each size, in a process of its own. Calls go round the hosts in turn, so that the machine's other work
falls on all of them. decision 12.
"""

import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.fleet.served_host import TOKEN
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_client import HostClient

SIZES = (10, 50, 200, 500, 1000, 2000)
QUICK_SIZES = (10, 200)
IN_USE = 100
CALLED = 10
"""Workspaces of each host that are called while it is measured; as many as the smallest has."""
ROUNDS = {"read": 40, "edit": 20, "bash": 8}
QUICK_ROUNDS = {"read": 10, "edit": 6, "bash": 3}
GOAL = 1.15
QUICK_GOAL = 1.5
"""In CI so few calls are made that chance has a share in the ratio; a cost that grows shows still."""
IDLE_GOAL_MEGABYTES = 1.5
CLOCKS = ("wall", "processor")


@dataclass(slots=True)
class Host:
    """A host of so many workspaces, and what its calls took: seconds by tool and clock."""

    size: int
    folder: Path
    process: "subprocess.Popen[str]"
    client: HostClient
    boxes: list[FleetToolbox] = field(default_factory=list)
    taken: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    async def fill(self, template: str, *, unused: int = 0) -> None:
        """Make its workspaces; all but the first so many are used once, and the last are open."""
        while len(self.boxes) < self.size:
            box = FleetToolbox(self.client, await self.client.create(template))
            self.boxes.append(box)
            if len(self.boxes) > unused:
                await _ok(box, "read", {"path": "a.txt"})

    async def measure(self, tool: str, number: int, which: int) -> None:
        """One call in one of the called workspaces."""
        began, used = time.perf_counter(), self.processor_seconds()
        await _ok(self.boxes[-1 - which], tool, _arguments(tool, number))
        self.taken.setdefault((tool, "wall"), []).append(time.perf_counter() - began)
        self.taken.setdefault((tool, "processor"), []).append(self.processor_seconds() - used)

    def processor_seconds(self) -> float:
        """What the host's process has used, all of its threads; its commands are not in it."""
        return process_seconds(self.process.pid)

    def private_bytes(self) -> int:
        """Memory of the host's process alone."""
        rows = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Private_"))

    def descriptors(self) -> int:
        """Files that the host's process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def processes(self) -> int:
        """Processes that the host started and that still run, at any depth."""
        found, waiting = 0, [self.process.pid]
        while waiting:
            with contextlib.suppress(OSError):
                pid = waiting.pop()
                for task in Path(f"/proc/{pid}/task").iterdir():
                    children = [int(each) for each in (task / "children").read_text().split()]
                    found += len(children)
                    waiting += children
        return found


def process_seconds(pid: int) -> float:
    """Processor time of another process with all of its threads, by its clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


async def rows(*, quick: bool, plot: Path | None = None) -> AsyncIterator[Figure]:
    """The rows; `plot` is where the picture goes."""
    sizes, rounds = (QUICK_SIZES, QUICK_ROUNDS) if quick else (SIZES, ROUNDS)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        source = Path(folder, "source")
        source.mkdir()
        (source / "a.txt").write_text("a\n" * 100)
        (source / "turn.txt").write_text("turn 0\n" + "b\n" * 100)
        hosts = [stack.enter_context(served(Path(folder, str(size)), size)) for size in sizes]
        for host in hosts[:-1]:
            template = await host.client.add_template("folder", str(source))
            await host.fill(template, unused=host.size - IN_USE)
        async for figure in _idle(hosts[-1], str(source)):
            yield figure
        for tool, count in rounds.items():
            for number in range(-1, count):
                for which in range(CALLED):
                    # Beside each other in time, and none always after the same one.
                    for host in random.sample(hosts, len(hosts)):
                        await host.measure(tool, number, which)
            for figure in _ratios(tool, hosts, QUICK_GOAL if quick else GOAL):
                yield figure
        for host in hosts:
            await host.client.aclose()
    if plot is not None:
        from bench.fleet.growth_plot import growth_plot

        plot.write_text(growth_plot({host.size: _medians(host) for host in hosts}))


async def _idle(host: Host, source: str) -> AsyncIterator[Figure]:
    """What a workspace takes that was used and is not any more, where others are in use."""
    template, empty = await host.client.add_template("folder", source), host.private_bytes()
    size, host.size = host.size, min(IN_USE, host.size // 2)
    await host.fill(template)
    in_use, before = host.size, (host.private_bytes(), host.descriptors(), host.processes())
    host.size = size
    await host.fill(template)
    idle = size - in_use
    after = (host.private_bytes(), host.descriptors(), host.processes())
    name = f"{size:,} workspaces, {in_use} in use"
    added = (after[0] - before[0]) / idle / 1e6
    yield Figure(name=f"{name}: memory of an idle one", value=added, unit="MB", goal=IDLE_GOAL_MEGABYTES)
    yield Figure(name=f"{name}: memory of one in use", value=(before[0] - empty) / in_use / 1e6, unit="MB")
    yield Figure(name=f"{name}: memory of the host", value=after[0] / 1e6, unit="MB")
    yield Figure(name=f"{name}: descriptors", value=after[1], unit="", baseline=before[1], goal=GOAL)
    yield Figure(name=f"{name}: processes", value=after[2], unit="")
    taken: list[float] = []
    for box in host.boxes[: min(50, idle // 2)]:
        began = time.perf_counter()
        await _ok(box, "read", {"path": "a.txt"})
        taken.append(time.perf_counter() - began)
    yield Figure(
        name=f"{name}: a read in an idle one, which is opened",
        value=statistics.median(taken) * 1000,
        unit="ms",
    )
    for box in host.boxes[-in_use:]:  # these are the open ones again
        await _ok(box, "read", {"path": "a.txt"})


def _ratios(tool: str, hosts: list[Host], goal: float) -> Iterator[Figure]:
    """Each size beside the smallest: the median over calls that were made in turn, without the first round."""
    for clock in CLOCKS:
        few = hosts[0].taken[tool, clock][CALLED:]
        baseline = statistics.median(few) * 1000
        for host in hosts[1:]:
            pairs = zip(host.taken[tool, clock][CALLED:], few, strict=True)
            ratio = statistics.median(many / ten for many, ten in pairs)
            name = f"{tool}, {host.size:,} workspaces beside {hosts[0].size}: {clock}"
            yield Figure(name=name, value=ratio * baseline, unit="ms", baseline=baseline, goal=goal)


def _medians(host: Host) -> dict[tuple[str, str], float]:
    return {key: statistics.median(taken[CALLED:]) * 1000 for key, taken in host.taken.items()}


def _arguments(tool: str, number: int) -> dict[str, Any]:
    if tool == "edit":
        words = {"old_string": f"turn {number + 1}\n", "new_string": f"turn {number + 2}\n"}
        return {"path": "turn.txt", **words}
    return {"path": "a.txt"} if tool == "read" else {"command": "true"}


async def _ok(box: FleetToolbox, tool: str, args: dict[str, Any]) -> None:
    result = await box.call(tool, args)
    assert result.status == "ok", result.text


@contextlib.contextmanager
def served(folder: Path, size: int) -> Iterator[Host]:
    """A host in a process of its own; `size` is how many workspaces it is to have."""
    folder.mkdir()
    words = [sys.executable, "-m", "bench.fleet.served_host", str(folder), str(IN_USE)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Host(size, folder, process, HostClient(process.stdout.readline().strip(), TOKEN))
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
