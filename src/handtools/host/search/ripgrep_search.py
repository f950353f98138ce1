"""Search a workspace on this machine's disk with ripgrep, and confirm every hit.

ripgrep opens files by name, and a path part may have been replaced by a symlink at that moment. So a hit
counts only if the same bytes are in the file that the policy checked, which we open without following
symlinks.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from handtools.core.errors import SymlinkInPath
from handtools.core.search import (
    FolderEntry,
    FolderTree,
    FoundPaths,
    Hit,
    Hits,
    MatchCount,
    MatchCounts,
    PathFilter,
    SearchGaps,
    SearchPatterns,
    SearchScope,
    WantedKind,
)
from handtools.host.files.folder_handle import join_path
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.host.files.syscalls import is_local_filesystem, read_bytes_at
from handtools.host.files.temporary_file import TEMPORARY_PREFIX, is_temporary_name
from handtools.host.programs import Program
from handtools.host.search import ripgrep_process as argv
from handtools.host.search.folder_walk import FolderWalker
from handtools.host.search.ripgrep_process import (
    BEGIN_RECORD,
    END_RECORD,
    MATCH_RECORD,
    CollectRipgrepOutput,
    RipgrepRun,
    hits_of_record,
    iter_records,
    line_bytes_of_record,
    parse_ripgrep_record,
    path_of_record,
    run_ripgrep,
)
from handtools.text.encoding import decode
from handtools.text.search.glob import PathSelection

MAX_UTF16_BYTES = 64 << 20
"""UTF-16 files up to this many bytes are read in full to confirm a hit in them."""
CLOCK_TICK_NS = 20_000_000
"""File timestamps may lag behind the clock by this many nanoseconds, one kernel tick."""
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class HitConfirmation:
    """Confirms hits by reading the file again without following symlinks; opens one file at a time."""

    def __init__(self, root: WorkspaceRoot) -> None:
        self._root = root
        self._path: str | None = None
        self._fd: int | None = None
        self.refused: list[str] = []
        """Paths of hits that could not be confirmed: the bytes differ, or the file can't be opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def holds(self, path: str, data: dict[str, Any]) -> bool:
        """Whether the file at a path contains the line of a match record."""
        if path != self._path:
            self._close()
            self._path, self._fd = path, open_regular_file(self._root, path)
        if self._fd is not None and _has_line_at(
            self._fd, line_bytes_of_record(data), data.get("absolute_offset", 0)
        ):
            return True
        self.refused.append(path)
        return False

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class UnchangedFolderCheck:
    """Checks that folders have not changed since a time, so that a path still leads to the same file."""

    def __init__(self, root: WorkspaceRoot, since_ns: int) -> None:
        self._root = root
        self._since = since_ns - CLOCK_TICK_NS
        self._known: dict[str, bool] = {}

    def is_unchanged_file(self, path: str) -> bool:
        """Whether a path is a regular file, reached without symlinks, and no folder above it has changed."""
        above = path
        while above:
            above = above.rpartition("/")[0]
            if above not in self._known:
                self._known[above] = self._is_quiet(above)
            if not self._known[above]:
                return False
        try:
            return stat.S_ISREG(self._root.stat(path).st_mode)
        except (OSError, SymlinkInPath):
            return False

    def _is_quiet(self, folder: str) -> bool:
        try:
            return self._root.stat(folder).st_ctime_ns < self._since
        except (OSError, SymlinkInPath):
            return False


def open_regular_file(root: WorkspaceRoot, path: str) -> int | None:
    """Open a regular file for reading, without following symlinks; returns its descriptor, or None on failure."""
    try:
        return root.stat_and_open_path(path)[1]
    except (OSError, SymlinkInPath):
        return None


@contextmanager
def open_regular_files(root: WorkspaceRoot, paths: Sequence[str]) -> Iterator[dict[str, int]]:
    """Context manager that opens files without following symlinks; yields descriptors by path."""
    handles: dict[str, int] = {}
    try:
        for path in paths:
            fd = open_regular_file(root, path)
            if fd is not None:
                handles[path] = fd
        yield handles
    finally:
        for fd in handles.values():
            os.close(fd)


def _has_line_at(fd: int, line: bytes, offset: int) -> bool:
    if read_bytes_at(fd, len(line), offset) == line:
        return True
    mark = read_bytes_at(fd, len(_UTF8_MARK), 0)
    if mark == _UTF8_MARK:
        return read_bytes_at(fd, len(line), offset + len(mark)) == line
    if not mark.startswith(_UTF16_MARKS) or os.fstat(fd).st_size > MAX_UTF16_BYTES:
        return False
    return line.decode("utf-8", "replace") in decode(read_bytes_at(fd, MAX_UTF16_BYTES, 0)).body


T = TypeVar("T")
U = TypeVar("U")
_MatchRecords = tuple[list[tuple[str, bytes]], int]
"""Match records with their paths, not parsed yet, and the number of binary files."""
COUNT_ARGS = ("--count-matches", "--with-filename", "--null", "--color=never")
MAX_OPEN_RECOUNTED, MAX_RECOUNTED = 256, 2_048
"""The most files open at once for recounting, and the most files recounted in total."""


class RipgrepSearch:
    """The HostSearch port with ripgrep: one `rg` process per search, killed once it has found enough."""

    def __init__(
        self,
        root: str | Path,
        *,
        program: Path | None = None,
        workspace: str | Path | None = None,
        name: str = "",
    ) -> None:
        """The `rg` program is never taken from `workspace`, which defaults to `root`.

        `name` restricts the search to one of several folders in the workspace `root`.
        """
        whole = Path(os.path.realpath(root))
        self._workspace = workspace or whole
        self._given = program
        self._name = name
        self._walker = FolderWalker(whole)
        self._root_folder = WorkspaceRoot(whole, kernel=True)
        self._root = Path(self._root_folder.folders[name])
        """The folder in which `rg` runs. The paths of `rg` are relative to it; ours start with `name`."""

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        """Return the first `most` matching lines, ordered by path, in files that `admit` accepts."""
        # rg buffers the hits of each file until it has searched it, so limit their number.
        limit = ["--json", "--max-count", str(most + 1)]
        hit_filter = HitFilter(scope, admit)

        def collect(running: RipgrepRun, stream: IO[bytes]) -> _MatchRecords:
            found: list[tuple[str, bytes]] = []
            path, wanted, binary = "", False, 0
            for record in iter_records(stream):
                if record.startswith(MATCH_RECORD):
                    if wanted and len(found) == most:
                        running.kill_since_enough_found()
                        break
                    if wanted:
                        found.append((path, record))
                elif record.startswith(BEGIN_RECORD):
                    path = join_path(self._name, path_of_record(parse_ripgrep_record(record)))
                    wanted = hit_filter.takes(path)
                elif record.startswith(END_RECORD) and wanted and path != scope.root:
                    # A file named on the command line doesn't count: rg searches it to its end, even if binary.
                    binary += parse_ripgrep_record(record)["binary_offset"] is not None
            return found, binary

        options = [*limit, *argv.search_args(patterns, self._scope_within_folder(scope), self._root)]
        (found, refused, binary), gaps = await self._run_by_path(
            options, scope, collect, self._confirmed_hits
        )
        gaps = replace(gaps, binary=binary, capped=gaps.capped or len(found) > most)
        return Hits(tuple(found[:most]), _with_changed(gaps, refused))

    def _confirmed_hits(self, collected: _MatchRecords) -> tuple[list[Hit], list[str], int]:
        """Return the confirmed hits, the paths of unconfirmed ones, and the number of binary files."""
        records, binary_count = collected
        records.sort(key=lambda each: _walk_order(each[0]))
        with HitConfirmation(self._root_folder) as confirmation:
            parsed_records = [(path, parse_ripgrep_record(record)) for path, record in records]
            found = [
                hit
                for path, data in parsed_records
                if confirmation.holds(path, data)
                for hit in hits_of_record(path, data)
            ]
        return found, confirmation.refused, binary_count

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        """Return the first `most` files with matches, and the number of matches in each."""
        hit_filter = HitFilter(scope, admit)

        def collect(running: RipgrepRun, stream: IO[bytes]) -> list[MatchCount]:
            match_counts: list[MatchCount] = []
            for below, count in _read_counts(stream):
                name = join_path(self._name, below)
                if hit_filter.takes(name):
                    if len(match_counts) == most:
                        running.kill_since_enough_found()
                        break
                    match_counts.append(MatchCount(name, count))
            return match_counts

        options = [*COUNT_ARGS, *argv.search_args(patterns, self._scope_within_folder(scope), self._root)]
        since = (
            time.time_ns() if is_local_filesystem(str(self._root)) else 0
        )  # a network file system uses another machine's clock
        found, gaps = await self._run_by_path(options, scope, collect, _counts_by_path)
        counts = {tally.path: tally.matches for tally in found}
        # A count can't be confirmed like a hit, so files whose folders changed during the search are
        # recounted.
        folders = UnchangedFolderCheck(self._root_folder, since)
        moved = [path for path in counts if not folders.is_unchanged_file(path)]
        counts |= dict.fromkeys(moved, 0) | await self._recount_matches(
            patterns, scope, moved[:MAX_RECOUNTED]
        )
        tallies = tuple(MatchCount(path, count) for path, count in counts.items() if count)
        return MatchCounts(tallies, _with_changed(gaps, [path for path in moved if not counts[path]]))

    async def _recount_matches(
        self, patterns: SearchPatterns, scope: SearchScope, paths: Sequence[str]
    ) -> dict[str, int]:
        """Recount the matches in files that we open without following symlinks; returns counts by path."""
        counts: dict[str, int] = {}
        for start in range(0, len(paths), MAX_OPEN_RECOUNTED):
            with open_regular_files(
                self._root_folder, paths[start : start + MAX_OPEN_RECOUNTED]
            ) as handles:
                names = {f"/proc/self/fd/{fd}": path for path, fd in handles.items()}
                if names:
                    options = [*COUNT_ARGS, *argv.search_args_of_files(patterns, names)]
                    told, _ = await self._run(options, scope, _read_all_counts, tuple(handles.values()))
                    counts |= {names[name]: count for name, count in told.items()}
        return counts

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """Return the most recently modified paths below a folder, and how many there are."""
        if wanted != "file":
            return await self._walker.paths(scope, wanted=wanted, most=most, admit=admit)
        form = ["--files", "--null", "--color=never"]
        asked = path_selection_of_scope(scope, decided=argv.narrowing_decides(scope))

        def collect(_: RipgrepRun, stream: IO[bytes]) -> tuple[list[FolderEntry], int]:
            names = _listed_names(stream, local.root)
            kept = admit(
                asked.filter_selected_paths(
                    [join_path(self._name, each) for each in names] if self._name else names
                )
            )
            return self._walker.newest_of_paths(kept, most), len(kept)

        local = self._scope_within_folder(scope)
        options = [*form, *argv.walk_args(local, self._root), "--", argv.root_operand(local)]
        (found, total), gaps = await self._run(options, scope, collect)
        return FoundPaths(tuple(found), total, gaps)

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        return await self._walker.tree(scope, depth=depth, most=most, admit=admit)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        return await self._walker.find_ignored_paths(paths)

    def _scope_within_folder(self, scope: SearchScope) -> SearchScope:
        """Return the scope relative to the folder where `rg` runs; drops excludes that contain a path."""
        if not self._name:
            return scope
        inside = scope.root.removeprefix(self._name).strip("/") if scope.root != "." else ""
        anywhere = tuple(glob for glob in scope.exclude if "/" not in glob.removeprefix("**/").rstrip("/"))
        return replace(scope, root=inside or ".", exclude=anywhere)

    async def _run_by_path(
        self,
        options: list[str],
        scope: SearchScope,
        collect: CollectRipgrepOutput[T],
        finish: Callable[[T], U],
    ) -> tuple[U, SearchGaps]:
        """Run `rg` on all cores. If it finds too much, run it again sorted by path, to get the first matches.

        `finish` makes the result of what was collected, in the same thread.
        """

        def finish_unless_capped(running: RipgrepRun, stream: IO[bytes]) -> list[U]:
            found = collect(running, stream)
            return [] if running.capped else [finish(found)]

        def finish_always(running: RipgrepRun, stream: IO[bytes]) -> U:
            return finish(collect(running, stream))

        finished, gaps = await self._run(options, scope, finish_unless_capped)
        if not finished:
            return await self._run(["--sort", "path", *options], scope, finish_always)
        return finished[0], gaps

    async def _run(
        self,
        options: list[str],
        scope: SearchScope,
        collect: CollectRipgrepOutput[T],
        pass_fds: Sequence[int] = (),
    ) -> tuple[T, SearchGaps]:
        """Run `rg` and collect its output; if an ignore file is a symlink, run it again without that kind."""
        less: list[str] = []
        refused: list[str] = []
        while True:
            found, done = await run_ripgrep(
                self._program,
                [*less, *options],
                cwd=self._root,
                seconds=scope.timeout,
                collect=collect,
                pass_fds=pass_fds,
            )
            if set(argv.without_ignore_files_args(done.linked)) <= set(less):
                return found, _with_refused(done.gaps(), refused)
            refused += done.linked
            less += argv.without_ignore_files_args(done.linked)

    @cached_property
    def _program(self) -> Program:
        return (
            Program(str(self._given), str(self._given))
            if self._given
            else argv.find_ripgrep(Path(self._workspace))
        )


class HitFilter:
    """Decides which paths may appear in results: in scope, admitted by the policy, not internal."""

    def __init__(self, scope: SearchScope, admit: PathFilter) -> None:
        self._root = scope.root
        self._asked = path_selection_of_scope(scope)
        self._admit = admit
        self._path: str | None = None
        self._answer = False

    def takes(self, path: str) -> bool:
        """Whether hits in a file may appear in results."""
        if path != self._path:
            self._path = path
            wanted = not _is_internal(path, self._root) and self._asked.takes(path)
            self._answer = wanted and bool(self._admit([path]))
        return self._answer


def path_selection_of_scope(scope: SearchScope, *, decided: bool = False) -> PathSelection:
    """Return the `PathSelection` of a scope: its globs, and whether it includes hidden files."""
    return PathSelection(
        scope.include,
        root=scope.root,
        case_sensitive=scope.case_sensitive,
        hidden=scope.hidden,
        decided=decided,
    )


def _is_internal(path: str, root: str) -> bool:
    """Whether a path is one of our temporary files or inside a version control folder."""
    if "/." not in f"/{path}":
        return False
    below = path if root == "." else path.removeprefix(f"{root}/")
    return is_temporary_name(path.rpartition("/")[2]) or not argv.VERSION_CONTROL_FOLDERS.isdisjoint(
        below.split("/")
    )


def _walk_order(path: str) -> list[bytes]:
    """Return a path's sort key for the order of `rg --sort path`: folder by folder, names as bytes."""
    return os.fsencode(path).split(b"/")


def _counts_by_path(counts: list[MatchCount]) -> list[MatchCount]:
    return sorted(counts, key=lambda each: _walk_order(each.path))


def _listed_names(stream: IO[bytes], root: str) -> list[str]:
    """Parse the output of `rg --files`; drops an incomplete last path."""
    listed = stream.read().decode("utf-8", "surrogateescape")
    names = f"\0{listed}".replace("\0./", "\0").split("\0")[1:-1]
    # Ignore rules can re-include hidden files, even `.git`.
    if TEMPORARY_PREFIX in listed or any(f"/{name}" in listed for name in argv.VERSION_CONTROL_FOLDERS):
        return [name for name in names if not _is_internal(name, root)]
    return names


def _read_all_counts(_: RipgrepRun, stream: IO[bytes]) -> dict[str, int]:
    return dict(_read_counts(stream))


def _with_refused(gaps: SearchGaps, ignore_files: Sequence[str]) -> SearchGaps:
    """Add to the gaps the ignore files that were skipped because they are symlinks."""
    if not ignore_files:
        return gaps
    told = gaps.example or f"{ignore_files[0]}: an ignore file that is a symlink is not followed"
    return replace(gaps, unreadable=gaps.unreadable + len(ignore_files), example=told)


def _with_changed(gaps: SearchGaps, paths: Sequence[str]) -> SearchGaps:
    """Add to the gaps the paths that changed before their hits could be confirmed."""
    if not paths:
        return gaps
    told = gaps.example or f"{paths[0]}: changed during the search"
    return replace(gaps, unreadable=gaps.unreadable + len(set(paths)), example=told)


def _read_counts(stream: IO[bytes]) -> Iterator[tuple[str, int]]:
    """Parse `rg --count` output (`name NUL count LF`) as it arrives; a name may contain a line feed."""
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
