"""Searching over the bare thing: grep, find and list against rg and scandir, in trees of two sizes."""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from bench.figures import Figure, bound, gathered, paired
from handtools import Toolbox, local_workspace
from handtools.core.search import SearchScope
from handtools.host.search import ripgrep_process
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.tools.find import find
from handtools.tools.grep import PAGE, grep
from handtools.tools.list import list_
from handtools.tools.search.ranked_hits import RANKING_BLOCK

FILES, QUICK_FILES = 40_000, 8_000
PER_FOLDER = 20
RARE, SOME, DENSE = "rare_needle", "some_marker", "alpha"
"""Found in few files, in one of forty, and on every second line."""
PARTS = 40
"""Folders in the root of a tree, whatever its size."""
FEW_HITS = bound(1.13)
"""Few hits in a large tree, over rg on all cores: 2026-11-16."""
PARSED_AGAIN = bound(1.35)
"""2026-11-18, since files are parsed in a process of their own: 1.30 to 1.56 in four runs."""
SORTED = ("--sort", "path")
"""One core, and the only way to stop at the first hits by path."""
FIND = bound(1.11)
"""Names by a glob, over rg and the stats: 2026-11-16."""
SOME_HITS = bound(2.24)
DENSE_HITS = {RANKING_BLOCK + 1: bound(2.43), PAGE: bound(2.62)}
"""More hits than a block, over rg to so many hits: it is searched twice (decision 7), 2026-11-16."""
LISTINGS = {
    ("look into", "the root"): bound(1.47),
    ("list of", "the root"): bound(3.47),
    ("look into", "a folder of 900"): bound(1.11),
    ("list of", "a folder of 900"): bound(1.68),
    ("look into", "a folder of 8"): bound(6.26),
    ("list of", "a folder of 8"): bound(20.25),
}
"""Over scandir and the stats, in processor time: 2026-11-16."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--files", type=int, help=f"size of the tree ({FILES:,}; {QUICK_FILES:,} with --quick)"
    )


def run(options: argparse.Namespace) -> Iterable[Figure]:
    files = options.files or (QUICK_FILES if options.quick else FILES)
    rounds = 9 if options.quick else 21
    with tempfile.TemporaryDirectory() as folder:
        yield from gathered(lambda: _figures(Path(folder), files, rounds))


async def _figures(folder: Path, files: int, rounds: int) -> AsyncIterator[Figure]:
    large, small = folder / "large", folder / "small"
    grow(large, files)
    grow(small, files // 10)
    boxes = {root: _box(root, folder) for root in (large, small)}

    def ask(root: Path, tool: str, **args: object) -> Callable[[], Awaitable[object]]:
        return lambda: boxes[root].call(tool, args)

    def bare(pattern: str, hits: int, *options: str) -> Callable[[], object]:
        return lambda: _bare_grep(large, pattern, hits, *options)

    every = RANKING_BLOCK + 1

    yield await paired(
        "grep with breadcrumbs, few hits, over rg --json",
        ask(large, "grep", pattern=RARE),
        bare(RARE, every),
        rounds=rounds,
        goal=FEW_HITS,
    )
    parsing_again = _with_syntax(boxes[large], TreeSyntax(kept_bytes=0))
    yield await paired(
        "the same, nothing parsed before",
        lambda: parsing_again.call("grep", {"pattern": RARE}),
        bare(RARE, every),
        rounds=rounds,
        goal=PARSED_AGAIN,
    )
    # A workspace does not share its parser process with another one, which could have taken it over.
    yield await paired(
        "the same, with a new process for the parser",
        lambda: _with_syntax(boxes[large], TreeSyntax()).call("grep", {"pattern": RARE}),
        bare(RARE, every),
        rounds=rounds,
        goal=None,
    )
    yield await paired(
        "grep without breadcrumbs, few hits, over rg --json",
        ask(large, "grep", pattern=RARE, include="*.txt"),
        bare(RARE, every, "--type-add", "t:*.txt", "--type", "t"),
        rounds=rounds,
        goal=FEW_HITS,
    )
    yield await paired(
        "grep, hits in 1 of 40 files, over rg --json to the same hit",
        ask(large, "grep", pattern=SOME),
        bare(SOME, every, *SORTED),
        rounds=rounds,
        goal=SOME_HITS,
    )
    # A few milliseconds of rg: what is above them is the fixed cost of a call.
    for hits in (RANKING_BLOCK + 1, PAGE):
        yield await paired(
            f"grep, hits everywhere, over rg --json to hit {hits}",
            ask(large, "grep", pattern=DENSE),
            bare(DENSE, hits, *SORTED),
            rounds=rounds,
            goal=DENSE_HITS[hits],
        )
    yield await _above("grep above rg, in a tree of ten times the size", large, small, ask, rounds * 3)
    yield await paired(
        "find *.py over rg --files -g and the stats",
        ask(large, "find", pattern="*.py"),
        lambda: _bare_find(large, "*.py"),
        rounds=rounds,
        goal=FIND,
    )
    async for figure in _listings(boxes[large], large, rounds * 15):
        yield figure


async def _listings(box: Toolbox, root: Path, rounds: int) -> AsyncIterator[Figure]:
    """The look and the whole call, over what the answer needs of the disk, and over the names alone.

    In processor time, of all threads: for tenths of a millisecond the turns of a busy machine decide.
    """
    places = {"the root": ".", "a folder of 900": "wide", "a folder of 8": "few"}
    for name, path in places.items():
        scope, folder = SearchScope(root=path, hidden=True), root / path
        ours: dict[str, Callable[[], object]] = {
            "look into": lambda scope=scope: box.workspace.search.tree(  # type: ignore[misc]
                scope, depth=1, most=1000, admit=lambda paths: paths
            ),
            "list of": lambda path=path: box.call("list", {"path": path}),  # type: ignore[misc]
        }
        for what, action in ours.items():
            for over, bare, goal in (
                ("scandir and the stats", _bare_list, LISTINGS[what, name]),
                ("scandir alone", _bare_names, None),
            ):
                yield await paired(
                    f"{what} {name} over {over}",
                    action,
                    lambda bare=bare, folder=folder: bare(folder),  # type: ignore[misc]
                    rounds=rounds,
                    goal=goal,
                    clock=time.process_time,
                )


async def _above(
    name: str, large: Path, small: Path, ask: Callable[..., Callable[[], Awaitable[object]]], rounds: int
) -> Figure:
    """What grep costs beyond rg for the same page, in both trees."""
    extra: dict[Path, list[float]] = {large: [], small: []}
    for _ in range(rounds):
        for root, seconds in extra.items():
            began = time.perf_counter()
            await ask(root, "grep", pattern=DENSE)()
            ours = time.perf_counter() - began
            began = time.perf_counter()
            _bare_grep(root, DENSE, RANKING_BLOCK + 1, *SORTED)
            seconds.append(ours - (time.perf_counter() - began))
    value, baseline = (statistics.median(extra[root]) * 1000 for root in (large, small))
    return Figure(name=name, value=value, unit="ms", baseline=baseline, goal=1.5)


def _with_syntax(box: Toolbox, syntax: TreeSyntax) -> Toolbox:
    return Toolbox([grep], workspace=replace(box.workspace, syntax=syntax))


def _box(root: Path, folder: Path) -> Toolbox:
    return Toolbox(
        [grep, find, list_], workspace=local_workspace(root, state=folder / f"{root.name}.state")
    )


def _bare_grep(root: Path, pattern: str, hits: int, *options: str) -> int:
    argv = [_rg(root), "--no-config", "--json", *options, "-e", pattern, "--", "./"]
    seen = 0
    with subprocess.Popen(
        argv, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={}
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen += json.loads(line)["type"] == "match"
            if seen == hits:
                process.kill()
                break
    return seen


def _bare_find(root: Path, glob: str) -> int:
    argv = [_rg(root), "--no-config", "--files", "--null", "-g", glob]
    listed = subprocess.run(
        argv, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={}, check=True
    )
    names = listed.stdout.split(b"\0")[:-1]
    return len([os.stat(os.path.join(os.fsencode(root), name)).st_mtime for name in names])


def _bare_list(folder: Path) -> int:
    with os.scandir(folder) as scan:
        return len(sorted((not entry.is_dir(), entry.name, entry.stat().st_size) for entry in scan))


def _bare_names(folder: Path) -> int:
    with os.scandir(folder) as scan:
        return len([entry.name for entry in scan])


def _rg(root: Path) -> str:
    return ripgrep_process.find_ripgrep(root).file


def grow(root: Path, files: int) -> None:
    """A tree of source files, the same for the same number: 4 kB each, twenty in a folder."""
    chance = random.Random(7)
    words = [f"word_{number}" for number in range(3_000)]
    bodies = [_body(chance, words, number) for number in range(200)]
    for number in range(files):
        module = number // PER_FOLDER
        folder = root / f"part_{module * PARTS * PER_FOLDER // files:03}" / f"module_{module:05}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        text = bodies[number % len(bodies)]
        if number % (files // 8 // 4 * 4) in {7, 8}:  # one is a text, the other is Python
            text += f"def {RARE}(alpha):\n    return {RARE}(alpha)\n"
        if number % 40 == 3:
            text += f"# {SOME}\n"
        suffix = ("py", "ts", "go", "txt")[number % 4]
        (folder / f"file_{number:06}.{suffix}").write_text(text)
    (root / "wide").mkdir()
    for number in range(900):
        (root / "wide" / f"entry_{number}.md").write_text("x")
    for number in range(3):
        (root / "few" / f"folder_{number}").mkdir(parents=True)
    for number in range(5):
        (root / "few" / f"entry_{number}.md").write_text("x")


def _body(chance: random.Random, words: list[str], number: int) -> str:
    lines = []
    for line in range(chance.randint(30, 110)):
        if line % 12 == 0:
            lines.append(f"def {chance.choice(words)}_{number}_{line}(alpha, beta):")
        else:
            lines.append(f"    {chance.choice(words)} = {chance.choice(words)}(alpha, {line})")
    return "\n".join(lines) + "\n"
