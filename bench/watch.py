"""Processor time of `handtools watch` while nothing happens, without and with a call that waits for approval."""

import argparse
import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from handtools import Policy, Toolbox, local_workspace
from handtools.toolbox import CODING

SECONDS, QUICK_SECONDS = 20.0, 4.0
SETTLE_SECONDS = 2.0
CALLS = 30
GOAL = 0.5
"""In percent of a core; an empty Textual application takes 0.1."""
START_SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, help=f"how long ({SECONDS:g}; {QUICK_SECONDS:g} with --quick)"
    )


def run(options: argparse.Namespace) -> Iterable[Figure]:
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    for name, waits, shown in (
        ("idle", False, b"no approval requests"),
        ("idle, a call waits for approval", True, b"1 call needs"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_make_calls(Path(folder), waits=waits))
            with _watching(Path(folder)) as (process, terminal):
                _read_until(terminal, shown)
                _read_for(terminal, SETTLE_SECONDS)
                before = _processor_seconds(process)
                printed = _read_for(terminal, seconds)
                used = _processor_seconds(process) - before
        yield Figure(
            name=f"watch, {name}", value=round(used / seconds * 100, 2), unit="% of a core", goal=GOAL
        )
        yield Figure(name=f"watch, {name}: printed", value=printed, unit="bytes", goal=0)


async def _make_calls(folder: Path, *, waits: bool) -> None:
    os.environ["HANDTOOLS_STATE"] = str(folder / "state")
    (folder / "work").mkdir()
    workspace = local_workspace(folder / "work")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="ask")) as box:
        for number in range(CALLS):
            await box.call("write", {"path": f"{number}.txt", "content": "text\n"})
        if waits:
            await box.call("write", {"path": ".envrc", "content": "export A=1\n"})


@contextmanager
def _watching(folder: Path) -> Iterator[tuple[int, int]]:
    """Start `handtools watch` on a terminal; yields its process id and the terminal's other end."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder / "work")
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "handtools", "watch"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        yield process, terminal
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: bytes) -> None:
    seen, end = b"", time.monotonic() + START_SECONDS
    while wanted not in seen:
        if not select.select([terminal], [], [], max(end - time.monotonic(), 0))[0]:
            raise TimeoutError(f"{wanted!r} is not on the screen: {seen[-2000:]!r}")
        seen += os.read(terminal, 1 << 16)


def _read_for(terminal: int, seconds: float) -> int:
    """Read what is printed for some time; returns how many bytes that are."""
    printed, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            printed += len(os.read(terminal, 1 << 16))
    return printed


def _processor_seconds(process: int) -> float:
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
