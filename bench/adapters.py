"""What an adapter adds to a call over the same call in process, the SDK's own no-op tool taken off.

Each SDK is in an environment of its own, which `just adapters` makes; those that are there are measured, and of
the others it is said. What all adapters share is always measured: the provider's ids, content in an SDK's shapes.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any

from bench.figures import Figure, NotRun, gathered
from handtools import Toolbox, coding
from handtools.adapters.provider_calls import build_provider_call, content_parts

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".ci" / "adapter-environments"
GOAL_MILLISECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--adapter", help="measure this one only")


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    yield from gathered(lambda: _shared_part(100 if options.quick else 400))
    for name in [options.adapter] if options.adapter else _adapters():
        if (ENVIRONMENTS / name).is_dir():
            yield from _measured(name, quick=options.quick)
        else:
            yield NotRun(
                name, f"its SDK is not installed here: `.ci/adapters UV {name}` makes the environment."
            )


def _adapters() -> list[str]:
    """The adapters whose driver can be measured."""
    drivers = sorted((ROOT / "tests" / "adapters").glob("driver_*.py"))
    return [
        driver.stem.removeprefix("driver_")
        for driver in drivers
        if "def run_own" in driver.read_text("utf-8")
    ]


async def _shared_part(rounds: int) -> AsyncIterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with coding(folder) as box:
            added = []
            for number in range(rounds):
                plain = await _seconds(box.call("now", {}))
                ours = await _seconds(_provider_call(box, f"call_{number}"))
                added.append(ours - plain)
            yield Figure(
                name="shared by all adapters: added per call",
                value=statistics.median(added) * 1000,
                unit="ms",
                goal=GOAL_MILLISECONDS,
            )


async def _provider_call(box: Toolbox, known: str) -> list[Any]:
    result = await box.call(build_provider_call("now", {}, known, "bench"))
    return content_parts(result, str, str, str)


async def _seconds(call: Coroutine[Any, Any, Any]) -> float:
    began = time.perf_counter()
    await call
    return time.perf_counter() - began


def _measured(name: str, *, quick: bool) -> Iterable[Figure]:
    rounds = 7 if quick else 31
    told = subprocess.run(
        [str(ENVIRONMENTS / name / "bin" / "python"), "-m", "tests.adapters.call_cost", str(rounds)],
        cwd=ROOT,
        env=os.environ | {"HANDTOOLS_ADAPTER": name, "LANGSMITH_TRACING": "false"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(told.stdout)
    # What a busy machine gives to others is no cost of ours: the quick run holds the processor's clock only.
    yield Figure(
        name=f"{name}: added per call, processor time",
        value=found["processor_milliseconds"],
        unit="ms",
        goal=GOAL_MILLISECONDS,
    )
    yield Figure(
        name=f"{name}: added per call",
        value=found["milliseconds"],
        unit="ms",
        goal=None if quick else GOAL_MILLISECONDS,
    )
    yield Figure(name=f"{name}: definitions built again", value=found["definitions_again"], unit="", goal=0)
