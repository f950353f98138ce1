"""What a command costs: bare `bash -c` and bare `bwrap` against ours, under every runner that works here."""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.figures import Figure, NotRun, bound, gathered
from handtools import Toolbox, local_workspace
from handtools.core.call import Call
from handtools.core.commands import Command
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.capture_selection import BestCapture
from handtools.host.sandbox.change_capture import Capture
from handtools.host.sandbox.containers import container_pool
from handtools.host.sandbox.containers.docker_connection import DockerEngine
from handtools.host.sandbox.environment_variables import command_environment
from handtools.host.sandbox.launch import Launch, Runner, confined_launch
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.runner_selection import runners_by_strength
from handtools.tools.bash import bash

SCRIPT = "true"
OVER_BASH = {"plain": bound(4.3), "landlock": bound(6.9)}
"""How many times bare bash, where bubblewrap is not around it; 2026-11-16."""
OVER_BWRAP = {"ours": bound(1.93), "with transaction": bound(2.28), "the whole call": bound(2.56)}
"""How many times bare bubblewrap, with the same boundary; 2026-11-16, since a session has its own folders."""
OVER_EXEC = 1.3
"""How much longer than the docker package's own exec, in the same container."""
WARM = 3
"""The first ones start the supervisor."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, help="rounds of runs (200; 40 with --quick)")
    parser.add_argument("--runner", default="", help="only this one")


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    rounds = options.rounds or (40 if options.quick else 200)
    for runner in (*runners_by_strength(), ContainerRunner()):
        if options.runner in {"", runner.name}:
            if reason := runner.unavailable_reason():
                yield NotRun(runner.name, reason)
            else:
                yield from gathered(partial(_figures, runner, rounds))


@dataclass(slots=True)
class Timed:
    """One way to run the script, and how long it took each time."""

    action: Callable[[], Awaitable[object]]
    samples: list[float] = field(default_factory=list)

    async def take(self) -> None:
        start = time.perf_counter()
        await self.action()
        self.samples.append((time.perf_counter() - start) * 1000)

    def share(self, part: float) -> float:
        """A command passes from process to process: on a busy machine each step waits its turn, so goals are
        for the tenth that had to wait least."""
        kept = sorted(self.samples[WARM:])
        return kept[int(len(kept) * part)]


async def _figures(runner: Runner, rounds: int) -> AsyncIterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, _ways(runner, Path(os.path.realpath(folder))) as ways:
        for _ in range(rounds + WARM):
            for way in ways.values():
                await way.take()
    bare, bwrap, executed = ways["bare bash"], ways.get("bare bwrap"), ways.get("bare exec")
    for name, way in ways.items():
        yield Figure(name=f"{runner.name}: {name}, median", value=round(way.share(0.5), 2), unit="ms")
        if name.startswith("bare"):
            continue
        yield Figure(
            name=f"{runner.name}: {name} over bare bash, best tenth",
            value=round(way.share(0.1), 2),
            unit="ms",
            baseline=round(bare.share(0.1), 2),
            goal=OVER_BASH.get(runner.name),
        )
        if executed:
            ratios = sorted(
                ours / theirs
                for ours, theirs in zip(way.samples[WARM:], executed.samples[WARM:], strict=True)
            )
            yield Figure(
                name=f"{runner.name}: {name} over bare exec, median of pairs",
                value=round(ratios[len(ratios) // 2], 2),
                unit="x",
                goal=OVER_EXEC if name == "ours" else None,
            )
        if bwrap:
            yield Figure(
                name=f"{runner.name}: {name} over bare bwrap, best tenth",
                value=round(way.share(0.1) / bwrap.share(0.1), 2),
                unit="x",
                goal=OVER_BWRAP[name],
            )


@contextmanager
def _ways(runner: Runner, folder: Path) -> Iterator[dict[str, Timed]]:
    root = folder / "work"
    root.mkdir()
    ways = {
        "bare bash": Timed(partial(_bare, root)),
        "ours": Timed(partial(_ours, _commands(runner, root, folder / "plain"))),
    }
    state = folder / "state"
    captured = _commands(runner, root, state, BestCapture(root, FolderBackups(state / "vault")))
    if runner.name == "container":
        yield ways | {
            "bare exec": Timed(partial(_bare_exec, root)),
            "with transaction": Timed(partial(_ours, captured)),
        }
        captured.close()
        return
    if runner.name != "bubblewrap":
        yield ways
        return
    toolbox = Toolbox([bash], workspace=local_workspace(root, state=folder / "recorded"))
    yield ways | {
        "bare bwrap": Timed(partial(_bare_bwrap, runner, root)),
        "with transaction": Timed(partial(_ours, captured)),
        "the whole call": Timed(partial(_called, toolbox)),
    }
    toolbox.workspace.journal.close()


def _commands(runner: Runner, root: Path, state: Path, capture: Capture | None = None) -> LocalCommands:
    outputs = FolderBlobStore(state / "outputs")
    return LocalCommands(root, state=state, output_blobs=outputs, runner=runner, capture=capture)


async def _bare(root: Path) -> None:
    subprocess.run(["bash", "-c", SCRIPT], cwd=root, env=dict(os.environ), check=True)


async def _bare_bwrap(runner: Runner, root: Path) -> None:
    """Our profile without us: what bubblewrap itself takes for the same boundary."""
    env = command_environment({}, frozenset(), terminal=False)
    launch = Launch(argv=("bash", "-c", SCRIPT), env=env, cwd=str(root), root=str(root))
    with confined_launch(runner, launch) as ready:
        subprocess.run(ready.argv, env=dict(ready.env), pass_fds=ready.runner_fds, check=True)


async def _bare_exec(root: Path) -> None:
    """What the package itself takes in the container that is kept for the workspace."""
    ran = _container(root).exec_run(["bash", "-c", SCRIPT], workdir=str(root))
    if ran.exit_code:
        raise SystemExit(f"The bare exec failed: {ran.output!r}")


@cache
def _container(root: Path) -> Any:
    import docker

    address = DockerEngine().address
    client = docker.DockerClient(base_url=address)
    label = f"{container_pool.WORKSPACE_LABEL}={container_pool.workspace_label(str(root))}"
    return client.containers.list(filters={"label": label})[0]


async def _ours(commands: LocalCommands) -> None:
    command, call = Command(script=SCRIPT), Call(tool="bash", args={})
    ran = await commands.run(command, call=call, show=lambda _: None, private_globs=(), read_only_globs=())
    ran.discard()


async def _called(toolbox: Toolbox) -> None:
    result = await toolbox.call("bash", {"command": SCRIPT})
    if result.status != "ok":
        raise SystemExit(f"the call failed: {result.fault or result.content}")
