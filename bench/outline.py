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
from handtools.host.syntax.ast_grep_syntax import TreeSyntax

LIBRARY = Path(sysconfig.get_path("stdlib"))
LONG = ("argparse", "datetime", "inspect", "subprocess", "typing")
"""Long modules that are everywhere, and not ours."""
LINES = 2_000
FILES, MOST_BYTES = 50, 20_000
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

    async def outlines() -> None:
        for text in long:
            await TreeSyntax().outline("a.py", text.encode())

    def parses() -> None:
        for text in long:
            SgRoot(text, "python").root()

    name = f"outlines of {len(long)} files of {LINES:,} lines over the bare parses"
    # The time of the process, as that of a parse is all its own: what others do on the machine is not counted.
    yield await paired(name, outlines, parses, rounds=rounds, goal=OVER_PARSES, clock=time.process_time)
    sources = sorted(((path.read_bytes(), path.name) for path in LIBRARY.glob("*.py")), key=_size)
    page = [(source, name) for source, name in sources if len(source) <= MOST_BYTES][-FILES:]
    seconds = []
    for _ in range(max(rounds // 5, 3)):
        syntax = TreeSyntax()
        started = time.process_time()
        for source, path in page:
            total = source.count(b"\n")
            await syntax.enclosing(path, source, [total // 3, 2 * total // 3][: HITS // FILES])
        seconds.append(time.process_time() - started)
    name = f"breadcrumbs of {HITS} hits in {FILES} files ({sum(len(source) for source, _ in page) >> 10} kB), CPU"
    yield Figure(name=name, value=statistics.median(seconds) * 1000, unit="ms", goal=250.0)


def _size(module: tuple[bytes, str]) -> tuple[int, str]:
    return len(module[0]), module[1]


def _head(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:LINES])
