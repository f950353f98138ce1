"""Beside what a user would pick instead: the same jobs and edits through other tools, answers checked.

`--quick` has the edits alone, through the servers of npm. `python -m bench.peers.page FILE...` makes the tables
and plots of docs/explanation/peers.md of what was printed with `--json`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.figures import Figure
from bench.peers.edit_trials import edit_figures, try_edits
from bench.peers.job_times import measure_jobs, time_figures
from bench.peers.python_peers import LIBRARIES, MCP_SERVERS, Environments, library_servers, python_servers
from bench.peers.servers import OURS, ServerMakers, install_servers, npm_servers, npm_versions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each job (15)")
    parser.add_argument("--only", choices=("edits", "times"), help="one half")
    parser.add_argument("--cases", action="store_true", help="name every edit that is not right")
    parser.add_argument("--peer", action="append", help="only this one, and ours (may be repeated)")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    installed = install_servers()
    servers, libraries, versions = npm_servers(installed), {}, npm_versions(installed)
    if not options.quick:
        environments = Environments([*MCP_SERVERS, *LIBRARIES])
        servers |= python_servers(environments)
        libraries = library_servers(environments)
        versions |= environments.versions()
        for name, reason in environments.failed.items():
            print(f"{name} does not install: {reason}", file=sys.stderr)
    print("beside " + ", ".join(f"{name} {version}" for name, version in versions.items()), file=sys.stderr)
    wanted = {OURS, *(options.peer or versions)}
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as folder:
        # Times of other people's programs on a machine that is shared close no gate.
        if options.only != "edits" and not options.quick:
            yield from time_figures(
                measure_jobs(Path(folder, "times"), _only(servers, wanted), options.rounds)
            )
        if options.only != "times":
            peers = _only(servers | libraries, wanted)
            yield from edit_figures(try_edits(Path(folder, "edits"), peers, tell=options.cases))


def _only(makers: ServerMakers, wanted: set[str]) -> ServerMakers:
    return {name: make for name, make in makers.items() if name in wanted}
