"""Searching where it hurts: a log of a gigabyte, hostile globs, other hash seeds, calls taken back."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from handtools.core.call import Call
from handtools.toolbox import READING, Toolbox, local_workspace

GIGABYTE = 1 << 30
MEMORY_BYTES = 200 << 20

LARGE = """
import anyio, json, sys
from pathlib import Path
from handtools.toolbox import READING, Toolbox, local_workspace

async def main():
    box = Toolbox(READING, workspace=local_workspace(sys.argv[1], state=sys.argv[2]))
    shown = []
    for args in ({"pattern": "needle"}, {"pattern": "level=info", "limit": 3}, {"pattern": "absent"}):
        result = await box.call("grep", {"path": "big.log", **args})
        shown.append([len(result.details.hits), result.details.total, result.text[:200]])
    counted = await box.call("grep", {"pattern": "level=info", "mode": "counts"})
    # Not ru_maxrss of this process: that begins with what the one weighed that started it.
    ours = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
    print(json.dumps({"shown": shown, "counted": counted.details.total, "bytes": ours * 1024}))

anyio.run(main)
"""

SEEDED = """
import anyio, sys
from handtools.toolbox import READING, Toolbox, local_workspace

async def main():
    box = Toolbox(READING, workspace=local_workspace(sys.argv[1], state=sys.argv[2]))
    for args in ({}, {"mode": "files"}, {"kind": "call"}):
        print((await box.call("grep", {"pattern": "thing", **args})).text)
    print((await box.call("list", {"depth": 3})).text)

anyio.run(main)
"""


def python(program: str, *arguments: object, **environment: str) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_log_of_a_gigabyte_is_searched_in_little_memory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    line = b"2026-01-01T00:00:00 level=info an ordinary line of a log that says little\n"
    chunk = line * ((1 << 20) // len(line))
    with (work / "big.log").open("wb") as log:
        for _ in range(GIGABYTE // len(chunk) + 1):
            log.write(chunk)
        log.write(b"needle at the end\n")
    try:
        told = json.loads(python(LARGE, work, tmp_path / "state"))
    finally:
        (work / "big.log").unlink()
    assert told["shown"][0][:2] == [1, 1]
    assert told["shown"][1][:2] == [3, None]
    assert told["shown"][2][:2] == [0, 0]
    assert told["counted"] > 10_000_000
    assert told["bytes"] < MEMORY_BYTES


def test_the_order_of_hits_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    for number in range(12):
        folder = tmp_path / "work" / f"part_{number}" / ("tests" if number % 3 else "src")
        folder.mkdir(parents=True)
        (folder / f"file_{number}.py").write_text(
            "def thing():\n    thing()\n" if number % 2 else "thing()\n"
        )
    texts = {
        python(SEEDED, tmp_path / "work", tmp_path / f"state{seed}", PYTHONHASHSEED=seed) for seed in "0123"
    }
    assert len(texts) == 1
    assert "file_11.py" in texts.pop()


@pytest.mark.parametrize(
    "stars", ["*" * 10_000, "*" * 10_000 + ".py", "a*" * 5_000 + ".py", "**/" * 3_000 + "*.py"]
)
def test_a_glob_of_ten_thousand_stars_ends_in_time(tmp_path: Path, stars: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ("a" * 200 + ".py")).write_text("needle\n")
    box = Toolbox(READING, workspace=local_workspace(work, state=tmp_path / "state"))
    began = time.monotonic()
    for tool, args in (("find", {"pattern": stars}), ("grep", {"pattern": "needle", "include": stars})):
        result = anyio.run(lambda tool=tool, args=args: box.call(tool, args))
        assert result.ok or result.fault.code == "invalid_input", result.text
    assert time.monotonic() - began < 40
    box.workspace.journal.close()


def test_a_search_that_is_taken_back_leaves_no_process(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_bytes(b"x\n" * (100 << 20))
    box = Toolbox(READING, workspace=local_workspace(work, state=tmp_path / "state"))
    call = Call(tool="grep", args={"pattern": "(x.)+y", "multiline": True})

    async def take_back() -> str:
        statuses = []

        async def search() -> None:
            statuses.append((await box.call(call)).status)

        async with anyio.create_task_group() as group:
            group.start_soon(search)
            while not _searches():
                await anyio.sleep(0)
            assert box.cancel(call.id)
        return str(statuses[0])

    with_time = anyio.run(take_back)
    assert with_time == "cancelled"
    assert not _searches()
    box.workspace.journal.close()


def _searches() -> list[str]:
    shown = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True, check=False
    )
    return [name for name in shown.stdout.split() if name == "rg"]
