"""Calls to a host that Ray has placed: directly and through its actor, beside a bare actor in the same run."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Figure, bound
from bench.fleet.growth import process_seconds
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.ray_fleet import NAMESPACE, Fleet, HostSettings, RayHostClient
from handtools.fleet.workspace_slots import HostLimits
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

IN_FLIGHT = 64
DIRECT_GOAL, THROUGH_RAY_GOAL, THROUGHPUT_GOAL = 0.25, 1.2, 3.0
READ_BOUND = bound(2.5)
"""Held against its own past alone, as nobody set a goal: 2.50 on 16 November 2026, the first run of this row."""
OBJECT_STORE_BYTES = 80 << 20


class BareActor:
    """What Ray costs by itself."""

    async def noop(self, _asked: dict[str, Any]) -> bytes:
        """Nothing."""
        return b"{}"


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    """The rows, in one run; both sides in turn."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        object_store_memory=OBJECT_STORE_BYTES,
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings = HostSettings(
                folder=f"{folder}/nodes",
                limits=HostLimits(slots=10_000, open=100, turns=TurnLimits(running=32, waiting=64)),
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
    import ray

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
            # Of the clock there is no ratio: on a busy machine either waits for its turn, or neither, by chance.
            yield Figure(name=f"{tool}, direct", value=ours, unit="ms")
            yield Figure(name=f"{tool}, in process", value=in_process, unit="ms")
        read = ("read", {"path": "a.txt"})
        pid = await ray.get_actor(client.actor_name, NAMESPACE).pid.remote()
        direct = await _processor((os.getpid(), pid), partial(box.call, *read), rounds // 5)
        in_process = await _processor((os.getpid(),), partial(here.call, *read), rounds // 5)
        name = "read, direct, processor time of both ends, beside one in process"
        yield Figure(name=name, value=direct, unit="ms", baseline=in_process, goal=READ_BOUND)


async def _processor(pids: Iterable[int], action: Callable[[], Awaitable[Any]], rounds: int) -> float:
    """Milliseconds of processor time in some processes, the median; without the first rounds."""
    taken = []
    for _ in range(rounds + 5):
        began = sum(map(process_seconds, pids))
        await action()
        taken.append(sum(map(process_seconds, pids)) - began)
    return statistics.median(taken[5:]) * 1000


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
