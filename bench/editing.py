"""Edits of large files through the whole tool, over a bare read + replace + atomic write of the same file."""

import argparse
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from bench.bare import bare_edit
from bench.figures import Figure, gathered, paired
from handtools import Toolbox, local_workspace
from handtools.toolbox import CODING

LONG = "    value_{0:06d} = compute(alpha, beta={0}, gamma='text')  # a usual line of code, rather long\n"
SHORT = "value_{0:06d} = {0}\n"
SIZES = {
    "10 MB in 109,000 lines": (LONG, 109_000),
    "200,000 lines in 4.6 MB": (SHORT, 200_000),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, help="edits of each kind (30; 12 with --quick)")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    rounds = options.rounds or (12 if options.quick else 30)
    with tempfile.TemporaryDirectory() as folder:
        yield from gathered(lambda: _large(Path(folder), rounds))


async def _large(folder: Path, rounds: int) -> AsyncIterator[Figure]:
    for index, (name, (line, count)) in enumerate(SIZES.items()):
        root = folder / str(index)
        root.mkdir()
        text = "".join(line.format(n) for n in range(count))
        (root / "ours.txt").write_text(text)
        (root / "bare.txt").write_text(text)
        box = Toolbox(CODING, workspace=local_workspace(root, state=folder / f"{index}.state"))
        ours, bare = _Counter(line, count // 2), _Counter(line, count // 2)
        yield await paired(
            f"edit of {name} over read + replace + write",
            lambda: _ours(box, ours.next()),  # noqa: B023
            lambda: bare_edit(root / "bare.txt", *bare.next()),  # noqa: B023
            rounds=rounds,
            goal=1.5,
        )
        yield await paired(
            f"the same with wrong indentation, {name}",
            lambda: _ours(box, tuple(f"  {row}" for row in ours.next())),  # noqa: B023
            lambda: bare_edit(root / "bare.txt", *bare.next()),  # noqa: B023
            rounds=max(rounds // 3, 3),
            goal=None,
        )


class _Counter:
    """Edits that always apply: one line in the middle of the file goes up by one."""

    def __init__(self, line: str, number: int) -> None:
        self.row = line.format(number).rstrip("\n")
        self.word = f"value_{number:06d}"
        self.at = 0

    def next(self) -> tuple[str, ...]:
        """The line as it is, and as it is to be."""
        self.at += 1
        return self._version(self.at - 1), self._version(self.at)

    def _version(self, at: int) -> str:
        return self.row.replace(self.word, f"{self.word}_{at}") if at else self.row


async def _ours(box: Toolbox, pair: tuple[str, ...]) -> None:
    result = await box.call("edit", {"path": "ours.txt", "old_string": pair[0], "new_string": pair[1]})
    assert result.ok, result.text
