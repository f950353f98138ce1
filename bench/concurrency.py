"""Eight processes edit the same five files while a ninth edits them by hand: nothing may be lost.

The ninth appends in place, and replaces files the way editors do (read, write beside, rename). When its own rename
overwrites lines it had not read, it says which: those are its doing and not counted.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bench.children import drained, run_child
from bench.figures import Figure
from handtools import Call, Toolbox, local_workspace
from handtools.toolbox import CODING

FILES = 5
END = "<<end>>\n"
TRIES = 2000
Report = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--edits", type=int, help="edits a process (250; 40 with --quick)")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    edits = options.edits or (40 if options.quick else 250)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "work").mkdir()
        for number in range(FILES):
            (root / "work" / f"{number}.txt").write_text(f"file {number}\n{END}")
        reports = _race(root, options.processes, edits)
        hand, agents = reports[0], reports[1:]
        lost, half = _missing(root / "work", agents, hand)
    total = options.processes * edits
    landed = sum(len(agent["done"]) for agent in agents)
    yield Figure(name=f"edits landed, of {total}", value=landed, unit="edits", goal=total, better="higher")
    yield Figure(name="edits lost", value=lost, unit="edits", goal=0)
    yield Figure(name="edits half-applied", value=half, unit="edits", goal=0)
    refused = sum(agent["refused"] for agent in agents)
    yield Figure(name="stale or busy refusals, retried with success", value=refused, unit="refusals")
    yield Figure(name="edits by hand meanwhile", value=len(hand["done"]), unit="edits")


def _race(root: Path, processes: int, edits: int) -> list[Report]:
    stop_read, stop_write = os.pipe()
    pipes = []
    for number in range(processes + 1):
        told, tell = os.pipe()
        if not os.fork():
            os.close(stop_write)
            run_child(partial(_tell, tell, root, number, edits, stop_read))
        os.close(tell)
        pipes.append(told)
    reports = [json.loads(drained(pipe)) for pipe in pipes[1:]]
    os.close(stop_write)  # the ninth goes on until every other is done
    reports.insert(0, json.loads(drained(pipes[0])))
    for _ in range(processes + 1):
        os.wait()
    os.close(stop_read)
    return reports


def _tell(pipe: int, *job: Any) -> None:
    os.write(pipe, json.dumps(_report(*job)).encode())


def _report(root: Path, number: int, edits: int, stop: int) -> Report:
    return _by_hand(root / "work", stop) if number == 0 else anyio.run(_agent, root, number, edits)


async def _agent(root: Path, number: int, edits: int) -> Report:
    box = Toolbox(CODING, workspace=local_workspace(root / "work", state=root / "state"))
    done, refused = [], 0
    for edit in range(edits):
        mark = f"agent {number} edit {edit}"
        path = f"{(edit + number) % FILES}.txt"
        new = f"begin {mark}\nfinish {mark}\n{END}"
        for attempt in range(TRIES):
            args = {"path": path, "old_string": END, "new_string": new}
            # A new agent name a try keeps the repeat guard out of a race that is meant to be retried.
            result = await box.call(Call(tool="edit", args=args, agent=f"{number}-{attempt}"))
            if result.ok:
                done.append((path, mark))
                break
            if result.fault is None or result.fault.code not in {"stale", "busy"}:
                raise RuntimeError(result.text)
            refused += 1
    return {"done": done, "refused": refused}


def _by_hand(work: Path, stop: int) -> Report:
    done: list[tuple[str, str]] = []
    overwritten: list[str] = []
    os.set_blocking(stop, False)
    while not _closed(stop):
        number = len(done)
        path = work / f"{number % FILES}.txt"
        mark = f"hand {number}"
        if number % 2:
            with path.open("a") as file:
                file.write(f"begin {mark}\n")
                file.flush()
                file.write(f"finish {mark}\n")
        else:
            overwritten += _replace(path, mark)
        done.append((path.name, mark))
        time.sleep(0.004)
    return {"done": done, "overwritten": overwritten}


def _replace(path: Path, mark: str) -> list[str]:
    """Read, write beside, rename; gives back the lines that were overwritten unread."""
    from handtools.host.files.syscalls import rename_exchange

    base = path.read_text()
    temporary = path.with_name(f"hand-{path.name}~")
    temporary.write_text(f"{base}begin {mark}\nfinish {mark}\n")
    folder = os.open(path.parent, os.O_RDONLY)
    rename_exchange(folder, temporary.name, path.name)
    os.close(folder)
    displaced = temporary.read_text()
    temporary.unlink()
    return [line for line in displaced.splitlines() if line not in base.splitlines()]


def _missing(work: Path, agents: list[Report], hand: Report) -> tuple[int, int]:
    lost = half = 0
    overwritten = set(hand["overwritten"])
    texts = {path.name: path.read_text() for path in work.glob("*.txt")}
    counts = {name: text.splitlines() for name, text in texts.items()}
    for name, mark in [pair for report in (hand, *agents) for pair in report["done"]]:
        begin, finish = f"begin {mark}", f"finish {mark}"
        if {begin, finish} & overwritten:
            continue
        found = (counts[name].count(begin), counts[name].count(finish))
        if found != (1, 1):
            print(f"{mark} in {name}: {found}", file=sys.stderr)
            lost += found == (0, 0)
            half += found != (0, 0)
        elif mark.startswith("agent") and f"{begin}\n{finish}\n" not in texts[name]:
            half += 1
    return lost, half


def _closed(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False
