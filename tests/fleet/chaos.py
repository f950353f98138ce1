"""Nodes and hosts are killed and the store fails while workspaces work: what was answered must be there, once.

`python -m tests.fleet.chaos --nodes 4 --workspaces 500 --calls 20 --kills 20 --seed 1`, in the environment of
`.ci/fleet`. decision 39.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.ray_fleet import NAMESPACE, SLOT_RESOURCE, Fleet, HostSettings
from handtools.fleet.workspace_slots import HostLimits
from handtools.host.sandbox.overlay.overlay_mount import unmount
from handtools.runtime.policy import Policy
from tests.fleet.chaos_driver import BEGINNING, PROGRESS_NAME, TALLY_NAME, Tally
from tests.fleet.faulty_store import FaultRates, faulty_store
from tests.fleet.s3_server import s3_server

# A lost node is noticed in seconds, not in a minute.
QUICK = {
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 5,
}
STORE_BYTES = 80 << 20
PROGRESS_LOOK_SECONDS = 0.2
START_ATTEMPTS = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosPlan:
    """How much is done, and how much of it goes wrong."""

    hosts: int = 4
    workspaces: int = 500
    calls: int = 20
    kills: int = 20
    """Of whole nodes, each of which is replaced by a new one."""
    host_kills: int = 10
    driver_kills: int = 0
    seed: int = 1


class Chaos:
    """One run on a cluster whose nodes have slots, apart from its head."""

    def __init__(self, cluster: Any, folder: Path, plan: ChaosPlan) -> None:
        self._cluster, self._folder, self._plan = cluster, folder, plan
        self._dice = random.Random(plan.seed)
        self._name = f"chaos{plan.seed}"
        self._kills: Counter[str] = Counter()
        self._driver: subprocess.Popen[bytes] | None = None

    def run(self, s3_port: int, rates: FaultRates | None = None) -> Tally:
        """Do it all, in the main thread; the driver's tally with what was killed."""
        plan, began = self._plan, time.monotonic()
        _make_source(self._folder / "source")
        options = {
            "address": self._cluster.address,
            "fleet_name": self._name,
            "workspaces": plan.workspaces,
            "calls": plan.calls,
            "seed": plan.seed,
        }
        (self._folder / "options.json").write_text(json.dumps(options))
        with faulty_store(s3_port, rates or FaultRates(), plan.seed) as (store, port):
            asyncio.run(self._start_fleet(port))
            try:
                self._start_driver()
                self._kill_meanwhile()
                self._wait_for(plan.workspaces * plan.calls)
                store.is_faulty = False
                assert self._driver is not None
                assert self._driver.wait() == 0, "the driver has failed"
            finally:
                self._end_driver()
                asyncio.run(self._stop_fleet())
        tally = Tally(**json.loads((self._folder / TALLY_NAME).read_text()))
        tally.kills, tally.faults = dict(self._kills), dict(store.counts)
        tally.seconds = time.monotonic() - began
        return tally

    async def _start_fleet(self, port: int) -> None:
        fleet = await Fleet.start(self._name, self._settings(port), hosts=self._plan.hosts)
        await fleet.aclose()

    async def _stop_fleet(self) -> None:
        await Fleet.connect(self._name).stop()

    def _settings(self, port: int) -> HostSettings:
        plan = self._plan
        return HostSettings(
            folder=str(self._folder / "fleet"),
            limits=HostLimits(slots=plan.workspaces // plan.hosts + 10, turns=TurnLimits(running=8)),
            policy=Policy(defaults={"run": "allow"}),
            log_url=f"s3://fleet/{self._name}",
            log_options={
                "key": "k",
                "secret": "s",
                "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"},
                "config_kwargs": {
                    "read_timeout": 5,
                    "connect_timeout": 5,
                    "retries": {"total_max_attempts": 1},
                },
            },
        )

    def _start_driver(self) -> None:
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.fleet.chaos_driver", str(self._folder)], stdout=subprocess.DEVNULL
        )

    def _end_driver(self) -> None:
        if self._driver is not None and self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()

    def _kill_meanwhile(self) -> None:
        """Kill what the plan says, spread over the work."""
        plan = self._plan
        victims = ["node"] * plan.kills + ["host"] * plan.host_kills + ["driver"] * plan.driver_kills
        self._dice.shuffle(victims)
        total = plan.workspaces * plan.calls
        for number, victim in enumerate(victims):
            self._wait_for(total * (number + 1) // (len(victims) + 2))
            if victim == "node":
                self._cluster.replace(self._dice.choice(self._cluster.nodes))
            elif victim == "driver":
                self._end_driver()
                self._start_driver()
            elif not self._kill_host():
                continue  # it is being restarted
            self._kills[victim] += 1

    def _kill_host(self) -> bool:
        import ray

        name = f"{self._name}/h{self._dice.randrange(self._plan.hosts)}"
        try:
            actor = ray.get_actor(name, NAMESPACE)
            os.kill(ray.get(actor.pid.remote(), timeout=10), signal.SIGKILL)
        except (ray.exceptions.RayError, OSError, ValueError):
            return False
        return True

    def _wait_for(self, calls: int) -> None:
        """Wait until so many calls have answers."""
        path, never = self._folder / PROGRESS_NAME, threading.Event()
        while not path.exists() or _lines(path) < calls:
            assert self._driver is not None and self._driver.poll() is None, "the driver has ended"
            never.wait(PROGRESS_LOOK_SECONDS)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _make_source(folder: Path) -> None:
    """The template: a few files and a repository with one commit of them."""
    folder.mkdir()
    for name, content in BEGINNING.items():
        (folder / name).write_text(content)
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "chaos"],
        ["config", "user.email", "chaos@localhost"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["commit", "-q", "-m", "begin"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


class KillableCluster:
    """A real Ray cluster on this machine: a head without slots, and nodes that can be lost."""

    def __init__(self, nodes: int, slots: int) -> None:
        from ray.cluster_utils import Cluster

        self._slots = slots
        head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "_system_config": QUICK}
        self._cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes: list[Any] = []
        for _ in range(nodes):
            self._add()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def replace(self, node: Any) -> None:
        """Kill all processes of a node at once, and start another node."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)
        self._add()

    def shutdown(self) -> None:
        self._cluster.shutdown()

    def _add(self) -> None:
        node = {
            "num_cpus": 1,
            "object_store_memory": STORE_BYTES,
            "resources": {SLOT_RESOURCE: self._slots},
        }
        self.nodes.append(_patiently(lambda: self._cluster.add_node(**node)))


def _patiently(start: Callable[[], T]) -> T:
    """Start a node; Ray gives it 30 s and its agents 15 s, which is not enough on a busy machine."""
    for _ in range(START_ATTEMPTS - 1):
        try:
            return start()
        except Exception as problem:
            print(f"A node did not start: {problem}", file=sys.stderr, flush=True)
    return start()


@contextmanager
def killable_cluster(nodes: int, slots: int) -> Iterator[KillableCluster]:
    """A cluster that this process is connected to."""
    import ray

    cluster = KillableCluster(nodes, slots)
    ray.init(cluster.address, logging_level="ERROR", log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def run_folder() -> Iterator[Path]:
    """A folder for a run, removed with the mounts that killed hosts left in it."""
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        try:
            yield Path(folder)
        finally:
            for line in Path("/proc/self/mountinfo").read_text().splitlines():
                place = line.split()[4]
                if place.startswith(f"{folder}/"):
                    unmount(place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument(
        "--kill-driver", action="store_true", help="kill the driver in the middle, and resume"
    )
    for name, value in (("workspaces", 500), ("calls", 20), ("kills", 20), ("host-kills", 10), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    plan = ChaosPlan(
        hosts=options.nodes,
        workspaces=options.workspaces,
        calls=options.calls,
        kills=options.kills,
        host_kills=options.host_kills,
        driver_kills=int(options.kill_driver),
        seed=options.seed,
    )
    slots = 2 * (plan.workspaces // plan.hosts + 10)
    with (
        run_folder() as folder,
        s3_server(folder) as port,
        killable_cluster(options.nodes, slots) as cluster,
    ):
        tally = Chaos(cluster, folder, plan).run(port)
    print(tally)
    for problem in (*tally.lost, *tally.repeated, *tally.wrong):
        print(problem)
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
