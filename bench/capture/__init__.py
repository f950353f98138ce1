"""What capturing a command costs, and whether undo and redo bring back exactly what was there.

Costs are taken beside the same command without capture, on a small tree and on a large one. Correctness: random
scripts (files, folders, links, modes, holes, git, builds) are run, undone, redone and compared: bytes, modes,
where links point, names of the same file, empty folders, ignored files. A person's file made meanwhile must stay.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import anyio

from bench.capture.scripts import script
from bench.capture.trees import Snapshot, difference, grow, plant, snapshot
from bench.figures import Figure
from handtools import Call, Policy, Toolbox, local_workspace
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.change_capture import NoCapture
from handtools.toolbox import CODING

GOAL_MS = 50.0
REMOVED_FILES = 15_000
MAX_TIMES_BARE = 3.0
"""How much longer a command that removes so many files may take than the same outside."""
OPEN = Policy(rules=(), unattended="allow")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=int, help="files of the large tree (150,000; 15,000 with --quick)")
    parser.add_argument("--scripts", type=int, help="random scripts (300; 20 with --quick)")
    parser.add_argument("--rounds", type=int, help="of the measured command (30; 10 with --quick)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--removal", action="store_true", help="only the removal of a large folder")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    if not options.quick:
        with tempfile.TemporaryDirectory(prefix="capture-") as folder:
            yield from anyio.run(_removal, Path(folder), options.rounds or 5)
    if options.removal:
        return
    files = options.files or (15_000 if options.quick else 150_000)
    rounds = options.rounds or (10 if options.quick else 30)
    with tempfile.TemporaryDirectory(prefix="capture-") as folder:
        yield from anyio.run(_costs, Path(folder), files, rounds)
    scripts = options.scripts or (20 if options.quick else 300)
    with tempfile.TemporaryDirectory(prefix="capture-") as folder:
        checked = anyio.run(_check, Path(folder), scripts, options.seed)
    for failure in checked.failures[:10]:
        print(failure, file=sys.stderr)
    yield Figure(
        name=f"scripts of {scripts} not undone and redone exactly",
        value=len(checked.failures),
        unit="scripts",
        goal=0,
    )
    yield Figure(name="paths that were changed, undone and redone", value=checked.paths, unit="paths")
    yield Figure(name="files of a person that an undo touched", value=checked.touched, unit="files", goal=0)


async def _costs(folder: Path, files: int, rounds: int) -> list[Figure]:
    """The same `touch`, with capture and without, on two trees."""
    medians = {}
    for size in (1_000, files):
        root = folder / str(size)
        grow(root, size)
        boxes = {"captured": _box(folder, root, "captured"), "plain": _box(folder, root, "plain")}
        times: dict[str, list[float]] = {name: [] for name in boxes}
        for number in range(rounds + 3):
            for name, box in boxes.items():
                began = time.perf_counter()
                result = await box.call("bash", {"command": f"touch {name}_{number}"})
                times[name].append((time.perf_counter() - began) * 1000)
                assert result.ok, result.text
        for box in boxes.values():
            await box.aclose()
        medians[size] = {name: statistics.median(taken[3:]) for name, taken in times.items()}
    over = {size: found["captured"] - found["plain"] for size, found in medians.items()}
    return [
        Figure(
            name=f"touch, captured, {files:,} files", value=round(medians[files]["captured"], 1), unit="ms"
        ),
        Figure(
            name=f"touch, not captured, {files:,} files", value=round(medians[files]["plain"], 1), unit="ms"
        ),
        Figure(
            name=f"capture costs, {files:,} files", value=round(over[files], 1), unit="ms", goal=GOAL_MS
        ),
        Figure(name="capture costs, 1,000 files", value=round(over[1_000], 1), unit="ms", goal=GOAL_MS),
        Figure(
            name="growth with the tree", value=round(over[files] - over[1_000], 1), unit="ms", goal=10.0
        ),
    ]


async def _removal(folder: Path, rounds: int) -> list[Figure]:
    """A large folder removed by a command and brought back by undo, beside the same removal outside."""
    root, outside = folder / "root", folder / "outside"
    for tree in (root, *(outside / str(number) for number in range(rounds))):
        grow(tree / "packages", REMOVED_FILES)
    os.sync()  # a file that is still to be written is removed in another time
    before = snapshot(root)
    box = _box(folder, root, "captured")
    await box.call("bash", {"command": "true"})
    times: dict[str, list[float]] = {"captured": [], "bare": []}
    wrong = 0
    for number in range(rounds):
        began = time.perf_counter()
        subprocess.run(["bash", "-c", "rm -rf packages"], cwd=outside / str(number), check=True)
        times["bare"].append((time.perf_counter() - began) * 1000)
        call = Call(tool="bash", args={"command": "rm -rf packages"})
        began = time.perf_counter()
        await box.call(call)
        times["captured"].append((time.perf_counter() - began) * 1000)
        gone = not (root / "packages").exists()
        await box.call("undo", {"scope": "call", "name": call.id})
        wrong += not gone or bool(difference(before, snapshot(root)))
    await box.aclose()
    bare, captured = (statistics.median(times[name]) for name in ("bare", "captured"))
    what = f"removal of {REMOVED_FILES:,} files"
    return [
        Figure(name=f"{what}, bare", value=round(bare, 1), unit="ms"),
        Figure(name=f"{what}, captured", value=round(captured, 1), unit="ms"),
        Figure(
            name=f"{what}, captured", value=round(captured / bare, 2), unit="x bare", goal=MAX_TIMES_BARE
        ),
        Figure(name=f"{what}: not undone exactly, of {rounds}", value=wrong, unit="rounds", goal=0),
    ]


class Checked:
    """What the scripts came to."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.paths = self.touched = 0


async def _check(folder: Path, scripts: int, seed: int) -> Checked:
    chance = random.Random(seed)
    checked = Checked()
    for number in range(scripts):
        if number % 25 == 0:
            root = folder / f"tree_{number}"
            plant(root, chance)
            box = _box(folder, root, f"box_{number}")
        await _one(box, root, script(root, chance), chance, checked)
        if sys.stderr.isatty():
            print(
                f"\r{number + 1} of {scripts} scripts, {len(checked.failures)} failures",
                end="",
                file=sys.stderr,
            )
    return checked


async def _one(box: Toolbox, root: Path, text: str, chance: random.Random, checked: Checked) -> None:
    before = snapshot(root)
    call = Call(tool="bash", args={"command": text})
    result = await box.call(call)
    after = snapshot(root)
    if result.status not in {"ok", "error"} or (result.fault and result.fault.code == "internal"):
        checked.failures.append(f"{text!r}: {result.text}")
        return
    if before == after:
        return
    checked.paths += len(result.changes.touched) if result.changes else 0
    name = {"scope": "call", "name": call.id}
    person = _person(root, chance) if chance.random() < 0.25 else None
    undone = await box.call("undo", name)
    if person is not None:
        if not person.is_file() or person.read_text() != "mine":
            checked.touched += 1
            return
        _tidy(root, person, before)
    found = difference(before, snapshot(root), but=_above(root, person))
    if found:
        checked.failures.append(f"undo of {text!r}: {found[:5]} {undone.text[:300]}")
        return
    if person is None:
        redone = await box.call("undo", name | {"action": "redo"})
        found = difference(after, snapshot(root))
        if found:
            checked.failures.append(f"redo of {text!r}: {found[:5]} {redone.text[:300]}")


def _person(root: Path, chance: random.Random) -> Path:
    """A file that someone makes while the agent works, anywhere."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    inside = [path for path in folders if ".git" not in path.parts and path.stat().st_mode & 0o200]
    path = chance.choice(inside) / f"person_{chance.randrange(1 << 30)}"
    path.write_text("mine")
    return path


def _above(root: Path, person: Path | None) -> set[str]:
    """The folders that a person's file keeps, also from being a file again."""
    return (
        set()
        if person is None
        else {str(path.relative_to(root)) for path in person.parents if root in path.parents}
    )


def _tidy(root: Path, person: Path, before: Snapshot) -> None:
    """Take the person's file away again, and the folders that stayed only because of it."""
    person.unlink()
    folder = person.parent
    while folder != root and before.get(str(folder.relative_to(root)), ("",))[0][:3] != "0o4":
        folder.rmdir()
        folder = folder.parent


def _box(folder: Path, root: Path, name: str) -> Toolbox:
    state = folder / "state" / name
    if name != "plain":
        return Toolbox(CODING, workspace=local_workspace(root, state=state), policy=OPEN)
    shutil.rmtree(state, ignore_errors=True)
    outputs = FolderBlobStore(state / "outputs")
    commands = LocalCommands(root, state=state, output_blobs=outputs, capture=NoCapture())
    return Toolbox(CODING, workspace=local_workspace(root, state=state, commands=commands), policy=OPEN)
