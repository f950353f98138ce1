"""A fleet on a real Ray cluster of two nodes: hosts are placed, reached directly, and come back elsewhere."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handtools.core.call import Call
from handtools.core.events import Event, Progressed
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.host import HostLimits
from handtools.fleet.ray_fleet import SLOT_RESOURCE, Fleet, HostSettings
from handtools.runtime.policy import Policy
from tests.fleet.chaos import chaos

SLOTS = 50
# A lost node is noticed in seconds, not in a minute.
QUICK = {
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 3,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    # The head has no slots: hosts go to the other nodes, which can be lost.
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": QUICK})
    made.add_node(num_cpus=1, resources={SLOT_RESOURCE: SLOTS})
    ray.init(made.address, logging_level="ERROR", log_to_driver=False)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def settings(tmp_path: Path, **more: Any) -> HostSettings:
    return HostSettings(
        folder=str(tmp_path / "nodes"),
        limits=HostLimits(slots=SLOTS // 2, turns=TurnLimits(running=64)),
        policy=Policy(defaults={"run": "allow"}),
        log_url=f"file://{tmp_path}/log",
        **more,
    )


async def test_calls_go_directly_or_through_ray_and_hosts_survive_a_lost_node(
    cluster: Any, tmp_path: Path, source: Path
) -> None:
    fleet = await Fleet.start("f", settings(tmp_path), hosts=2)
    try:
        template = await fleet.add_template("folder", str(source))
        boxes = [await fleet.create(template) for _ in range(4)]
        assert {box.workspace_name.partition("-")[0] for box in boxes} == {"h0", "h1"}
        async with boxes[0] as box:
            assert "edit" in [each.name for each in box.definitions()]
        done = [Call(tool="bash", args={"command": f"echo {n} >> log.txt"}) for n in range(len(boxes))]
        results = await asyncio.gather(*(box.call(call) for box, call in zip(boxes, done, strict=True)))
        assert [result.status for result in results] == ["ok"] * 4
        assert [client.through_ray for client in fleet.hosts.values()] == [0, 0]

        # Another driver finds the same workspaces by their names; one that can't connect asks through Ray.
        other = Fleet.connect("f", direct=False)
        seen = await other.toolbox(boxes[1].workspace_name).call("read", {"path": "log.txt"})
        assert "1" in seen.text
        assert other.client_of(boxes[1].workspace_name).through_ray == 1
        forks = await fleet.fork(boxes[0].workspace_name, 2)
        await forks[0].call("write", {"path": "fork.txt", "content": "f\n"})

        # The node is gone, all of it at once; another one comes.
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        cluster.add_node(num_cpus=1, resources={SLOT_RESOURCE: SLOTS})
        again = await asyncio.gather(*(box.call(call) for box, call in zip(boxes, done, strict=True)))
        assert [(result.status, result.text) for result in again] == [
            (result.status, result.text) for result in results
        ]
        for number, box in enumerate(boxes):
            read = await box.call("bash", {"command": "cat log.txt"})
            assert read.text.partition("\nExit")[0] == str(number)
        assert (await forks[0].call("read", {"path": "fork.txt"})).status == "ok"
    finally:
        await fleet.stop()


async def test_a_killed_host_process_loses_nothing_and_says_what_it_does_not_know(
    cluster: Any, tmp_path: Path, source: Path
) -> None:
    import ray

    fleet = await Fleet.start("k", settings(tmp_path), hosts=1)
    try:
        box = await fleet.create(await fleet.add_template("folder", str(source)))
        kept = Call(tool="bash", args={"command": "echo kept >> log.txt"})
        assert (await box.call(kept)).status == "ok"
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        lost = Call(tool="bash", args={"command": "echo begun; sleep 60; echo lost >> log.txt"})

        def listen(event: Event) -> None:
            if isinstance(event, Progressed):
                loop.call_soon_threadsafe(begun.set)

        task = asyncio.create_task(box.call(lost, listener=listen))
        await begun.wait()
        actor = ray.get_actor("k/h0", "handtools")
        os.kill(await actor.pid.remote(), signal.SIGKILL)
        assert (await task).fault.code == "unknown_outcome"
        assert (await box.call(kept)).status == "ok"
        assert "kept" in (await box.call("read", {"path": "log.txt"})).text
        assert "lost" not in (await box.call("read", {"path": "log.txt"})).text
    finally:
        await fleet.stop()


async def test_nothing_that_was_answered_is_lost_or_repeated_while_hosts_are_killed(
    cluster: Any, tmp_path: Path
) -> None:
    tally = await chaos(tmp_path, hosts=2, workspaces=8, calls=6, kills=2, seed=7)
    assert tally.is_clean, (tally.lost, tally.repeated, tally.wrong)
    assert tally.kills >= 1
