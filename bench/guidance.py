"""What it costs a call to find out whether there are notes or skills about the file it has seen."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.figures import Figure
from handtools.host.files.local_files import LocalFiles
from handtools.host.skills import SkillFolders

DEEP = "a/b/c/d/x.py"
LONG_AGO = (1e9, 1e9)
SKILLS = 30
GOAL_MS = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> Iterable[Figure]:
    rounds = 300 if options.quick else 3_000
    with tempfile.TemporaryDirectory() as folder:
        yield from _figures(Path(folder), rounds)


def _figures(folder: Path, rounds: int) -> Iterator[Figure]:
    root, shelf = folder / "work", folder / "home"
    (root / DEEP).parent.mkdir(parents=True)
    (root / DEEP).write_text("x = 1\n")
    _settle(root)
    yield _figure("a file 5 folders deep, nothing to find", root, shelf, rounds, goal=GOAL_MS)
    (root / ".claude").mkdir()
    (root / "a" / "AGENTS.md").write_text("notes\n")
    _settle(root)
    yield _figure("the same with a note above and a .claude folder", root, shelf, rounds, goal=GOAL_MS)
    for number in range(SKILLS):
        page = shelf / f"s{number}" / "SKILL.md"
        page.parent.mkdir(parents=True)
        page.write_text(f"---\nname: s{number}\ndescription: d\npaths: 'src/**/*.s{number}'\n---\n")
    _settle(shelf)
    yield _figure(f"the same with {SKILLS} skills that name patterns", root, shelf, rounds, goal=None)


def _settle(folder: Path) -> None:
    """As folders are that nobody has just changed."""
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        os.utime(each, LONG_AGO)


def _figure(name: str, root: Path, shelf: Path, rounds: int, *, goal: float | None) -> Figure:
    skills = SkillFolders(LocalFiles(root), str(root), local=True, users=[shelf])
    costs = []
    for _ in range(rounds):
        started = time.perf_counter()
        skills.guides(DEEP)
        skills.skills_matching_path(DEEP)
        costs.append(time.perf_counter() - started)
    return Figure(name=name, value=round(statistics.median(costs) * 1000, 4), unit="ms", goal=goal)
