"""A batch on a real Ray cluster: the same results as on one machine, journals brought home, and nothing left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handtools.fleet.batch_runner import BatchRunner, BatchSettings
from handtools.fleet.batch_tasks import BatchFolder, BatchTask
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.fleets_for_batches import open_ray_fleet
from handtools.fleet.ray_fleet import SLOT_RESOURCE, Fleet
from handtools.local_journal import open_local_journal
from handtools.runtime.policy import Policy


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    # Room for two workspaces: the third task has to wait.
    made.add_node(num_cpus=1, resources={SLOT_RESOURCE: 2})
    try:
        yield made.address
    finally:
        made.shutdown()


async def test_a_batch_runs_on_a_cluster_with_less_room_than_tasks(
    address: str, tmp_path: Path, source: Path
) -> None:
    async def agent(toolbox: FleetToolbox, task: BatchTask, _folder: Path) -> dict[str, Any]:
        done = await toolbox.call("write", {"path": "out.txt", "content": task.id})
        return {"status": done.status, "host": toolbox.workspace_name.partition("-")[0]}

    tasks = [BatchTask(id=f"t{number}") for number in range(4)]
    settings = BatchSettings(template=str(source), score="grep -q 't[012]' out.txt", concurrency=4)
    with BatchFolder(tmp_path / "out", {}) as folder:
        async with open_ray_fleet(
            address, "b", folder=tmp_path / "nodes", policy=Policy(unattended="deny")
        ) as fleet:
            assert isinstance(fleet, Fleet)
            runner = BatchRunner(tasks, fleet=fleet, agent=agent, folder=folder, settings=settings)
            progress = await runner.run()
            assert [await client.workspace_names() for client in fleet.hosts.values()] == [[]]
        assert (progress.passed, progress.failed, progress.errors) == (3, 1, 0)
        for result in folder.results.values():
            assert (result.changed, result.calls) == (["out.txt"], 1)
            assert result.agent == {"status": "ok", "host": "h0"}
            place = tmp_path / "out" / result.journal
            journal = open_local_journal(place, place).journal
            assert {call.tool for call in journal.calls.page()} == {"write", "bash"}
            journal.close()
