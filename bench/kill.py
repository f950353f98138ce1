"""Nasty process trees, ended by their own exit, by timeout and by cancel: nothing may survive, no call may hang.

Each tree carries a token in its command lines, by which survivors are found in /proc after the call has returned.
As an unprivileged user: `setpriv --reuid=5001 --regid=5001 --clear-groups python -m bench kill`.
"""

import argparse
import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import anyio.from_thread
import anyio.lowlevel

from bench.figures import Figure
from handtools.core.call import Call
from handtools.core.commands import Command, CommandLimits, OutputProgress
from handtools.core.web import Visit
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.launch import Runner

Ending = Literal["exit", "timeout", "cancel"]
ENDINGS: tuple[Ending, ...] = ("exit", "timeout", "cancel")
HUNG_SECONDS = 20.0
READY = "ready"

DAEMONS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        while True:
            time.sleep(60)
"""
CHASER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.002)
"""
TREES = {
    "children": "sleep {t} & sleep {t} &",
    "ignoring": "trap '' TERM HUP INT; sleep {t} & (trap '' TERM; while :; do sleep {t}; done) &",
    "session": "setsid sleep {t} & setsid nohup bash -c 'trap \"\" TERM; sleep {t}; sleep {t}' &",
    "double": "(setsid bash -c 'setsid sleep {t} & setsid sleep {t} & exit' &) ; sleep 0.05",
    "silent": "setsid sleep {t} </dev/null >/dev/null 2>&1 & disown",
    "bare": "env -i setsid sleep {t} & env -i nohup sleep {t} &",
    "stopped": "sleep {t} & kill -STOP $!; bash -c 'kill -STOP $$; sleep {t}' &",
    "daemons": "{python} -I -S -c '{daemons}' {t}",
    "chaser": "{python} -I -S -c '{chaser}' {t}",
}


@dataclass(slots=True)
class Tally:
    """What the runs came to."""

    runs: int = 0
    hung: int = 0
    seen: int = 0
    """Processes that were alive when a tree was cancelled: there must be some to kill."""
    survivors: list[str] = field(default_factory=list)
    returns: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run went."""

    milliseconds: float
    """From what ended the tree to the return of the call."""
    trees: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, help="how many runs (500; 54 with --quick)")
    parser.add_argument("--runner", default="plain", help="plain, bubblewrap …")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    runs = options.runs or (54 if options.quick else 500)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        state = Path(folder) / "state"
        commands = LocalCommands(
            root,
            state=state,
            output_blobs=FolderBlobStore(state / "outputs"),
            runner=runner_named(options.runner),
        )
        anyio.run(_all, commands, runs, tally)
    for line in tally.survivors[:20]:
        print(line, file=sys.stderr)
    yield Figure(name=f"survivors of {tally.runs} runs", value=len(tally.survivors), unit="runs", goal=0)
    yield Figure(
        name="processes alive at cancel", value=tally.seen, unit="processes", goal=1, better="higher"
    )
    yield Figure(name="hung calls", value=tally.hung, unit="calls", goal=0)
    for ending, goal in (("cancel", 300.0), ("timeout", None), ("exit", None)):
        taken = sorted(tally.returns.get(ending, ()))
        if taken:
            name = f"{ending} to return"
            yield Figure(name=f"{name}, median", value=round(taken[len(taken) // 2], 1), unit="ms")
            worst = taken[min(int(len(taken) * 0.99), len(taken) - 1)]
            yield Figure(name=f"{name}, p99", value=round(worst, 1), unit="ms", goal=goal)


def runner_named(name: str) -> Runner:
    """A runner by its name."""
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    return choose_runner(wanted=name).runner


async def _all(commands: LocalCommands, runs: int, tally: Tally) -> None:
    kinds = [(tree, ending) for tree in TREES for ending in ENDINGS]
    for number in range(runs):
        tree, ending = kinds[number % len(kinds)]
        token = f"7{secrets.randbelow(10**8):08d}"
        try:
            with anyio.fail_after(HUNG_SECONDS):
                ended = await one(commands, TREES[tree], ending, token)
            tally.returns.setdefault(ending, []).append(ended.milliseconds)
            tally.seen += ended.trees
        except TimeoutError:
            tally.hung += 1
        left = alive(token)
        if left:
            tally.survivors.append(f"{tree} ended by {ending}: {len(left)} survivors")
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        tally.runs += 1
        if tally.runs % 50 == 0:
            print(f"{tally.runs} of {runs}, {len(tally.survivors)} with survivors", file=sys.stderr)


async def one(commands: LocalCommands, tree: str, ending: Ending, token: str) -> Ended:
    """Run a tree to its end."""
    # An image has its own.
    python = "python3" if commands.runner.name == "container" else sys.executable
    script = tree.format(t=token, python=python, daemons=DAEMONS, chaser=CHASER)
    script += f"\necho {READY}\n" + ("exit 0" if ending == "exit" else f"sleep {token}")
    seconds = 0.4 if ending == "timeout" else 60.0
    command = Command(script=script, limits=CommandLimits(seconds=seconds))
    ready = anyio.Event()
    moment, trees = time.perf_counter(), 0

    def show(shown: OutputProgress | Visit) -> None:
        if isinstance(shown, OutputProgress) and READY in shown.tail:
            anyio.from_thread.run_sync(ready.set, token=loop)

    loop = anyio.lowlevel.current_token()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                nonlocal moment, trees
                await ready.wait()
                # What was forked last may not have become what it is to be.
                with anyio.move_on_after(10):
                    while not (trees := len(alive(token))):
                        await anyio.lowlevel.checkpoint()
                moment = time.perf_counter()
                scope.cancel()

            if ending == "cancel":
                group.start_soon(cancel)
            started = time.perf_counter()
            call = Call(tool="bash", args={}, session=token)
            await commands.run(command, call=call, show=show, private_globs=(), read_only_globs=())
            group.cancel_scope.cancel()
    if ending == "timeout":
        moment = started + seconds
    return Ended((time.perf_counter() - (moment if ending != "exit" else started)) * 1000, trees)


def alive(token: str) -> list[int]:
    """Processes with the token in their command line; zombies have none."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and token in Path(f"/proc/{name}/cmdline").read_text("utf-8", "replace"):
                found.append(int(name))
    return found
