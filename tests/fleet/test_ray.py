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
from handtools.fleet.ray_fleet import Fleet, HostSettings
from handtools.fleet.workspace_slots import HostLimits
from handtools.runtime.policy import Policy
from tests.fleet.chaos import Chaos, ChaosPlan, KillableCluster, killable_cluster, run_folder

SLOTS = 50


@pytest.fixture(scope="module")
def cluster() -> Iterator[KillableCluster]:
    with killable_cluster(1, SLOTS) as made:
        yield made


def settings(tmp_path: Path, **more: Any) -> HostSettings:
    return HostSettings(
        folder=str(tmp_path / "nodes"),
        limits=HostLimits(slots=SLOTS // 2, turns=TurnLimits(running=64)),
        policy=Policy(defaults={"run": "allow"}),
        log_url=f"file://{tmp_path}/log",
        **more,
    )


async def test_calls_go_directly_or_through_ray_and_hosts_survive_a_lost_node(
    cluster: KillableCluster, tmp_path: Path, source: Path
) -> None:
    # So many tenants that the settings are more than Ray keeps with an actor in one piece.
    tenants = {f"token-{number}": f"tenant-{number}" for number in range(10_000)}
    fleet = await Fleet.start("f", settings(tmp_path, tenants=tenants), hosts=2)
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
        assert other.client_for_workspace(boxes[1].workspace_name).through_ray == 1
        forks = await fleet.fork(boxes[0].workspace_name, 2)
        await forks[0].call("write", {"path": "fork.txt", "content": "f\n"})

        # The node is gone, all of it at once; another one comes.
        cluster.replace(cluster.nodes[0])
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
    cluster: KillableCluster, tmp_path: Path, source: Path
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


def test_nothing_that_was_answered_is_lost_or_repeated_while_nodes_hosts_drivers_and_the_store_fail(
    cluster: KillableCluster, s3_port: int
) -> None:
    plan = ChaosPlan(hosts=2, workspaces=8, calls=6, kills=1, host_kills=1, driver_kills=1, seed=7)
    with run_folder() as folder:
        tally = Chaos(cluster, folder, plan).run(s3_port)
    print(tally)
    assert tally.is_clean, (tally.lost, tally.repeated, tally.wrong)
    assert tally.kills["node"] == tally.kills["driver"] == 1
    assert tally.answered + tally.unknown == plan.workspaces * plan.calls
