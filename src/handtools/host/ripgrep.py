"""Ripgrep: searching a workspace on this machine's disk."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, TypeVar

from handtools.core.searching import (
    Admit,
    Entry,
    Gaps,
    Hit,
    Hits,
    Paths,
    Patterns,
    Scope,
    Tallies,
    Tally,
    Tree,
    Wanted,
)
from handtools.host import ripgrep_argv as argv
from handtools.host.mounts import is_near
from handtools.host.programs import Program
from handtools.host.resolving import Root
from handtools.host.ripgrep_confirm import Confirmation, QuietFolders, all_opened
from handtools.host.ripgrep_records import BEGIN, END, MATCH, hits, path_of, read, records
from handtools.host.ripgrep_run import Collect, Run, run
from handtools.host.staging import PREFIX, is_temporary
from handtools.host.walking import Walker
from handtools.text.selecting import Selection

T = TypeVar("T")
COUNTING = ("--count-matches", "--with-filename", "--null", "--color=never")
OPENED, RECOUNTED = 256, 2_048
"""Files that are open at once to be counted again, and those that are counted again at all."""
_VERSION_CONTROL = frozenset(argv.VERSION_CONTROL)


class RipgrepSearch:
    """The HostSearch port: one rg for each search, killed as soon as the answer is full."""

    def __init__(
        self, root: str | Path, *, program: Path | None = None, workspace: str | Path | None = None
    ) -> None:
        """`workspace` is where no program is looked for, if that is not what is searched."""
        self._root = Path(os.path.realpath(root))
        self._workspace = workspace or self._root
        self._given = program
        self._walker = Walker(self._root)
        self._root_folder = Root(self._root, kernel=True)

    async def hits(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Hits:
        """The first hits in the order of their paths."""
        options = ["--json", "--sort", "path", *argv.search(patterns, scope, self._root)]
        sieve = Sieve(scope, admit)

        def collect(running: Run, stream: IO[bytes]) -> tuple[list[Hit], int, list[str]]:
            found: list[tuple[str, bytes]] = []
            path, wanted, binary = "", False, 0
            for record in records(stream):
                if record.startswith(MATCH):
                    if wanted and len(found) == most:
                        running.cap()
                        break
                    if wanted:
                        found.append((path, record))
                elif record.startswith(BEGIN):
                    path = path_of(read(record))
                    wanted = sieve.takes(path)
                elif record.startswith(END) and path != scope.root:
                    # A file that is named itself is searched to its end.
                    binary += read(record)["binary_offset"] is not None
            # Hits are read only now: meanwhile rg comes to its end.
            with Confirmation(self._root_folder) as confirmed:
                told = [(path, read(record)) for path, record in found]
                every = [
                    hit for path, data in told if confirmed.holds(path, data) for hit in hits(path, data)
                ]
            running.capped = running.capped or len(every) > most
            return every[:most], binary, confirmed.refused

        (found, binary, refused), gaps = await self._run(options, scope, collect)
        return Hits(tuple(found), _with_changed(replace(gaps, binary=binary), refused))

    async def tallies(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Tallies:
        """The first files that hold it, and how often."""
        sieve = Sieve(scope, admit)

        def collect(running: Run, stream: IO[bytes]) -> list[Tally]:
            found: list[Tally] = []
            for name, count in _counted(stream):
                if sieve.takes(name):
                    if len(found) == most:
                        running.cap()
                        break
                    found.append(Tally(name, count))
            return found

        options = [*COUNTING, "--sort", "path", *argv.search(patterns, scope, self._root)]
        since = time.time_ns() if is_near(str(self._root)) else 0  # another machine has its own clock
        found, gaps = await self._run(options, scope, collect)
        counts = {tally.path: tally.matches for tally in found}
        # A count can't be looked up again as a hit can: where names have changed meanwhile, it is counted again.
        folders = QuietFolders(self._root_folder, since)
        moved = [path for path in counts if not folders.hold(path)]
        counts |= dict.fromkeys(moved, 0) | await self._recounted(patterns, scope, moved[:RECOUNTED])
        tallies = tuple(Tally(path, count) for path, count in counts.items() if count)
        return Tallies(tallies, _with_changed(gaps, [path for path in moved if not counts[path]]))

    async def _recounted(self, patterns: Patterns, scope: Scope, paths: Sequence[str]) -> dict[str, int]:
        """How often it is in files that we have opened ourselves, through no link."""
        counts: dict[str, int] = {}
        for start in range(0, len(paths), OPENED):
            with all_opened(self._root_folder, paths[start : start + OPENED]) as handles:
                names = {f"/proc/self/fd/{fd}": path for path, fd in handles.items()}
                if names:
                    options = [*COUNTING, *argv.search_opened(patterns, names)]
                    told, _ = await self._run(options, scope, _all_counted, tuple(handles.values()))
                    counts |= {names[name]: count for name, count in told.items()}
        return counts

    async def paths(self, scope: Scope, *, wanted: Wanted, most: int, admit: Admit) -> Paths:
        """The newest paths below a folder, and how many there are; folders are not rg's business."""
        if wanted != "file":
            return await self._walker.paths(scope, wanted=wanted, most=most, admit=admit)
        form = ["--files", "--null", "--color=never"]
        asked = selection(scope, decided=argv.decides(scope))

        def collect(_: Run, stream: IO[bytes]) -> tuple[list[Entry], int]:
            kept = admit(asked.of(_names(stream, scope.root)))
            return self._walker.newest(kept, most), len(kept)

        options = [*form, *argv.walk(scope, self._root), "--", argv.operand(scope)]
        (found, total), gaps = await self._run(options, scope, collect)
        return Paths(tuple(found), total, gaps)

    async def tree(self, scope: Scope, *, depth: int, most: int, admit: Admit) -> Tree:
        """What a folder holds, and the folders in it."""
        return await self._walker.tree(scope, depth=depth, most=most, admit=admit)

    async def _run(
        self, options: list[str], scope: Scope, collect: Collect[T], pass_fds: Sequence[int] = ()
    ) -> tuple[T, Gaps]:
        """Run it; once more without ignore files where it has read one that is a link, or nothing plain."""
        less: list[str] = []
        refused: list[str] = []
        while True:
            found, done = await run(
                self._program,
                [*less, *options],
                cwd=self._root,
                seconds=scope.timeout,
                collect=collect,
                pass_fds=pass_fds,
            )
            if set(argv.without(done.linked)) <= set(less):
                return found, _with_refused(done.gaps(), refused)
            refused += done.linked
            less += argv.without(done.linked)

    @cached_property
    def _program(self) -> Program:
        return (
            Program(str(self._given), str(self._given))
            if self._given
            else argv.program(Path(self._workspace))
        )


class Sieve:
    """What may count as found: asked for, admitted and nobody's own affair; hits of one file come together."""

    def __init__(self, scope: Scope, admit: Admit) -> None:
        self._root = scope.root
        self._asked = selection(scope)
        self._admit = admit
        self._path: str | None = None
        self._answer = False

    def takes(self, path: str) -> bool:
        """Whether hits at a path count."""
        if path != self._path:
            self._path = path
            wanted = not _internal(path, self._root) and self._asked.takes(path)
            self._answer = wanted and bool(self._admit([path]))
        return self._answer


def selection(scope: Scope, *, decided: bool = False) -> Selection:
    """What a scope asks for, by name."""
    return Selection(
        scope.include,
        root=scope.root,
        case_sensitive=scope.case_sensitive,
        hidden=scope.hidden,
        decided=decided,
    )


def _internal(path: str, root: str) -> bool:
    """Whether a path is a temporary of ours, or in what a version control keeps for itself."""
    if "/." not in f"/{path}":
        return False
    below = path if root == "." else path.removeprefix(f"{root}/")
    return is_temporary(path.rpartition("/")[2]) or not _VERSION_CONTROL.isdisjoint(below.split("/"))


def _names(stream: IO[bytes], root: str) -> list[str]:
    """All names of a listing; the last one is dropped when rg was killed in the middle of it."""
    listed = stream.read().decode("utf-8", "surrogateescape")
    names = f"\0{listed}".replace("\0./", "\0").split("\0")[1:-1]
    # Rules may show what is hidden, git's own folder too.
    if PREFIX in listed or any(f"/{name}" in listed for name in argv.VERSION_CONTROL):
        return [name for name in names if not _internal(name, root)]
    return names


def _all_counted(_: Run, stream: IO[bytes]) -> dict[str, int]:
    return dict(_counted(stream))


def _with_refused(gaps: Gaps, ignore_files: Sequence[str]) -> Gaps:
    """The same with ignore files that were not followed."""
    if not ignore_files:
        return gaps
    told = gaps.example or f"{ignore_files[0]}: an ignore file that is a link is not followed"
    return replace(gaps, unreadable=gaps.unreadable + len(ignore_files), example=told)


def _with_changed(gaps: Gaps, paths: Sequence[str]) -> Gaps:
    """The same with paths that were something else by the time they were looked at again."""
    if not paths:
        return gaps
    told = gaps.example or f"{paths[0]}: it changed while it was searched"
    return replace(gaps, unreadable=gaps.unreadable + len(set(paths)), example=told)


def _counted(stream: IO[bytes]) -> Iterator[tuple[str, int]]:
    """Names and counts as they come, `name NUL count LF`: not read by line, as a name may hold a line end."""
    waiting, name = b"", None
    while part := os.read(stream.fileno(), 1 << 16):
        waiting += part
        while (end := waiting.find(b"\0" if name is None else b"\n")) >= 0:
            piece, waiting = waiting[:end], waiting[end + 1 :]
            if name is None:
                name = os.fsdecode(piece).removeprefix("./")
            else:
                yield name, int(piece)
                name = None
