"""Search a folder that is open in an editor: ripgrep on disk, and on a copy of the files with unsaved text.

Editors don't report which buffers are unsaved, so each search first asks the editor for the text of files
that may match, newest first.
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
"""The most files checked for unsaved text before a search, besides files that had some before."""
CONCURRENT_QUESTIONS = 32


class EditorFilesSearch:
    """The HostSearch port for files open in an editor; names and folders come from the disk."""

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
        parts, unseen = await self._searches_with_filters(scope, memoized_path_filter(admit))
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
        parts, unseen = await self._searches_with_filters(scope, memoized_path_filter(admit))
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
        return await self._disk.paths(scope, wanted=wanted, most=most, admit=admit)

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        return await self._disk.tree(scope, depth=depth, most=most, admit=admit)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        return await self._disk.find_ignored_paths(paths)

    async def _unsaved_paths(self, paths: Iterable[str]) -> set[str]:
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

    async def _searches_with_filters(
        self, scope: SearchScope, admit: PathFilter
    ) -> tuple[list[tuple[HostSearch, PathFilter]], str]:
        """Return the searches to run, each with its path filter, and a note if they may miss unsaved text."""
        found = await self._disk.paths(scope, wanted="file", most=self._max_asked_files, admit=admit)
        asked = [entry.path for entry in found.found]
        unsaved = await self._unsaved_paths(
            {*asked, *admit(self._files.last_seen_unsaved_below(scope.root))}
        )
        unseen = (
            f"Only {len(asked):,} of {found.total:,} files were checked for unsaved text in the editor."
            if found.total > len(asked)
            else ""
        )
        if not unsaved:
            return [(self._disk, admit)], unseen
        folders = {"", *folders_above(unsaved)}
        # Copy the ignore files too, so that the search of the copy skips the same files.
        rules = {f"{folder}/{name}".lstrip("/") for folder in folders for name in IGNORE_FILES}
        copied = unsaved | rules

        def in_copy(paths: Sequence[str]) -> Sequence[str]:
            return [path for path in admit(paths) if path in copied or path.removesuffix("/") in folders]

        def on_disk(paths: Sequence[str]) -> Sequence[str]:
            return [path for path in admit(paths) if path not in copied]

        return [(self._disk, on_disk), (self._copies, in_copy)], unseen


def memoized_path_filter(admit: PathFilter) -> PathFilter:
    """Return a filter that calls `admit` once per path, since `admit` counts the paths it withholds."""
    known: dict[str, bool] = {}

    def judged(paths: Sequence[str]) -> Sequence[str]:
        new = [path for path in paths if path not in known]
        allowed = set(admit(new))
        known.update((path, path in allowed) for path in new)
        return [path for path in paths if known[path]]

    return judged


def _with_unseen(gaps: SearchGaps, unseen: str) -> SearchGaps:
    return replace(gaps, unseen=unseen) if unseen else gaps
