"""Faults: every system call on files fails in turn during an operation; old or new, and a true sentence.

Each operation runs once to record its calls. Then it runs once for each call and each thing that can happen to
it: no room, an input/output error, an interruption, too many open files, a half of a read or write; once, or from
there on for good. Afterwards the fault is over: the tree is old or new, the answer was true, the next call works,
the operation can be made, taken back and made again, and a new process finds all in order. And the clock jumps
back at each moment at which it is read. With `--power-cut`, the power fails instead, see `power_cut`.
"""

import argparse
import contextlib
import importlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from bench.children import drained, run_child
from bench.faults.failing_syscalls import (
    ARM,
    DISARM,
    LOCKING,
    Fault,
    Observed,
    hold_calls,
    mark,
    run_with_fault,
)
from bench.faults.operations import OPERATIONS
from bench.faults.power_cut import run_power_cuts
from bench.faults.scene import Operation, Scene, Tree, judged, judged_after_restart, without_temporary
from bench.figures import Figure

QUICK_POINTS = 2
"""Points of each operation in CI, drawn anew by `--seed`."""
CLOCK = "clock"
DAY_NANOSECONDS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation without a fault: its calls, its trees, and how often it read the clock."""

    observed: Observed
    old: Tree
    new: Tree
    clock_reads: int

    def faults(self) -> list[Fault]:
        """Everything that can happen, at every call."""
        found = []
        for index, (name, _, possible) in enumerate(self.observed.calls):
            found += [Fault(index, what) for what in sorted(possible)]
            lasting = () if name in LOCKING else ("EIO", "ENOSPC")
            found += [Fault(index, what, stays=True) for what in lasting if what in possible]
        return found + [Fault(index, CLOCK) for index in range(self.clock_reads)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--operation", action="append", help="only this one (may be repeated)")
    parser.add_argument(
        "--points", type=int, help="so many of each operation, by chance (all; 2 with --quick)"
    )
    parser.add_argument("--point", help="one point, as it is told: INDEX:WHAT or INDEX:WHAT:stays")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--power-cut", action="store_true", help="only cut the power, at every point of some calls"
    )
    parser.add_argument("--told", action="store_true", help="say what every point came to")
    parser.add_argument(
        "--tried", type=Path, help="a file of points that were right: they are not run again"
    )


def run(options: argparse.Namespace) -> Iterable[Figure]:
    points = options.points or (QUICK_POINTS if options.quick else None)
    if options.power_cut or options.quick:
        yield from _cut_power(options, points)
    if options.power_cut:
        return
    chosen = [each for each in OPERATIONS if not options.operation or each.name in options.operation]
    total, wrong, seen = 0, 0, Counter[str]()
    problems: list[str]
    tried = _read_tried(options.tried)
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        for operation in chosen:
            recorded = record(operation, Path(folder))
            faults = recorded.faults()
            if options.point:
                index, what, *stays = options.point.split(":")
                faults = [Fault(int(index), what, stays=bool(stays))]
            elif points is not None:
                # More points of the same seed are the same points and more, though no two records are quite alike.
                faults.sort(key=lambda each: _drawn(options.seed, operation, each))
                faults = faults[:points]
            failures = 0
            for fault in faults:
                key = (operation.name, _point(fault))
                if key in tried:
                    happened, problems = tried[key], []
                else:
                    happened, problems = attempt(operation, recorded, fault, Path(folder))
                    if options.tried and not problems:
                        with options.tried.open("a") as file:
                            print(json.dumps([*key, happened]), file=file)
                seen[f"{fault.what}{', for good' if fault.stays else ''}"] += happened
                total += happened
                failures += bool(problems)
                _tell(operation, fault, problems, told=options.told)
            wrong += failures
            name = f"{operation.name}: wrong, of {len(faults):,} at {len(recorded.observed.calls)} calls"
            yield Figure(name=name, value=failures, unit="", goal=0)
    yield Figure(name="injection points", value=total, unit="")
    for what, count in sorted(seen.items()):
        yield Figure(name=f"injection points: {what}", value=count, unit="")
    yield Figure(name="wrong", value=wrong, unit="", goal=0)


def _cut_power(options: argparse.Namespace, points: int | None) -> Iterable[Figure]:
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        yield from run_power_cuts(
            Path(folder),
            only=options.operation or (),
            points=points,
            draw=lambda scenario, cut: random.Random(
                f"{options.seed} {scenario} {cut.point} {cut.how}"
            ).random(),
        )


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _read_tried(file: Path | None) -> dict[tuple[str, str], bool]:
    """Operation and point of each that was right, and whether its fault happened."""
    rows = map(json.loads, file.read_text().splitlines() if file and file.exists() else [])
    return {(operation, point): happened for operation, point, happened in rows}


def _point(fault: Fault) -> str:
    """A point as `--point` takes it."""
    return f"{fault.index}:{fault.what}{':stays' if fault.stays else ''}"


def _drawn(seed: int, operation: Operation, fault: Fault) -> float:
    return random.Random(f"{seed} {operation.name} {_point(fault)}").random()


def _tell(operation: Operation, fault: Fault, problems: list[str], *, told: bool) -> None:
    for problem in problems:
        print(f"WRONG {operation.name} {_point(fault)} {problem}", file=sys.stderr, flush=True)
    if told and not problems:
        print(f"      {operation.name} {_point(fault)}", file=sys.stderr, flush=True)


def record(operation: Operation, folder: Path) -> Recorded:
    """Make an operation without a fault, in a folder of its own below this one."""
    with _place(folder) as place:
        observed = run_with_fault(partial(_recorded, operation, place), os.fspath(place), None)
    if not observed.report:
        raise RuntimeError(f"{operation.name} does not work without a fault")
    said = json.loads(observed.report)
    # What a child had to import every time costs once from here on.
    for name in said["modules"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return Recorded(observed, said["old"], said["new"], said["clock"])


def _recorded(operation: Operation, place: Path) -> bytes:
    async def main() -> dict[str, object]:
        scene = Scene(place)
        await operation.prepare(scene)
        old = without_temporary(scene.tree())
        hold_calls()
        with _clock_that_jumps(None) as reads:
            mark(ARM)
            answer = await operation.act(scene, "the-call")
            mark(DISARM)
        if not answer.ok:
            raise RuntimeError(answer.text)
        new = scene.tree()
        await _close(scene)
        known = [name for name in sys.modules if name.startswith("handtools")]
        return {"old": old, "new": new, "clock": len(reads), "modules": known}

    return json.dumps(anyio.run(main)).encode()


def attempt(operation: Operation, recorded: Recorded, fault: Fault, folder: Path) -> tuple[bool, list[str]]:
    """Whether a fault happened, and what is wrong after it."""
    with _place(folder) as place:
        action = partial(_judged, operation, recorded, fault, place)
        given = None if fault.what == CLOCK else fault
        observed = run_with_fault(action, os.fspath(place), given)
        happened = bool(observed.failed) or fault.what == CLOCK
        at = f"({', '.join(observed.failed[:1])})"
        if observed.hung:
            return happened, [f"hung {at}"]
        if not observed.report:
            return happened, [f"died {at}"]
        said = json.loads(observed.report)
        problems = said["wrong"]
        if "memory" in said:
            problems += _restarted(place, said)
    return happened, [f"{problem} {at}" for problem in problems]


def _judged(operation: Operation, recorded: Recorded, fault: Fault, place: Path) -> bytes:
    async def main() -> dict[str, object]:
        scene = Scene(place)
        await operation.prepare(scene)
        hold_calls()
        with _clock_that_jumps(fault.index if fault.what == CLOCK else None):
            mark(ARM)
            answer = await operation.act(scene, "the-call")
            mark(DISARM)
        if not hasattr(scene, "box"):
            if operation.reopen is not None:
                operation.reopen(scene)
            scene.open()
        wrong = await judged(scene, operation, answer, recorded.old, recorded.new)
        memory = {name: str(value) for name, value in scene.memory.items() if name in {"root", "state"}}
        tree = scene.tree()
        await _close(scene)
        return {"wrong": wrong, "tree": tree, "memory": memory}

    return json.dumps(anyio.run(main)).encode()


async def _close(scene: Scene) -> None:
    if hasattr(scene, "box"):
        await scene.box.aclose()
    if hasattr(scene, "store"):
        scene.store.close_all()


def _restarted(place: Path, said: dict[str, object]) -> list[str]:
    """What is wrong in a new process."""
    if said["memory"]:
        return []  # the mount of a workspace of layers is gone with its process; its host opens it anew
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)

        async def main() -> list[str]:
            return await judged_after_restart(Scene(place), said["tree"])  # type: ignore[arg-type]

        run_child(lambda: os.write(tell, json.dumps(anyio.run(main)).encode()))
    os.close(tell)
    report = drained(told)
    os.waitpid(child, 0)
    return list(json.loads(report)) if report else ["a new process dies"]


@contextlib.contextmanager
def _place(folder: Path) -> Iterator[Path]:
    place = folder / "place"
    place.mkdir()
    try:
        yield place
    finally:
        mounts = [row.split(" ")[4] for row in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in reversed([each for each in mounts if each.startswith(os.fspath(place))]):
            subprocess.run(["umount", "--lazy", mount], check=False)
        shutil.rmtree(place)


@contextlib.contextmanager
def _clock_that_jumps(at: int | None) -> Iterator[list[int]]:
    """A clock that is a day earlier from its reading number `at` on; yields the readings.

    The kernel's clock can't be failed: reading it is no system call.
    """
    seconds, nanoseconds, reads = time.time, time.time_ns, list[int]()
    count = itertools.count()

    def read() -> int:
        back = at is not None and next(count) >= at
        reads.append(nanoseconds() - (DAY_NANOSECONDS if back else 0))
        return reads[-1]

    time.time, time.time_ns = lambda: read() / 1e9, read
    try:
        yield reads
    finally:
        time.time, time.time_ns = seconds, nanoseconds
