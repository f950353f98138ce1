"""Beside what a user would pick instead: the same jobs and edits through other MCP servers, answers checked.

`--quick` has the edits alone.
"""

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.figures import Figure
from bench.peers.edit_trials import edit_figures
from bench.peers.job_times import time_figures
from bench.peers.servers import install_servers, versions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, help="rounds of each job (15)")
    parser.add_argument("--only", choices=("edits", "times"), help="one half")
    parser.add_argument("--cases", action="store_true", help="name every edit that is not right")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    installed = install_servers()
    if not options.json:
        print("beside " + ", ".join(f"{name} {version}" for name, version in versions(installed).items()))
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        # Times of other people's programs on a machine that is shared close no gate.
        if options.only != "edits" and not options.quick:
            yield from time_figures(Path(folder), installed, options.rounds or 15)
        if options.only != "times":
            yield from edit_figures(Path(folder), installed, tell=options.cases)
