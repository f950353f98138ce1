"""What a fleet costs: workspaces of layers, and calls over the direct connection beside bare Ray.

The rows with Ray need the environment that `.ci/fleet` makes; elsewhere they are left out, and that is said.
"""

import argparse
from collections.abc import Iterable

from bench.figures import Figure
from bench.fleet import layers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(options: argparse.Namespace) -> Iterable[Figure]:
    """The rows, cheapest first."""
    yield from layers.rows(quick=options.quick)
