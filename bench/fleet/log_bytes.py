"""What a workspace's log takes in object storage: bytes and puts of a working agent's calls."""

import asyncio
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from handtools.core.call import Call
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy

WORKSPACES = 3
CALLS = 60
"""A third each of reads, edits and commands that write a file."""
_SOURCE_LINES = 400


def rows(*, quick: bool) -> Iterator[Figure]:
    """The rows; none without fsspec."""
    if importlib.util.find_spec("fsspec") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        size, puts = asyncio.run(_measured(Path(folder), 1 if quick else WORKSPACES))
    yield Figure(name=f"log of a workspace with {CALLS} calls", value=size / 1000, unit="kB")
    yield Figure(name=f"log of a workspace with {CALLS} calls: puts", value=puts, unit="")


async def _measured(folder: Path, workspaces: int) -> tuple[float, float]:
    from handtools.fleet.workspace_log import LogStore

    source = folder / "source"
    source.mkdir()
    text = "".join(f"value_{number} = {number}\n" for number in range(_SOURCE_LINES))
    (source / "module.py").write_text(text)
    log = LogStore(f"file://{folder}/log")
    host = WorkspaceHost(WorkspaceStore(folder / "host"), log=log, policy=Policy(defaults={"run": "allow"}))
    template = await host.add_template("folder", str(source))
    names = [await host.create(template) for _ in range(workspaces)]
    for name in names:
        for number in range(CALLS // 3):
            for call in _calls(number):
                done = await host.call(name, call)
                assert done.status == "ok", done.text
    await host.aclose()
    stored = [path for path in Path(folder, "log", "workspaces").rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in stored) / workspaces, len(stored) / workspaces


def _calls(number: int) -> list[Call]:
    changed = f"value_{number} = {number}\n"
    return [
        Call(tool="read", args={"path": "module.py"}),
        Call(
            tool="edit",
            args={"path": "module.py", "old_string": changed, "new_string": f"{changed.strip()} + 1\n"},
        ),
        Call(tool="bash", args={"command": f"wc module.py > count_{number}.txt; cat count_{number}.txt"}),
    ]
