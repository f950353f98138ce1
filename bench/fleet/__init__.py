"""What a fleet costs: workspaces of layers, and calls over the direct connection beside bare Ray.

The rows with Ray need the environment that `.ci/fleet` makes; elsewhere they are left out, and that is said.
"""

import argparse
import importlib.util
import sys
from collections.abc import Iterable

from bench.figures import Figure, gathered
from bench.fleet import layers, log_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(options: argparse.Namespace) -> Iterable[Figure]:
    """The rows, cheapest first."""
    yield from layers.rows(quick=options.quick)
    yield from log_bytes.rows(quick=options.quick)
    if importlib.util.find_spec("ray") is None:
        print(
            "fleet: Ray is not installed here, so its rows were NOT measured. `.ci/fleet UV` makes the "
            "environment; then `.ci/fleet-environment/bin/python -m bench fleet`.",
            file=sys.stderr,
        )
        return
    from bench.fleet import calls

    yield from gathered(lambda: calls.rows(quick=options.quick))
