"""Hosts are killed while workspaces work: what was answered must be there, once.

`python -m tests.fleet.chaos --workspaces 500 --calls 20 --kills 20 --seed 1` in the environment of `.ci/fleet`.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handtools.core.call import Call
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import HostLimits
from handtools.fleet.ray_fleet import NAMESPACE, Fleet, HostSettings
from handtools.runtime.policy import Policy


@dataclass
class Tally:
    """What was found."""

    answered: int = 0
    unknown: int = 0
    kills: int = 0
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    _awaited: list[tuple[int, asyncio.Event]] = field(default_factory=list)

    def count(self, *, known: bool) -> None:
        """Count a call that has ended."""
        self.answered += known
        self.unknown += not known
        for wanted, reached in self._awaited:
            if self.answered + self.unknown >= wanted:
                reached.set()

    async def wait_for(self, calls: int) -> None:
        """Wait until so many calls have ended."""
        reached = asyncio.Event()
        self._awaited.append((calls, reached))
        if self.answered + self.unknown < calls:
            await reached.wait()

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.repeated or self.wrong)

    def __str__(self) -> str:
        return (
            f"{self.answered} calls answered, {self.unknown} of unknown outcome, {self.kills} kills: "
            f"{len(self.lost)} lost, {len(self.repeated)} repeated, {len(self.wrong)} wrong"
        )


class WorkspaceModel:
    """One workspace, and what must be in it: a log of numbers, one for each call, and a file for each edit."""

    def __init__(self, box: FleetToolbox, seed: int, tally: Tally) -> None:
        self.box, self.tally = box, tally
        self._random = random.Random(seed)
        self._sure: list[str] = []
        self._unsure: set[str] = set()
        self._files: dict[str, str] = {}

    async def work(self, calls: int) -> None:
        for number in range(calls):
            word = f"n{number}"
            if self._random.random() < 0.4:
                await self._write(f"{word}.txt", f"{word}\n")
            elif self._random.random() < 0.2:
                await self._answer(Call(tool="read", args={"path": "a.txt"}))
            else:
                await self._append(word)

    async def _append(self, word: str) -> None:
        result = await self._answer(Call(tool="bash", args={"command": f"echo {word} >> log.txt"}))
        if result is None:
            self._unsure.add(word)
        else:
            self._sure.append(word)

    async def _write(self, path: str, content: str) -> None:
        if await self._answer(Call(tool="write", args={"path": path, "content": content})) is not None:
            self._files[path] = content
        else:
            self._unsure.add(path)

    async def _answer(self, call: Call) -> Any:
        """The result; None if nobody knows. What was refused, or could not be stored, is sent again."""
        while True:
            result = await self.box.call(call)
            code = result.fault.code if result.fault else ""
            if code == "unknown_outcome":
                self.tally.count(known=False)
                return None
            if code not in {"busy", "storage"}:
                assert result.status == "ok", result.text
                self.tally.count(known=True)
                return result
            await asyncio.sleep(0)

    async def check(self) -> None:
        """Compare the workspace with what was answered."""
        name = self.box.workspace_name
        listed = await self._answer(Call(tool="bash", args={"command": "cat log.txt 2>/dev/null; true"}))
        found = [line for line in listed.text.splitlines() if line.startswith("n") and line[1:].isdigit()]
        self.tally.repeated += [f"{name}: {word}" for word in set(found) if found.count(word) > 1]
        self.tally.lost += [f"{name}: {word}" for word in self._sure if word not in found]
        extra = [word for word in found if word not in self._sure and word not in self._unsure]
        in_order = [word for word in found if word in self._sure] == self._sure
        if extra or not in_order:
            self.tally.wrong.append(f"{name}: {found} and not {self._sure}")
        for path, content in self._files.items():
            read = await self._answer(Call(tool="bash", args={"command": f"cat {path}"}))
            if not read.text.startswith(content):
                self.tally.lost.append(f"{name}: {path}")


async def chaos(
    folder: Path, *, hosts: int, workspaces: int, calls: int, kills: int, seed: int, log_url: str = ""
) -> Tally:
    """Run it on the Ray cluster that this process is connected to."""
    import ray

    source = folder / "source"
    source.mkdir()
    (source / "a.txt").write_text("a\n")
    settings = HostSettings(
        folder=str(folder / "fleet"),
        limits=HostLimits(slots=workspaces // hosts + 10, turns=TurnLimits(running=16)),
        policy=Policy(defaults={"run": "allow"}),
        log_url=log_url or f"file://{folder}/log",
    )
    tally, dice = Tally(), random.Random(seed)
    fleet = await Fleet.start(f"chaos{seed}", settings, hosts=hosts)
    try:
        template = await fleet.add_template("folder", str(source))
        models = [
            WorkspaceModel(await fleet.create(template), seed * 1000 + number, tally)
            for number in range(workspaces)
        ]
        working = asyncio.gather(*(model.work(calls) for model in models))
        total = workspaces * calls
        for kill in range(kills):
            # Spread over the work, wherever it is by then.
            await tally.wait_for(total * (kill + 1) // (kills + 1))
            host = dice.choice(list(fleet.hosts))
            actor = ray.get_actor(f"chaos{seed}/{host}", NAMESPACE)
            try:
                os.kill(await actor.pid.remote(), signal.SIGKILL)
            except ray.exceptions.RayError:
                continue  # it is being restarted
            tally.kills += 1
        await working
        await asyncio.gather(*(model.check() for model in models))
    finally:
        await fleet.stop()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("hosts", 4), ("workspaces", 500), ("calls", 20), ("kills", 20), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            tally = asyncio.run(chaos(Path(folder), **vars(options)))
    finally:
        ray.shutdown()
    print(tally)
    for problem in (*tally.lost, *tally.repeated, *tally.wrong):
        print(problem)
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
