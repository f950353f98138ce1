"""Calls to a host that Ray has placed: directly and through its actor, beside a bare actor in the same run."""

import asyncio
import secrets
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Figure
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import HostLimits
from handtools.fleet.ray_fleet import Fleet, HostSettings, RayHostClient
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

IN_FLIGHT = 64
IN_USE = 100
DIRECT_GOAL, THROUGH_RAY_GOAL, THROUGHPUT_GOAL = 0.25, 1.2, 3.0
IDLE_GOAL_MEGABYTES = 1.5
GROWTH_GOAL = 1.15
OVERLOAD = 10


class BareActor:
    """What Ray costs by itself."""

    async def noop(self, _asked: dict[str, Any]) -> bytes:
        """Nothing."""
        return b"{}"


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    """The rows, in one run; both sides in turn."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings = HostSettings(
                folder=f"{folder}/nodes",
                limits=HostLimits(slots=10_000, open=IN_USE, turns=TurnLimits(running=32, waiting=64)),
                policy=Policy(defaults={"run": "allow"}),
            )
            fleet = await Fleet.start("bench", settings, hosts=2)
            try:
                bare = ray.remote(BareActor).options(num_cpus=0, max_concurrency=1000).remote()
                async for figure in _rows(fleet, bare, folder, quick=quick):
                    yield figure
            finally:
                await fleet.stop()
    finally:
        ray.shutdown()


async def _rows(fleet: Fleet, bare: Any, folder: str, *, quick: bool) -> AsyncIterator[Figure]:
    rounds = 300 if quick else 2000
    client = fleet.hosts["h0"]
    through = RayHostClient(client.actor_name, direct=False)
    asked = {"method": "ping"}
    direct_p50, through_p50, bare_p50 = await _medians(
        rounds, client.ping, through.ping, lambda: bare.noop.remote(asked)
    )
    yield _ratio("no-op, direct", direct_p50, bare_p50, DIRECT_GOAL)
    yield _ratio("no-op, through the actor", through_p50, bare_p50, THROUGH_RAY_GOAL)
    many = rounds * 4
    fast = [await _per_second(many, client.ping) for _ in range(3)]
    theirs = [await _per_second(many, lambda: bare.noop.remote(asked)) for _ in range(3)]
    yield Figure(
        name=f"no-ops of one driver, {IN_FLIGHT} in flight",
        value=statistics.median(fast),
        unit="/s",
        baseline=statistics.median(theirs),
        goal=THROUGHPUT_GOAL,
        better="higher",
    )
    source = Path(folder, "source")
    source.mkdir()
    (source / "a.txt").write_text("a\n" * 100)
    template = await fleet.add_template("folder", str(source))
    box = await fleet.create(template)
    local = local_workspace(source, state=Path(folder, "state"))
    async with Toolbox(CODING, workspace=local, policy=Policy(defaults={"run": "allow"})) as here:
        for tool, args in (("read", {"path": "a.txt"}), ("bash", {"command": "true"})):
            ours, in_process = await _medians(
                rounds // 10, partial(box.call, tool, args), partial(here.call, tool, args)
            )
            yield Figure(
                name=f"{tool}, direct, beside one in process", value=ours, unit="ms", baseline=in_process
            )
    async for figure in _growth(fleet, template, 200 if quick else 2000):
        yield figure
    async for figure in _overload(box):
        yield figure


async def _growth(fleet: Fleet, template: str, count: int) -> AsyncIterator[Figure]:
    """Memory and time of a call where many workspaces are, some of them in use, beside a host with ten."""
    few = [await _used(fleet, "h0", template) for _ in range(10)]
    boxes = [await _used(fleet, "h1", template) for _ in range(10)]
    before = await _memory(fleet, "h1")
    while len(boxes) < count:
        boxes.append(await _used(fleet, "h1", template))
    in_use = boxes[-min(IN_USE, count // 2) :]
    await _call_cost(in_use)
    added = (await _memory(fleet, "h1") - before) / (len(boxes) - 10)
    yield Figure(
        name=f"workspace of {count:,}, {len(in_use)} in use: memory",
        value=added / 1e6,
        unit="MB",
        goal=IDLE_GOAL_MEGABYTES,
    )
    # In turn, so that the machine's other work falls on both.
    pairs = [(await _call_cost(in_use[-10:]), await _call_cost(few)) for _ in range(9)]
    ratio = statistics.median(many / ten for many, ten in pairs)
    baseline = statistics.median(ten for _, ten in pairs)
    yield _ratio(f"a read with {count:,} workspaces beside 10", ratio * baseline, baseline, GROWTH_GOAL)


async def _used(fleet: Fleet, host: str, template: str) -> FleetToolbox:
    client = fleet.hosts[host]
    box = FleetToolbox(client, await client.create(template, name=f"{host}-{secrets.token_hex(8)}"))
    result = await box.call("read", {"path": "a.txt"})
    assert result.status == "ok", result.text
    return box


async def _call_cost(boxes: list[FleetToolbox]) -> float:
    """The median of reads, each workspace in turn, when all of them are open."""
    for box in boxes:
        await box.call("read", {"path": "a.txt"})
    taken = []
    for _ in range(10):
        for box in boxes:
            began = time.perf_counter()
            await box.call("read", {"path": "a.txt"})
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


async def _overload(box: FleetToolbox) -> AsyncIterator[Figure]:
    """Ten times what may run and wait, at once: the rest is refused, and the next call is served."""
    sent = OVERLOAD * (32 + 64)
    results = await asyncio.gather(*(box.call("bash", {"command": "true"}) for _ in range(sent)))
    refused = sum(each.fault is not None and each.fault.code == "busy" for each in results)
    served = sum(each.status == "ok" for each in results)
    yield Figure(
        name=f"{sent} calls at once: neither served nor refused as busy",
        value=sent - refused - served,
        unit="",
        goal=0,
    )
    yield Figure(name=f"{sent} calls at once: refused as busy", value=refused, unit="")
    after = await box.call("read", {"path": "a.txt"})
    yield Figure(name="the next call: failed", value=int(after.status != "ok"), unit="", goal=0)


async def _memory(fleet: Fleet, host: str) -> float:
    """Bytes that the host's process holds by itself."""
    import ray

    pid = await ray.get_actor(fleet.hosts[host].actor_name, "handtools").pid.remote()
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Private_"))


async def _medians(rounds: int, *actions: Callable[[], Awaitable[Any]]) -> list[float]:
    """Medians in milliseconds, the actions in turn."""
    taken: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 20):
        for action, times in zip(actions, taken, strict=True):
            began = time.perf_counter()
            await action()
            if number >= 20:
                times.append(time.perf_counter() - began)
    return [statistics.median(times) * 1000 for times in taken]


async def _per_second(count: int, action: Callable[[], Awaitable[Any]]) -> float:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await action()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


def _ratio(name: str, value: float, baseline: float, goal: float) -> Figure:
    return Figure(name=name, value=value, unit="ms", baseline=baseline, goal=goal)
