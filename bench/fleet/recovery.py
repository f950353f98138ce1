"""How long another host takes to put a workspace together from its log: after a few calls, and after many."""

import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.figures import Figure
from handtools.core.call import Call
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspaces import WorkspaceStore

FEW, MANY, MANY_IN_A_HURRY = 20, 2000, 400
FILES = 50
ROUNDS = 5


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    """Milliseconds until the first answer, in turn, and what is left of the longer log."""
    many = MANY_IN_A_HURRY if quick else MANY
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = LogStore(f"file://{folder}/log")
        first = WorkspaceHost(WorkspaceStore(Path(folder, "first")), log=log)
        source = Path(folder, "source")
        source.mkdir()
        (source / "a.txt").write_text("a\n")
        template = await first.add_template("folder", str(source))
        for calls in (FEW, many):
            await _work(first, await first.create(template, name=f"calls{calls}"), calls)
        await first.aclose()
        taken: dict[int, list[float]] = {FEW: [], many: []}
        for number in range(ROUNDS):
            for calls, times in taken.items():
                times.append(await _recovery(log, Path(folder, f"host{number}-{calls}"), f"calls{calls}"))
        objects = log.list_log_objects(f"calls{many}")
    few, long = (statistics.median(times) * 1000 for times in taken.values())
    yield Figure(name=f"recovery of a workspace with {FEW} calls", value=few, unit="ms")
    yield Figure(name=f"recovery of a workspace with {many:,} calls", value=long, unit="ms")
    yield Figure(name=f"recovery: {many:,} calls beside {FEW}", value=long / few, unit="x")
    yield Figure(name=f"segments left of {many:,}", value=len(objects.segments), unit="")


async def _work(host: WorkspaceHost, name: str, calls: int) -> None:
    for number in range(calls):
        mode = "create" if number < FILES else "overwrite"
        written = {"path": f"{number % FILES}.txt", "content": f"{number}\n", "mode": mode}
        result = await host.call(name, Call(tool="write", args=written))
        assert result.status == "ok", result.text


async def _recovery(log: LogStore, folder: Path, name: str) -> float:
    host = WorkspaceHost(WorkspaceStore(folder), log=log)
    try:
        began = time.perf_counter()
        result = await host.call(name, Call(tool="read", args={"path": "1.txt"}))
        taken = time.perf_counter() - began
        assert result.status == "ok", result.text
        return taken
    finally:
        host.store.close_all()
