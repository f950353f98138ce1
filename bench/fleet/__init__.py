"""What a fleet costs: workspaces of layers, and calls over the direct connection beside bare Ray.

The rows with Ray need the environment that `.ci/fleet` makes; elsewhere they are not run, and that is said.
"""

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.figures import Figure, NotRun, gathered
from bench.fleet import growth, layers, log_bytes, overload
from handtools.host.sandbox.overlay.overlay_mount import overlay_mount_problem

PARTS = ("layers", "growth", "overload", "calls")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="write the picture of growth to this file (SVG)")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part")


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    """The rows, cheapest first."""
    parts = options.only or PARTS
    if "layers" in parts:
        yield from layers.rows(quick=options.quick)
        yield from log_bytes.rows(quick=options.quick)
    if problem := overlay_mount_problem(tempfile.gettempdir()):
        print(f"fleet: growth and overload were NOT measured. {problem}", file=sys.stderr)
        parts = [part for part in parts if part not in {"growth", "overload"}]
    if "growth" in parts:
        yield from gathered(lambda: growth.rows(quick=options.quick, plot=options.plot))
    if "overload" in parts:
        yield from gathered(lambda: overload.rows(quick=options.quick))
    if "calls" not in parts:
        return
    if importlib.util.find_spec("ray") is None:
        yield NotRun(
            "calls on Ray",
            "Ray is not installed here. `.ci/fleet UV` makes the environment; then "
            "`.ci/fleet-environment/bin/python -m bench fleet`.",
        )
        return
    from bench.fleet import calls, recovery

    yield from gathered(lambda: recovery.rows(quick=options.quick))
    yield from gathered(lambda: calls.rows(quick=options.quick))
