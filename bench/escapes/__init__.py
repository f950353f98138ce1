"""Escapes: scripts that try to get out of a sandbox, judged from outside, and ordinary work that must still go.

Every file below `attempts/`, `heldout_first/` and `heldout_second/` is an attempt; `--script FILE` runs one from
anywhere. The held-out ones were written after the profile was frozen, in two rounds: what the first found was
mended where it could be, and then the second was written.

The family `host` is of another kind: attacks on what our own process does for calls (`host/`). The family
`tenants` is all of these across two workspaces of one fleet's host (`tenants/`).
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.escapes import terminals
from bench.escapes.host import corpus
from bench.escapes.scene import Scene, scene
from bench.escapes.scripts import Script, below, load
from bench.escapes.stages import BARE, Stage, stages
from bench.escapes.tenants import corpus as tenants
from bench.figures import Figure, NotRun
from bench.ordinary_user import as_user

GOALS = {"bubblewrap": 0.88, "transaction": 1.0, "container": 0.9}
"""The share of attempts that must be stopped. What is planted in the workspace itself is for the transaction."""
ROUNDS = {
    "attempts": "attempts",
    "held-out attempts, first round,": "heldout_first",
    "held-out attempts, second round,": "heldout_second",
}
QUICK_STEP = 6
"""In CI every so manieth, under the strongest there is."""
MAX_BARE = 0.2
"""Without protection at most so few may fail, or the attempts prove nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runner", action="append", help="only this one (may be repeated)")
    parser.add_argument("--script", type=Path, help="one attempt from a file")
    parser.add_argument("--family", action="append", help="only this family")
    parser.add_argument("--attack", action="append", help="of the family host, only those that begin so")
    parser.add_argument("--user", type=int, help="run it as this user; only with --family host")
    parser.add_argument("--terminal", help=argparse.SUPPRESS)
    parser.add_argument("--told", action="store_true", help="say what every attempt came to")


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    if options.terminal:
        terminals.take(options.terminal)
    if tenants.FAMILY in (options.family or ()):
        yield from tenants.figures(options)
        return
    if options.attack or options.user or corpus.FAMILY in (options.family or ()):
        yield from _host(options)
        return
    known = stages()
    if not options.runner and "transaction" not in known:
        yield NotRun("transaction", "bubblewrap does not work here")
    wanted = options.runner or (list(known)[-1:] if options.quick else list(known))
    for name in wanted:
        if name not in known:
            raise SystemExit(f"{name} is not here; there are: {', '.join(known)}")
    for name in wanted:
        if options.script:
            yield from _one(name, known[name], load(options.script.resolve()), options)
        else:
            yield from _all(name, known[name], options)
    if not options.runner and not options.script and not options.family:
        yield from corpus.figures(options)
        yield from tenants.figures(options)


def _host(options: argparse.Namespace) -> Iterable[Figure]:
    if options.user:
        words = ["escapes", "--family", corpus.FAMILY]
        words += [word for each in options.attack or () for word in ("--attack", each)]
        words += [f"--{name}" for name in ("told", "quick", "json") if getattr(options, name)]
        if code := as_user(options.user, words):
            raise SystemExit(code)
        return
    yield from corpus.figures(options)


def _one(name: str, stage: Stage, script: Script, options: argparse.Namespace) -> Iterator[Figure]:
    """One attempt, with all that it said and did."""
    with scene() as place:
        output, verdicts = attempt(name, stage, script, place)
    if not options.json:
        sys.stdout.write(output.decode("utf-8", "replace"))
    for verdict in verdicts:
        print(f"{name}: {verdict}", file=sys.stderr)
    yield Figure(name=f"{name}: {script.title} stopped", value=float(not verdicts), unit="of 1")


def _all(name: str, stage: Stage, options: argparse.Namespace) -> Iterator[Figure]:
    families = set(options.family or ())
    if not families:
        yield from _benign(name, stage, options)
    for title, folder in ROUNDS.items():
        scripts = [each for each in below(folder) if not families or each.family in families]
        if options.quick and not options.runner:
            scripts = scripts[::QUICK_STEP]
        if scripts:
            yield from _attempts(name, stage, title, scripts, options)


def _attempts(
    name: str, stage: Stage, title: str, scripts: list[Script], options: argparse.Namespace
) -> Iterator[Figure]:
    escaped: Counter[str] = Counter()
    with scene() as place:
        for script in scripts:
            output, verdicts = attempt(name, stage, script, place)
            if verdicts:
                escaped[script.family] += 1
            if options.told:
                said = output.decode("utf-8", "replace").strip().splitlines()
                told = "; ".join(verdicts) or f"stopped: {said[-1][:100] if said else ''}"
                print(f"{name:<11} {script.title:<36} {told}", file=sys.stderr)
    stopped = len(scripts) - escaped.total()
    bare = name == BARE
    goal = MAX_BARE if bare else GOALS.get(name) if title == "attempts" else None
    yield Figure(
        name=f"{name}: {title} stopped, of {len(scripts)}",
        value=stopped,
        unit="attempts",
        goal=None if goal is None else round(goal * len(scripts)),
        better="lower" if bare else "higher",
    )
    if escaped and not bare:
        told = ", ".join(f"{family} {count}" for family, count in sorted(escaped.items()))
        print(f"{name}: got out: {told}", file=sys.stderr)


def attempt(name: str, stage: Stage, script: Script, place: Scene) -> tuple[bytes, list[str]]:
    """Run one attempt on a scene made new; gives what it printed and everything that shows it succeeded."""
    place.renew()
    if script.terminal and not os.environ.get(terminals.INSIDE):
        return terminals.attempt(name, script, place)
    with place.watched() as seen:
        _, output = stage(script, place.workspace, place.environment())
    time.sleep(script.pause)
    return output, place.verdicts(output, seen)


def _benign(name: str, stage: Stage, options: argparse.Namespace) -> Iterator[Figure]:
    """Ordinary work: it must end well and say so."""
    scripts = [each for each in below("benign") if all(map(shutil.which, each.needs))]
    if options.quick and not options.runner:
        scripts = scripts[::QUICK_STEP]
    lacking = _lacking(stage, scripts)
    without = [each.name for each in scripts if lacking.intersection(each.needs)]
    if without:
        told = f"{', '.join(without)} (no {', '.join(sorted(lacking))})"
        print(f"{name}: not tried, as the image has no program for it: {told}", file=sys.stderr)
    scripts = [each for each in scripts if each.name not in without]
    failed = []
    for script in scripts:
        with tempfile.TemporaryDirectory(prefix="benign-") as folder:
            code, output = stage(script, Path(os.path.realpath(folder)), {})
        if code != 0 or b"fine" not in output.splitlines():
            failed.append(script.name)
            if options.told:
                print(
                    f"{name}: {script.name} failed ({code}): {output[-600:].decode('utf-8', 'replace')}",
                    file=sys.stderr,
                )
    if failed:
        print(f"{name}: did not work: {', '.join(failed)}", file=sys.stderr)
    goal = None if name == "landlock" else len(scripts)
    yield Figure(
        name=f"{name}: ordinary work that goes, of {len(scripts)}",
        value=len(scripts) - len(failed),
        unit="workloads",
        goal=goal,
        better="higher",
    )


def _lacking(stage: Stage, scripts: list[Script]) -> set[str]:
    """Programs that this machine has and a stage has not: an image has its own."""
    needed = sorted({need for script in scripts for need in script.needs})
    text = "\n".join(f"command -v {need} >/dev/null || echo lacks {need}" for need in needed)
    with tempfile.TemporaryDirectory(prefix="benign-") as folder:
        asking = replace(scripts[0], text=f"#!/bin/bash\n{text}\n")
        _, output = stage(asking, Path(os.path.realpath(folder)), {})
    return {line.split()[1] for line in output.decode().splitlines() if line.startswith("lacks ")}
