"""Search a workspace with several folders: ripgrep runs in one after the other, walks cover all at once."""

import os
from collections.abc import Sequence
from pathlib import Path

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
from handtools.host.search.folder_walk import FolderWalker
from handtools.host.search.ripgrep_search import RipgrepSearch
from handtools.host.workspace_folders import workspace_folders


def local_search(root: str | Path) -> HostSearch:
    """Return the search for a workspace on this machine's disk, with one folder or several."""
    names = workspace_folders(root)
    if "" in names:
        return RipgrepSearch(root)
    return CombinedSearch(root, {name: RipgrepSearch(root, name=name) for name in names})


class CombinedSearch:
    """The HostSearch port over several folders, in the order of their names."""

    def __init__(self, root: str | Path, folder_searches: dict[str, RipgrepSearch]) -> None:
        self._folder_searches = folder_searches
        self._walker = FolderWalker(Path(os.path.realpath(root)))

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        all_hits: list[Hits] = []
        for folder in self._searches_for_scope(scope):
            left = most - sum(len(each.hits) for each in all_hits)
            all_hits.append(await folder.hits(patterns, scope, most=left, admit=admit))
            if all_hits[-1].gaps.capped:
                break
        return Hits(
            tuple(hit for each in all_hits for hit in each.hits),
            gaps_of_all([each.gaps for each in all_hits]),
        )

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        all_counts: list[MatchCounts] = []
        for folder in self._searches_for_scope(scope):
            left = most - sum(len(each.tallies) for each in all_counts)
            all_counts.append(await folder.tallies(patterns, scope, most=left, admit=admit))
            if all_counts[-1].gaps.capped:
                break
        found = tuple(tally for each in all_counts for tally in each.tallies)
        return MatchCounts(found, gaps_of_all([each.gaps for each in all_counts]))

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """Return the most recently modified paths of all folders, and how many there are."""
        if wanted != "file":
            return await self._walker.paths(scope, wanted=wanted, most=most, admit=admit)
        every = [
            await folder.paths(scope, wanted=wanted, most=most, admit=admit)
            for folder in self._searches_for_scope(scope)
        ]
        newest = sorted(
            (entry for each in every for entry in each.found),
            key=lambda entry: (-(entry.modified or 0.0), entry.path),
        )
        total = sum(each.total for each in every)
        return FoundPaths(tuple(newest[:most]), total, gaps_of_all([each.gaps for each in every]))

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        """Return the tree below a folder up to a depth; the workspace's folders are its top level."""
        return await self._walker.tree(scope, depth=depth, most=most, admit=admit)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        return await self._walker.find_ignored_paths(paths)

    def _searches_for_scope(self, scope: SearchScope) -> list[RipgrepSearch]:
        name = scope.root.partition("/")[0]
        return (
            [self._folder_searches[name]]
            if name in self._folder_searches
            else list(self._folder_searches.values())
        )


def gaps_of_all(gaps: Sequence[SearchGaps]) -> SearchGaps:
    """Combine the gaps (what was left out) of several searches."""
    return SearchGaps(
        capped=any(each.capped for each in gaps),
        timed_out=any(each.timed_out for each in gaps),
        unreadable=sum(each.unreadable for each in gaps),
        binary=sum(each.binary for each in gaps),
        withheld=sum(each.withheld for each in gaps),
        example=next((each.example for each in gaps if each.example), ""),
    )
