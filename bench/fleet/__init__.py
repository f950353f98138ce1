"""What a fleet costs: workspaces of layers, and calls over the direct connection beside bare Ray.

The rows with Ray need the environment that `.ci/fleet` makes; elsewhere they are not run, and that is said.
"""

import argparse
import importlib.util
from collections.abc import Iterable

from bench.figures import Figure, NotRun, gathered
from bench.fleet import layers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    """The rows, cheapest first."""
    yield from layers.rows(quick=options.quick)
    if importlib.util.find_spec("ray") is None:
        yield NotRun(
            "calls on Ray",
            "Ray is not installed here. `.ci/fleet UV` makes the environment; then "
            "`.ci/fleet-environment/bin/python -m bench fleet`.",
        )
        return
    from bench.fleet import calls

    yield from gathered(lambda: calls.rows(quick=options.quick))
