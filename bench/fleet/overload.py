"""Ten times the calls that a host runs and lets wait, at once: what becomes of them, and what comes after."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.figures import Figure
from bench.fleet.growth import Host, served
from bench.fleet.served_host import RUNNING, WAITING
from handtools.fleet.fleet_toolbox import FleetToolbox

TIMES = 10
WAVES, QUICK_WAVES = 5, 1
WORKSPACES = 8
NORMAL = 1.5
"""A median is normal again when it is at most so many times what it was before."""
WINDOW = 10
MEMORY_GOAL_MEGABYTES = 100.0
RECOVERY_GOAL_SECONDS = 5.0
_READ = {"path": "a.txt"}


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    """What is lost, refused and taken; and how long until a read takes what it took before."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder, "host"), WORKSPACES) as host:
        source = Path(folder, "source")
        source.mkdir()
        (source / "a.txt").write_text("a\n" * 100)
        await host.fill(await host.client.add_template("folder", str(source)))
        async for figure in _rows(host, QUICK_WAVES if quick else WAVES):
            yield figure
        await host.client.aclose()


async def _rows(host: Host, waves: int) -> AsyncIterator[Figure]:
    box = host.boxes[0]
    before, memory = statistics.median([await _read(box) for _ in range(5 * WINDOW)]), host.private_bytes()
    sent = TIMES * (RUNNING + WAITING)
    served_calls = refused = grown = 0
    for _ in range(waves):
        boxes = [host.boxes[number % len(host.boxes)] for number in range(sent)]
        results = await asyncio.gather(*(each.call("bash", {"command": "true"}) for each in boxes))
        refused += sum(each.fault is not None and each.fault.code == "busy" for each in results)
        served_calls += sum(each.status == "ok" for each in results)
        grown = max(grown, host.private_bytes() - memory)
    ended = time.perf_counter()
    window = [await _read(box) for _ in range(WINDOW)]
    while statistics.median(window) > NORMAL * before and time.perf_counter() - ended < 60:
        window = [*window[1:], await _read(box)]
    recovered = max(0.0, time.perf_counter() - ended - sum(window))
    name = f"{waves} x {sent} calls where {RUNNING} run and {WAITING} wait"
    lost = waves * sent - served_calls - refused
    yield Figure(name=f"{name}: neither served nor refused", value=lost, unit="", goal=0)
    yield Figure(name=f"{name}: refused as busy", value=refused, unit="", goal=1, better="higher")
    yield Figure(name=f"{name}: memory", value=grown / 1e6, unit="MB", goal=MEMORY_GOAL_MEGABYTES)
    yield Figure(
        name=f"{name}: until reads are normal", value=recovered, unit="s", goal=RECOVERY_GOAL_SECONDS
    )


async def _read(box: FleetToolbox) -> float:
    began = time.perf_counter()
    result = await box.call("read", _READ)
    assert result.status == "ok", result.text
    return time.perf_counter() - began
