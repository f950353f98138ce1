"""The cost of syntax: an outline over the bare parse, and breadcrumbs for a page of hits."""

import argparse
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from bench.figures import Figure, gathered, paired
from handtools.host.syntax.tree_syntax import TreeSyntax

SOURCES = Path(__file__).parents[1] / "src" / "handtools"
LINES = 2_000
FILES = 50
HITS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> Iterable[Figure]:
    return gathered(lambda: _figures(40 if options.quick else 150))


async def _figures(rounds: int) -> AsyncIterator[Figure]:
    from ast_grep_py import SgRoot

    files = sorted(SOURCES.rglob("*.py"), key=lambda path: path.stat().st_size)
    texts = [path.read_text() for path in files]
    long = _lines(texts[::-1], LINES)
    data = long.encode()
    yield await paired(
        f"outline of {LINES:,} lines over the bare parse",
        lambda: TreeSyntax().outline("a.py", data),
        # The kind, not the root: the tree is let go of on both sides while the clock runs.
        lambda: SgRoot(long, "python").root().kind(),
        rounds=rounds,
        goal=1.3,
    )
    page = [(path, text.encode()) for path, text in zip(files, texts, strict=True) if text][-FILES:]
    seconds = []
    for _ in range(max(rounds // 10, 3)):
        syntax = TreeSyntax()
        started = time.process_time()
        for path, source in page:
            total = source.count(b"\n")
            await syntax.enclosing(path.name, source, [total // 3, 2 * total // 3][: HITS // FILES])
        seconds.append(time.process_time() - started)
    name = f"breadcrumbs of {HITS} hits in {FILES} files ({sum(len(s) for _, s in page) >> 10} kB), CPU"
    yield Figure(name=name, value=statistics.median(seconds) * 1000, unit="ms", goal=250.0)


def _lines(texts: Iterable[str], count: int) -> str:
    rows: list[str] = []
    for text in texts:
        rows += text.splitlines(keepends=True)
        if len(rows) >= count:
            break
    return "".join(rows[:count])
