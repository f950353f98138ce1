"""SIGKILL at random moments of a stream of edits, multi-file changes and undos; then a restart that must be whole.

Each point forks a writer, kills it, and forks a checker that opens the workspace anew. The writer says what it is
about to do before it does it, so the checker knows the only two states that each change may leave.
"""

import argparse
import json
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from bench.children import drained, run_child
from bench.figures import Figure
from handtools import Call, Change, ChangeSet, Context, Result, Toolbox, local_workspace, tool
from handtools.toolbox import CODING

NAMES = [f"folder_{n % 3}/file_{n}.txt" for n in range(6)]
LARGE = {NAMES[1], NAMES[5]}
"""Files that are moved aside and not copied, being over a mebibyte."""
LARGE_COPIES = 260
MAX_SECONDS = 0.05
Versions = dict[str, int | None]


@dataclass(slots=True)
class Outcome:
    """What one kill came to."""

    failures: list[str]
    recovered: int = 0
    midway: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=int, help="how many kills (1,000; 60 with --quick)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Iterable[Figure]:
    points = options.points or (60 if options.quick else 1000)
    chance = random.Random(options.seed)
    failures: list[str] = []
    recovered = midway = 0
    logging.getLogger("handtools").setLevel(
        logging.ERROR
    )  # a settled call is news elsewhere; here it is the point
    with tempfile.TemporaryDirectory() as folder:
        for point in range(points):
            outcome = one_point(Path(folder) / str(point % 20), chance)
            failures += outcome.failures
            recovered += outcome.recovered
            midway += outcome.midway
            _progress(point + 1, points, len(failures))
    for failure in failures[:10]:
        print(failure, file=sys.stderr)
    yield Figure(name=f"failures of {points} kills", value=len(failures), unit="failures", goal=0)
    yield Figure(name="kills in the middle of a call", value=midway, unit="kills")
    yield Figure(name="calls that the next start had to settle", value=recovered, unit="calls")


def one_point(folder: Path, chance: random.Random) -> Outcome:
    """Start a writer, kill it, check what it left."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    said, say = os.pipe()
    seed = chance.randrange(1 << 30)
    writer = os.fork()
    if not writer:
        os.close(said)
        run_child(lambda: anyio.run(_write, folder, seed, say))
    os.close(say)
    os.read(said, 6)  # "ready\n"
    time.sleep(chance.uniform(0, MAX_SECONDS))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    words = drained(said)
    told, tell = os.pipe()
    checker = os.fork()
    if not checker:
        os.close(told)
        run_child(lambda: os.write(tell, json.dumps(asdict(anyio.run(_check, folder, words))).encode()))
    os.close(tell)
    answer = drained(told)
    os.waitpid(checker, 0)
    if not answer:
        return Outcome([f"the checker died after {words!r}"])
    return Outcome(**json.loads(answer))


class ManyParams(BaseModel):
    versions: Versions


class ManyDetails(BaseModel):
    count: int


@tool
async def rewrite_many(ctx: Context, params: ManyParams) -> Result[ManyDetails]:
    """Bring several files to new versions, create or delete them, in one change."""
    changes = []
    for name, version in params.versions.items():
        facts = await ctx.files.facts(name)
        before = None if facts is None else await ctx.files.read(name)
        after = None if version is None else content(name, version)
        if before != after:
            changes.append(Change.of(name, before=before, after=after))
    await ctx.files.apply(ChangeSet(tuple(changes)))
    return Result("done", ManyDetails(count=len(changes)))


def content(name: str, version: int) -> bytes:
    """Bytes that say which version they are, all through: half a file can't pass for a whole one."""
    lines = [f"line {n} of version {version}" for n in range(200 + version % 300)]
    copies = LARGE_COPIES if name in LARGE else 1
    return "\n".join([f"{name} version {version}", *lines * copies]).encode()


def version_of(data: bytes, name: str) -> int:
    """The version that some bytes claim to be; ValueError when they are not exactly that."""
    version = int(data.split(b"\n", 1)[0].rpartition(b" ")[2])
    if data != content(name, version):
        raise ValueError(f"{name} is neither an old nor a new version")
    return version


async def _write(folder: Path, seed: int, say: int) -> None:
    chance = random.Random(seed)
    box = _box(folder)
    await box.call("think", {"thought": "the first call settles what was left"})
    now = _versions(folder)
    os.write(say, b"ready\n")
    done: list[tuple[str, Versions]] = []
    while True:
        call, after = _next(chance, now, done)
        before = {name: now.get(name) for name in after}
        os.write(say, json.dumps({"id": call.id, "before": before, "after": after}).encode() + b"\n")
        result = await box.call(call)
        if not result.ok:
            os.write(say, json.dumps({"unexpected": result.text}).encode() + b"\n")
            return
        if call.tool != "undo":
            done.append((call.id, before))
        now.update(after)


def _next(chance: random.Random, now: Versions, done: list[tuple[str, Versions]]) -> tuple[Call, Versions]:
    new = chance.randrange(1, 1 << 20)
    kind = chance.random()
    if kind < 0.2 and done:
        call_id, back = done.pop()
        return Call(tool="undo", args={"scope": "call", "name": call_id}), back
    there = [name for name in NAMES if now.get(name) is not None]
    if kind < 0.5 and there:
        name = chance.choice(there)
        old = content(name, now[name] or 0).decode()
        args = {"path": name, "old_string": old, "new_string": content(name, new).decode()}
        return Call(tool="edit", args=args), {name: new}
    names = chance.sample(NAMES, chance.randrange(2, len(NAMES)))
    after: Versions = {name: None if now.get(name) and chance.random() < 0.2 else new for name in names}
    return Call(tool="rewrite_many", args={"versions": after}), after


async def _check(folder: Path, words: bytes) -> Outcome:
    """Open the workspace anew: everything must be whole, recorded and undoable."""
    failures: list[str] = []
    box = _box(folder)
    opened = len(box.workspace.journal.entries.open())
    await box.call("think", {"thought": "the first call settles what was left"})
    said = [json.loads(line) for line in words.splitlines() if line.endswith(b"}")]
    failures += [f"unexpected: {word['unexpected']}" for word in said if "unexpected" in word]
    last = next((word for word in reversed(said) if "id" in word), None)
    left = [str(path) for path in (folder / "work").rglob(".handtools*")]
    failures += [f"left behind: {path}" for path in left]
    try:
        now = _versions(folder)
    except ValueError as half:
        return Outcome([*failures, str(half)], opened)
    if box.workspace.journal.entries.open():
        failures.append("an intent is still open")
    midway = 0
    if last is not None:
        state = {name: now.get(name) for name in last["after"]}
        logged = box.workspace.journal.calls.find(last["id"])
        midway = logged is None
        if state not in (last["before"], last["after"]):
            failures.append(f"{state} is neither {last['before']} nor {last['after']}")
        failures += await _undo_works(box, folder, last, state)
    return Outcome(failures, opened, int(midway))


async def _undo_works(box: Toolbox, folder: Path, last: dict[str, Any], state: Versions) -> list[str]:
    """What landed can be taken back and brought back; what did not has nothing to take back."""
    if last["before"] == last["after"]:
        return []
    name = {"scope": "call", "name": last["id"]}
    result = await box.call("undo", name)
    now = _versions(folder)
    if {path: now.get(path) for path in last["after"]} != last["before"]:
        return [f"undo after a kill did not bring back {last['before']}: {result.text}"]
    if state == last["before"]:
        return [] if not result.ok else ["undo undid a call that had not landed"]
    await box.call("undo", name | {"action": "redo"})
    now = _versions(folder)
    redone = {path: now.get(path) for path in last["after"]} == last["after"]
    return [] if redone else ["redo after a kill did not bring the change back"]


def _versions(folder: Path) -> Versions:
    found: Versions = {}
    for name in NAMES:
        path = folder / "work" / name
        found[name] = version_of(path.read_bytes(), name) if path.exists() else None
    return found


def _box(folder: Path) -> Toolbox:
    workspace = local_workspace(folder / "work", state=folder / "state")
    return Toolbox([*CODING, rewrite_many], workspace=workspace)


def _progress(done: int, points: int, failures: int) -> None:
    if sys.stderr.isatty() and done % 10 == 0:
        print(f"\r{done} of {points} kills, {failures} failures", end="", file=sys.stderr)
