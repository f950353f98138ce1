"""Search of a folder that an editor has open: ripgrep on the disk, and on a copy of the files with unsaved text.

An editor does not tell which buffers are unsaved, so before a search it is asked about files that may match, the
newest first. ADR 216.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from anyio import CapacityLimiter, create_task_group, to_thread

from handtools.core.errors import ToolError
from handtools.core.search import (
    FolderTree,
    FoundPaths,
    Hits,
    HostSearch,
    MatchCounts,
    PathFilter,
    SearchGaps,
    SearchPatterns,
    SearchScope,
    WantedKind,
)
from handtools.host.files.editor_files import EditorFiles
from handtools.host.search.copied_files_search import CopiedFilesSearch
from handtools.host.search.several_folders_search import gaps_of_all, local_search
from handtools.text.paths import folders_above
from handtools.text.search.gitignore import IGNORE_FILES

MAX_FILES_ASKED_OF_EDITOR = 200
"""The editor is asked about so many files before a search, and about those that had unsaved text before."""
CONCURRENT_QUESTIONS = 32


class EditorFilesSearch:
    """The HostSearch port over the files of an editor; names and folders are the disk's."""

    def __init__(
        self, files: EditorFiles, root: str | Path, *, max_asked_files: int = MAX_FILES_ASKED_OF_EDITOR
    ) -> None:
        self._files = files
        self._disk = local_search(root)
        self._copies = CopiedFilesSearch(files, root)
        self._max_asked_files = max_asked_files

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        """The first `most` matching lines, ordered by path."""
        parts, unseen = await self._parts(scope, memoized_path_filter(admit))
        every = [await search.hits(patterns, scope, most=most, admit=part) for search, part in parts]
        if len(every) == 1:
            return replace(every[0], gaps=_with_unseen(every[0].gaps, unseen))
        hits = sorted(
            (hit for each in every for hit in each.hits), key=lambda hit: (hit.path.split("/"), hit.line)
        )
        gaps = gaps_of_all([each.gaps for each in every])
        gaps = replace(gaps, capped=gaps.capped or len(hits) > most)
        return Hits(tuple(hits[:most]), _with_unseen(gaps, unseen))

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        """The first `most` files with matches, and the number of matches in each."""
        parts, unseen = await self._parts(scope, memoized_path_filter(admit))
        every = [await search.tallies(patterns, scope, most=most, admit=part) for search, part in parts]
        if len(every) == 1:
            return replace(every[0], gaps=_with_unseen(every[0].gaps, unseen))
        tallies = sorted(
            (tally for each in every for tally in each.tallies), key=lambda tally: tally.path.split("/")
        )
        gaps = gaps_of_all([each.gaps for each in every])
        gaps = replace(gaps, capped=gaps.capped or len(tallies) > most)
        return MatchCounts(tuple(tallies[:most]), _with_unseen(gaps, unseen))

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """Matching files or folders on disk, newest first."""
        return await self._disk.paths(scope, wanted=wanted, most=most, admit=admit)

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        """A folder on disk and its subfolders, level by level."""
        return await self._disk.tree(scope, depth=depth, most=most, admit=admit)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        """Those of some paths that ignore files exclude."""
        return await self._disk.find_ignored_paths(paths)

    async def _unsaved(self, paths: Iterable[str]) -> set[str]:
        """Ask the editor which of these files have unsaved text, several at a time."""
        limiter, unsaved, failures = CapacityLimiter(CONCURRENT_QUESTIONS), set[str](), list[ToolError]()

        async def ask(path: str) -> None:
            try:
                if await to_thread.run_sync(self._files.is_unsaved, path, limiter=limiter):
                    unsaved.add(path)
            except ToolError as failure:
                failures.append(failure)
                group.cancel_scope.cancel()

        async with create_task_group() as group:
            for path in paths:
                group.start_soon(ask, path)
        if failures:
            raise failures[0]
        return unsaved

    async def _parts(
        self, scope: SearchScope, admit: PathFilter
    ) -> tuple[list[tuple[HostSearch, PathFilter]], str]:
        """Return where to search for which paths, and what is to be said of unsaved text that may be missed."""
        found = await self._disk.paths(scope, wanted="file", most=self._max_asked_files, admit=admit)
        asked = [entry.path for entry in found.found]
        unsaved = await self._unsaved({*asked, *admit(self._files.last_seen_unsaved_below(scope.root))})
        unseen = (
            f"Unsaved text of the editor was looked for in {len(asked):,} of {found.total:,} files."
            if found.total > len(asked)
            else ""
        )
        if not unsaved:
            return [(self._disk, admit)], unseen
        folders = {"", *folders_above(unsaved)}
        # Ignore files go with them: the copy is searched as the folder itself would be.
        rules = {f"{folder}/{name}".lstrip("/") for folder in folders for name in IGNORE_FILES}
        copied = unsaved | rules

        def in_copy(paths: Sequence[str]) -> Sequence[str]:
            return [path for path in admit(paths) if path in copied or path.removesuffix("/") in folders]

        def on_disk(paths: Sequence[str]) -> Sequence[str]:
            return [path for path in admit(paths) if path not in copied]

        return [(self._disk, on_disk), (self._copies, in_copy)], unseen


def memoized_path_filter(admit: PathFilter) -> PathFilter:
    """Return a filter that asks `admit` about each path once, since it counts what it withholds."""
    known: dict[str, bool] = {}

    def judged(paths: Sequence[str]) -> Sequence[str]:
        new = [path for path in paths if path not in known]
        allowed = set(admit(new))
        known.update((path, path in allowed) for path in new)
        return [path for path in paths if known[path]]

    return judged


def _with_unseen(gaps: SearchGaps, unseen: str) -> SearchGaps:
    return replace(gaps, unseen=unseen) if unseen else gaps
