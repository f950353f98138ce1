"""The cost of one call over the bare thing: edit, read, and a journal of a million entries."""

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from bench.bare import bare_edit
from bench.figures import Figure, bound, gathered, paired
from handtools import Call, Toolbox, local_workspace
from handtools.toolbox import CODING

EDIT = bound(4.1)
"""2026-11-15, where the disk is quick; where it is slow both wait for it and the ratio is less."""
EDIT_PROCESSOR = bound(6.0)
"""Measured on 2026-11-18: an edit now also asks which files git's settings name (5.7 before)."""
READ_TIMES_BARE = bound(2.5)
"""2026-11-16, when numbers lost their padding: the bare side takes 0.7 ms for them and no longer 1.1."""
LINE = "    value_{0:05d} = compute(alpha, beta={0}, gamma='text')  # a usual line of code\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entries", type=int, help="size of the large journal (1,000,000; 50,000 with --quick)"
    )


def run(options: argparse.Namespace) -> Iterable[Figure]:
    rounds = 60 if options.quick else 200
    entries = options.entries or (50_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        yield from gathered(lambda: _calls(Path(folder), rounds))
        yield from gathered(lambda: _journal(Path(folder), rounds, entries))


async def _calls(folder: Path, rounds: int) -> AsyncIterator[Figure]:
    box = _box(folder / "calls")
    root = folder / "calls"
    (root / "large.py").write_text("".join(LINE.format(n) for n in range(1600)))
    (root / "bare.py").write_text((root / "large.py").read_text())
    (root / "lines.py").write_text("".join(f"value_{n} = {n}\n" for n in range(2000)))
    ours, bare = Toggle(), Toggle()
    yield await paired(
        "edit of a 120 kB file over read + replace + atomic write + fsync",
        lambda: box.call("edit", {"path": "large.py"} | ours.arguments()),
        lambda: bare_edit(root / "bare.py", **bare.arguments()),
        rounds=rounds,
        goal=EDIT,
    )
    yield await paired(
        "the same in processor time, of all threads",
        lambda: box.call("edit", {"path": "large.py"} | ours.arguments()),
        lambda: bare_edit(root / "bare.py", **bare.arguments()),
        rounds=rounds,
        goal=EDIT_PROCESSOR,
        clock=time.process_time,
    )
    yield await paired(
        "read of 2,000 lines over open + read + number the lines",
        lambda: box.call("read", {"path": "lines.py"}),
        lambda: _bare_read(root / "lines.py"),
        rounds=rounds * 3,
        goal=READ_TIMES_BARE,
    )


async def _journal(folder: Path, rounds: int, entries: int) -> AsyncIterator[Figure]:
    small, large = _box(folder / "small"), _box(folder / "large")
    for name, box in (("small", small), ("large", large)):
        (folder / name / "f.txt").write_text("state 0\n")
        box.workspace.journal.calls.page()
    fill(large.workspace.journal.path, entries)
    small_toggle, large_toggle = Toggle("state"), Toggle("state")
    yield await paired(
        f"append to a journal of {entries:,} entries over an empty one",
        lambda: large.call("edit", {"path": "f.txt"} | large_toggle.arguments()),
        lambda: small.call("edit", {"path": "f.txt"} | small_toggle.arguments()),
        rounds=rounds,
        goal=1.2,
    )
    calls = large.workspace.journal.calls
    yield _median(f"first page of the log of {entries:,}", calls.page, goal=50.0)

    async def undo() -> None:
        call = Call(tool="edit", args={"path": "f.txt"} | large_toggle.arguments())
        await large.call(call)
        started = time.perf_counter()
        await large.call("undo", {"scope": "call", "name": call.id})
        undos.append((time.perf_counter() - started) * 1000)
        large_toggle.back()

    undos: list[float] = []
    for _ in range(20):
        await undo()
    value = statistics.median(undos)
    yield Figure(name=f"undo in a journal of {entries:,}", value=value, unit="ms", goal=50.0)


class Toggle:
    """Edits that always apply: a word goes up by one."""

    def __init__(self, word: str = "value_00500 = compute(alpha, beta=") -> None:
        self.word = word
        self.at = 0 if word == "state" else 500

    def arguments(self) -> dict[str, str]:
        space = " " if self.word == "state" else ""
        old = f"{self.word}{space}{self.at}"
        self.at += 1
        return {"old_string": old, "new_string": f"{self.word}{space}{self.at}"}

    def back(self) -> None:
        self.at -= 1


def _bare_read(path: Path) -> str:
    with path.open() as file:
        return "".join(f"{number}\t{line}" for number, line in enumerate(file, 1))


def fill(path: str, entries: int) -> None:
    """A journal as a million calls would leave it, written straight into the tables."""
    with sqlite3.connect(path) as connection:
        result = b"=" + b"{}" * 100
        connection.executemany(
            "INSERT INTO calls "
            "(id, session, turn, agent, parent, tool, args, started, ended, status, code, result) "
            "VALUES (?, 's', ?, '', '', 'edit', ?, 0, 0, 'ok', '', ?)",
            ((os.urandom(16).hex(), str(n // 20), '{"path": "src/a.py"}', result) for n in range(entries)),
        )
        connection.execute(
            "INSERT INTO entries (call_id, ordinal, session, turn, kind, state, coverage, fingerprint, note, at) "
            "SELECT id, 0, session, turn, 'change', 'done', 'declared', '', '', 0 FROM calls"
        )
        connection.execute(
            "INSERT INTO touches (entry, path, temporary, before_kind, before_digest, after_kind, after_digest) "
            "SELECT id, 'src/file_' || (id % 5000) || '.py', '.handtools-' || hex(randomblob(8)), 'file', "
            "hex(randomblob(32)), 'file', hex(randomblob(32)) FROM entries"
        )
        connection.execute(
            "INSERT INTO blobs SELECT after_digest, 1, 500, 200, randomblob(200) FROM touches"
        )
    connection.close()


def _median(name: str, action: Callable[[], object], goal: float) -> Figure:
    seconds = []
    for _ in range(15):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return Figure(name=name, value=statistics.median(seconds) * 1000, unit="ms", goal=goal)


def _box(root: Path) -> Toolbox:
    root.mkdir()
    return Toolbox(CODING, workspace=local_workspace(root, state=root.with_suffix(".state")))
