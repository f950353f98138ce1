"""A command that prints without end, and a log of a million lines: flat memory, exact totals, pages of the rest.

The flood is 10 GB (400 MB with --quick), through the toolbox as an agent calls it.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from bench.figures import Figure, gathered
from bench.kill import runner_named
from handtools.core.call import Call
from handtools.core.commands import Command, CommandLimits
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

MEMORY_MB = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=int, help="how much is printed (10 GB; 400 MB with --quick)")
    parser.add_argument("--runner", default="plain")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    total = options.bytes or (400 << 20 if options.quick else 10 << 30)
    return gathered(lambda: _figures(total, options.runner))


async def _figures(total: int, runner: str) -> AsyncIterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder) / "work", Path(folder) / "state"
        root.mkdir()
        outputs = FolderBlobStore(state / "outputs")
        commands = LocalCommands(root, state=state, output_blobs=outputs, runner=runner_named(runner))
        workspace = local_workspace(root, state=state, commands=commands)
        policy = Policy(defaults=DEFAULTS | {"run": "allow"})
        async with Toolbox(CODING, workspace=workspace, policy=policy) as box:
            await box.call("bash", {"command": "seq 1 100000"})
            before, start = _peak(), time.perf_counter()
            command = Command(
                script=f"yes 'a line of output, not very long' | head -c {total}",
                limits=CommandLimits(seconds=550),
            )
            call = Call(tool="bash", args={})
            ran = await commands.run(
                command, call=call, show=lambda _: None, private_globs=(), read_only_globs=()
            )
            seconds, output = time.perf_counter() - start, ran.exit.output
            yield Figure(
                name="flood: bytes that were not counted", value=total - output.bytes, unit="bytes", goal=0
            )
            yield Figure(name="flood: memory growth", value=_peak() - before, unit="MB", goal=MEMORY_MB)
            kept = (outputs.size(output.kept) if output.kept else 0) / 2**20
            yield Figure(name="flood: kept on disk", value=round(kept), unit="MB", goal=257)
            yield Figure(name="flood: speed", value=round(total / seconds / 2**30, 2), unit="GB/s")

            start = time.perf_counter()
            result = await box.call("bash", {"command": "seq 1 1000000"})
            log = result.details.output_path
            yield Figure(name="log: a million lines", value=round(time.perf_counter() - start, 2), unit="s")
            start = time.perf_counter()
            page = await box.call("read", {"path": log, "start_line": 900_001, "limit": 100})
            yield Figure(
                name="log: lines of a page",
                value=page.text.count("\n"),
                unit="lines",
                goal=100,
                better="higher",
            )
            yield Figure(
                name="log: a page from its end", value=round((time.perf_counter() - start) * 1e3), unit="ms"
            )
            found = await box.call("grep", {"path": log, "pattern": "^999999$"})
            yield Figure(
                name="log: found by grep",
                value=len(found.details.hits),
                unit="hits",
                goal=1,
                better="higher",
            )
            yield Figure(name="both: memory growth", value=_peak() - before, unit="MB", goal=MEMORY_MB)


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
