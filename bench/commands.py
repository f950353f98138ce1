"""What a command costs: bare `bash -c` against ours, under every runner that works here."""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path

from bench.figures import Figure, gathered
from handtools.core.call import Call
from handtools.core.command import Command
from handtools.host.commands.launching import Runner
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.commands.runners.choosing import ladder
from handtools.host.store import FolderStore

SCRIPT = "true"
OVER_BARE_MS = {"plain": 10.0, "landlock": 25.0, "bubblewrap": 15.0}
"""How much longer than bare bash a command may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, help="pairs of runs (200; 30 with --quick)")
    parser.add_argument("--runner", default="", help="only this one")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    rounds = options.rounds or (30 if options.quick else 200)
    for runner in ladder():
        if options.runner in {"", runner.name} and not runner.available():
            yield from gathered(partial(_figures, runner, rounds))


async def _figures(runner: Runner, rounds: int) -> AsyncIterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder) / "work", Path(folder) / "state"
        root.mkdir()
        commands = LocalCommands(root, state=state, outputs=FolderStore(state / "outputs"), runner=runner)
        ours, bare = [], []
        for number in range(rounds + 3):
            start = time.perf_counter()
            subprocess.run(["bash", "-c", SCRIPT], cwd=root, env=dict(os.environ), check=True)
            middle = time.perf_counter()
            call = Call(tool="bash", args={})
            ran = await commands.run(
                Command(script=SCRIPT), call=call, show=lambda _: None, private=(), read_only=()
            )
            ran.discard()
            if number >= 3:  # the first ones start the supervisor
                bare.append((middle - start) * 1000)
                ours.append((time.perf_counter() - middle) * 1000)
        yield Figure(
            name=f"{runner.name}: bare bash, median", value=round(statistics.median(bare), 2), unit="ms"
        )
        yield Figure(
            name=f"{runner.name}: ours, median", value=round(statistics.median(ours), 2), unit="ms"
        )
        # A command passes from process to process: on a busy machine each step waits its turn, so the goal is
        # for the tenth that had to wait least.
        over = sorted(ours)[rounds // 10] - sorted(bare)[rounds // 10]
        goal = OVER_BARE_MS.get(runner.name)
        yield Figure(
            name=f"{runner.name}: over bare, best tenth", value=round(over, 2), unit="ms", goal=goal
        )
