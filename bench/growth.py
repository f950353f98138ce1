"""Calls in a small and a large place, in turns: more files, more calls before, a longer journal, more sessions.

A figure is the call in the large place, its baseline the same call in the small one: what is flat has a goal.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import closing
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, gathered, paired
from handtools import Call, Policy, Toolbox, local_workspace
from handtools.record.session_feed import SessionFeed
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import CODING

PER_FOLDER = 20
FLAT = 1.3
"""A call that does not depend on a size may take so many times as long in the large place."""
CHILDREN = {"grep in a folder", "grep in all files", "bash"}
"""Calls that wait for other processes: by the clock on the wall, the others by processor time."""
GROWS = {
    ("files", "grep in all files"): "ripgrep reads all files",
    ("entries", "sessions"): "a line for each session, of 1,000 calls each",
    ("sessions", "sessions"): "a line for each session",
}
"""Rows without a goal, and why."""
COPIED_TABLES = {"calls": "id", "entries": "call_id", "touches": "", "ledger": ""}
"""Tables with a row for each change, and the column that is the id of its call."""


class Sizes(NamedTuple):
    """The small and the large place of each comparison."""

    files: tuple[int, int] = (1_000, 100_000)
    calls: tuple[int, int] = (100, 10_000)
    entries: tuple[int, int] = (1_000, 1_000_000)
    sessions: tuple[int, int] = (1, 50)


QUICK = Sizes(files=(100, 2_000), calls=(10, 200), entries=(100, 20_000), sessions=(1, 5))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=Sizes._fields, help="one comparison")
    parser.add_argument("--rounds", type=int, help="pairs of each row (25; 5 with --quick)")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    sizes = QUICK if options.quick else Sizes()
    rounds = options.rounds or (5 if options.quick else 25)
    for what in [options.only] if options.only else Sizes._fields:
        with tempfile.TemporaryDirectory() as folder:
            yield from gathered(partial(_compared, Path(folder), what, getattr(sizes, what), rounds))


async def _compared(folder: Path, what: str, sizes: tuple[int, int], rounds: int) -> AsyncIterator[Figure]:
    places = [Place(folder / str(size), **{what: size}) for size in sizes]
    small, large = [await place.ready() for place in places]
    for row in small.rows():
        yield await paired(
            f"{row}: {sizes[1]:,} {what} over {sizes[0]:,}",
            large.rows()[row],
            small.rows()[row],
            rounds=rounds * (1 if row in CHILDREN else 3),
            goal=None if (what, row) in GROWS else FLAT,
            clock=time.perf_counter if row in CHILDREN else time.process_time,
        )
    for place in places:
        await place.close()


class Place:
    """A workspace with its toolbox, grown in one way."""

    def __init__(
        self, folder: Path, *, files: int = 100, calls: int = 10, entries: int = 0, sessions: int = 1
    ) -> None:
        self.root, self.state = folder / "work", folder / "state"
        self.calls, self.entries = calls, entries
        self.sessions = [f"session {number}" for number in range(sessions)]
        self._turns = cycle(self.sessions)
        self._numbers = count()
        _write_files(self.root, files)
        self._open()

    def _open(self) -> None:
        workspace = local_workspace(self.root, state=self.state)
        self.box = Toolbox(CODING, workspace=workspace, policy=Policy(defaults=DEFAULTS | {"run": "allow"}))

    async def ready(self) -> "Place":
        """Make the calls and the journal that were here before."""
        for session in self.sessions:
            await self._call("bash", session, command="true")
        for _ in range(self.calls // 4):
            for make in (self.read, self.list, self.edit, self.undo):
                await make()
        if self.entries:
            await self.edit()
            await self.box.aclose()
            _grow_journal(Path(self.box.workspace.journal.path), self.entries)
            self._open()
        self.feed = SessionFeed(self.root, self.state)
        return self

    async def close(self) -> None:
        self.feed.close()
        await self.box.aclose()

    def rows(self) -> dict[str, Callable[[], object]]:
        """What is timed, by name."""
        cursor = self.feed.current_cursor()
        return {
            "read": self.read,
            "list": self.list,
            "grep in a folder": lambda: self._call("grep", pattern="name_7 ", path="part_0/module_0"),
            "grep in all files": lambda: self._call("grep", pattern="name_7 "),
            "edit": self.edit,
            "edit and undo": self._edit_and_undo,
            "bash": lambda: self._call("bash", next(self._turns), command="true"),
            "start and read": self._start_and_read,
            "log": lambda: self.feed.recorded_calls_page(limit=20),
            "sessions": self.feed.sessions,
            "news of watch": lambda: self.feed.news_since(cursor),
        }

    async def _start_and_read(self) -> None:
        workspace = local_workspace(self.root, state=self.state)
        async with Toolbox(CODING, workspace=workspace) as box:
            await box.call("read", {"path": "part_0/module_0/file_0.py"})

    def read(self) -> Awaitable[object]:
        return self._call("read", path="part_0/module_0/file_0.py")

    def list(self) -> Awaitable[object]:
        return self._call("list", path="part_0/module_0")

    def edit(self) -> Awaitable[object]:
        number = next(self._numbers)
        return self._call(
            "edit",
            path="part_0/module_0/file_0.py",
            old_string=f"version = {number}\n",
            new_string=f"version = {number + 1}\n",
        )

    def undo(self) -> Awaitable[object]:
        self._numbers = count(next(self._numbers) - 1)
        return self._call("undo", scope="last")

    async def _edit_and_undo(self) -> None:
        await self.edit()
        await self.undo()

    async def _call(self, tool: str, session: str = "", **args: object) -> None:
        asked = Call(tool=tool, args=args, session=session or self.sessions[-1])
        result = await self.box.call(asked)
        if not result.ok:
            raise RuntimeError(f"{tool} {args}: {result.text}")


def _write_files(root: Path, files: int) -> None:
    for number in range(files):
        module = number // PER_FOLDER
        folder = root / f"part_{module // PER_FOLDER}" / f"module_{module}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        text = "version = 0\n" if number == 0 else ""
        (folder / f"file_{number}.py").write_text(f"{text}def name_{number} (alpha):\n    return alpha\n")


def _grow_journal(path: Path, entries: int) -> None:
    """Copy the rows of the last change, as if it had been made so many times, in some sessions and files."""
    with closing(sqlite3.connect(path)) as connection, connection:
        last = connection.execute("SELECT max(id) FROM entries").fetchone()[0]
        call_id = connection.execute("SELECT call_id FROM entries WHERE id = ?", (last,)).fetchone()[0]
        newest = {
            "calls": f"id = '{call_id}'",
            "entries": f"id = {last}",
            "touches": f"entry = {last}",
            "ledger": "seq = (SELECT max(seq) FROM ledger)",
        }
        for table, condition in newest.items():
            connection.execute(_copy_statement(connection, table, condition, entries, last))


def _copy_statement(
    connection: sqlite3.Connection, table: str, condition: str, copies: int, entry: int
) -> str:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    id_column = COPIED_TABLES[table]
    key = "seq" if "seq" in names else "id"
    changed = {
        "session": "'old session ' || (number / 1000)",
        "path": "CASE number % 10 WHEN 0 THEN path ELSE 'file_' || (number % 5000) END",
        "entry": f"{entry} + number",
    }
    if id_column:
        changed[id_column] = "'copy' || number"
    kept = [name for name in names if name != key]
    values = ", ".join(changed.get(name, name) for name in kept)
    return (
        "WITH RECURSIVE numbers(number) AS "
        f"(SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {copies}) "
        f"INSERT INTO {table} ({', '.join(kept)}) "
        f"SELECT {values} FROM numbers, (SELECT * FROM {table} WHERE {condition} LIMIT 1)"
    )
