"""The cost of syntax: an outline over the bare parse, and breadcrumbs for a page of hits."""

import argparse
import inspect
import statistics
import sysconfig
import time
from collections.abc import AsyncIterator, Iterable
from importlib import import_module
from pathlib import Path

from bench.figures import Figure, bound, gathered, paired
from handtools.core.syntax import enclosing_symbols
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.host.syntax.syntax_tree_queries import parse_in_worker

LIBRARY = Path(sysconfig.get_path("stdlib"))
LONG = ("argparse", "datetime", "inspect", "subprocess", "typing")
"""Long modules that are everywhere, and not ours."""
LINES = 2_000
FILES, MAX_BYTES = 50, 20_000
"""The page of hits: modules of the library again, of usual sizes. Ours change whenever modules are merged."""
HITS = 100
OVER_PARSES = bound(1.3)
"""Outlines over the bare parses, in processor time: 2026-11-16."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> Iterable[Figure]:
    return gathered(lambda: _figures(20 if options.quick else 60))


async def _figures(rounds: int) -> AsyncIterator[Figure]:
    from ast_grep_py import SgRoot

    long = [_head(inspect.getsource(import_module(name))) for name in LONG]

    def outlines() -> None:
        for text in long:
            data = text.encode()
            parse_in_worker({"files": [("python", len(data))], "wanted": "outline"}, data)

    def parses() -> None:
        for text in long:
            SgRoot(text, "python").root()

    name = f"outlines of {len(long)} files of {LINES:,} lines over the bare parses"
    # What the worker does, done here, by the time of the process: what others do on the machine is not counted.
    yield await paired(name, outlines, parses, rounds=rounds, goal=OVER_PARSES, clock=time.process_time)
    sources = sorted(((path.read_bytes(), path.name) for path in LIBRARY.glob("*.py")), key=_size)
    page = [(source, name) for source, name in sources if len(source) <= MAX_BYTES][-FILES:]
    seconds = []
    for _ in range(max(rounds // 5, 3)):
        # By the clock: most of it is spent in the worker.
        started = time.perf_counter()
        found = await TreeSyntax().outlines({path: source for source, path in page})
        for source, path in page:
            total = source.count(b"\n")
            for line in [total // 3, 2 * total // 3][: HITS // FILES]:
                outline = found[path]
                assert outline is not None
                enclosing_symbols(outline.symbols, line)
        seconds.append(time.perf_counter() - started)
    name = (
        f"breadcrumbs of {HITS} hits in {FILES} files ({sum(len(source) for source, _ in page) >> 10} kB)"
    )
    yield Figure(name=name, value=statistics.median(seconds) * 1000, unit="ms", goal=250.0)


def _size(module: tuple[bytes, str]) -> tuple[int, str]:
    return len(module[0]), module[1]


def _head(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:LINES])
