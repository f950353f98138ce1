"""Search in a workspace: patterns, scope, hits, folder listings, notes on gaps; and the search ports."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from handtools.core.changes import NodeKind
from handtools.text.plurals import inflect_for_number, number_with_noun

PathFilter = Callable[[Sequence[str]], Sequence[str]]
"""Callback that returns the given paths that may be shown, in the same order; folder paths end in a slash."""
WantedKind = Literal["file", "folder", "any"]
PathKind = NodeKind | Literal["other"]

SEARCH_SECONDS = 20.0
"""Time limit of a search in seconds; it then returns what it has found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPatterns:
    """Text patterns to search for; a line that matches any of them is a hit."""

    patterns: tuple[str, ...]
    literal: bool = False
    case_sensitive: bool = True
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to search: root folder, globs, hidden and ignored files, folders to skip."""

    root: str = "."
    include: tuple[str, ...] = ()
    """Globs of files to search, with a leading `!` for files to leave out; empty means all files."""
    exclude: tuple[str, ...] = ()
    """Globs of paths that are never searched, matched case-insensitively."""
    case_sensitive: bool = True
    """Whether the globs of `include` are case-sensitive."""
    skip: frozenset[str] = frozenset()
    """Names of folders to skip at any depth below the root; hidden names apply to files too."""
    hidden: bool = False
    """Whether hidden files (names with a leading dot) are searched."""
    ignored: bool = False
    """Whether files excluded by ignore files such as .gitignore are searched."""
    timeout: float = SEARCH_SECONDS

    def skips(self, name: str, *, folder: bool) -> bool:
        """Whether to skip an entry: a folder named in `skip`, or a hidden file named there."""
        return name in self.skip and (folder or name.startswith("."))


@dataclass(frozen=True, slots=True)
class SearchGaps:
    """What a search left out, and why: limits, timeouts, unreadable or withheld files."""

    capped: bool = False
    """Whether the search stopped at the maximum number of hits."""
    timed_out: bool = False
    unreadable: int = 0
    """Number of paths that could not be read."""
    example: str = ""
    """Error message about the first unreadable path."""
    binary: int = 0
    """Number of files in which the search stopped because they are binary."""
    withheld: int = 0
    """Number of paths withheld because a policy rule requires approval."""
    unparsed: int = 0
    """Number of files with hits that could not be parsed."""
    unseen: str = ""
    """Sentence on how far a syntax search got, if not all hits or files were parsed."""

    @property
    def complete(self) -> bool:
        """Whether the search left nothing out."""
        return self == SearchGaps()

    @property
    def notes(self) -> list[str]:
        """Sentences on what was left out, except for the hit limit."""
        notes = []
        if self.timed_out:
            notes.append("The search timed out, so results are incomplete. Narrow the search.")
        if self.unreadable:
            paths, were = (
                number_with_noun(self.unreadable, "path"),
                inflect_for_number(self.unreadable, "was"),
            )
            notes.append(f"{paths} could not be read and {were} skipped ({self.example[:200]}).")
        if self.binary:
            files, were = (
                number_with_noun(self.binary, "binary file"),
                inflect_for_number(self.binary, "was"),
            )
            notes.append(f"{files} {were} searched only up to the first NUL.")
        if self.withheld:
            paths, need = (
                number_with_noun(self.withheld, "path"),
                inflect_for_number(self.withheld, "needs"),
            )
            notes.append(f"{paths} {need} the user's approval by name: left out.")
        if self.unparsed:
            files, were = number_with_noun(self.unparsed, "file"), inflect_for_number(self.unparsed, "was")
            notes.append(f"{files} that may match {were} not parsed: too large or deleted in the meantime.")
        if self.unseen:
            notes.append(f"{self.unseen} Narrow it with `path` or `include`.")
        return notes


class Hit(NamedTuple):
    """One search hit: path, line number, text, and the matched ranges in it."""

    path: str
    line: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    """Matched ranges in `text` as character offsets, end exclusive."""
    clipped: bool = False
    """Whether `text` is only part of a very long line."""

    @property
    def end_line(self) -> int:
        """Number of the last line of a multi-line match."""
        return self.line + self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Hits:
    """Search hits sorted by path and line, and what the search left out."""

    hits: tuple[Hit, ...]
    gaps: SearchGaps = SearchGaps()


@dataclass(frozen=True, slots=True)
class MatchCount:
    """Number of matches in one file."""

    path: str
    matches: int


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """Match counts by file, sorted by path, and what the search left out."""

    tallies: tuple[MatchCount, ...]
    gaps: SearchGaps = SearchGaps()


class FolderEntry(NamedTuple):
    """One folder entry: path, kind, size and time; size and time are None if they can't be read."""

    path: str
    kind: PathKind
    bytes: int | None = None
    modified: float | None = None


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """Paths that match a search, newest first, and the total number."""

    found: tuple[FolderEntry, ...]
    total: int
    gaps: SearchGaps = SearchGaps()


@dataclass(frozen=True, slots=True)
class FolderListing:
    """Folder entries stored as columns (paths, kinds, sizes), which is cheaper than one object each."""

    paths: Sequence[str] = ()
    """Paths of the entries; folder paths end in a slash."""
    kinds: Sequence[PathKind] = ()
    sizes: Sequence[int | None] = ()

    @classmethod
    def of(cls, folder_entries: Iterable[FolderEntry]) -> "FolderListing":
        """Build a listing from entry objects."""
        rows = [(path + "/" * (kind == "folder"), kind, size) for path, kind, size, _ in folder_entries]
        return cls(*zip(*rows, strict=True)) if rows else cls()

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[FolderEntry]:
        for path, kind, size in zip(self.paths, self.kinds, self.sizes, strict=True):
            yield FolderEntry(path.removesuffix("/"), kind, size)

    def first(self, most: int) -> "FolderListing":
        """Return a listing with only the first `most` entries."""
        if most >= len(self.paths):
            return self
        return FolderListing(self.paths[:most], self.kinds[:most], self.sizes[:most])

    def select_indexes(self, numbers: Sequence[int]) -> "FolderListing":
        """Return a listing with the entries of the given indexes, in their order."""
        return FolderListing(
            [self.paths[number] for number in numbers],
            [self.kinds[number] for number in numbers],
            [self.sizes[number] for number in numbers],
        )


@dataclass(frozen=True, slots=True)
class FolderTree:
    """Entries of a folder and its subfolders, folders before files, up to a given depth and number."""

    entries: FolderListing
    below: Mapping[str, FolderListing] = field(default_factory=dict)
    """Entries of the subfolders by folder path, upper levels first."""
    left_out: int = 0
    """Number of entries left out because of the limit."""
    unvisited: int = 0
    """Number of folders not opened because the limit was reached."""
    ignored: int = 0
    """Number of entries left out by ignore files or default skips."""
    gaps: SearchGaps = SearchGaps()

    @property
    def every(self) -> FolderListing:
        """All entries of all levels in one listing, upper levels first."""
        if not self.below:
            return self.entries
        seen = [self.entries, *self.below.values()]
        return FolderListing(
            [path for each in seen for path in each.paths],
            [kind for each in seen for kind in each.kinds],
            [size for each in seen for size in each.sizes],
        )


class Search(Protocol):
    """Port for tools to search the workspace; results leave out paths that policy rules hide."""

    async def hits(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> Hits:
        """Search file contents and return up to `most` hits, sorted by path."""
        ...

    async def tallies(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> MatchCounts:
        """Count matches by file and return up to `most` files, sorted by path."""
        ...

    async def paths(self, scope: SearchScope, *, wanted: WantedKind, most: int) -> FoundPaths:
        """List files or folders below the root that match the scope, newest first, at most `most`."""
        ...

    async def tree(self, scope: SearchScope, *, depth: int, most: int) -> FolderTree:
        """List a folder and its subfolders down to `depth` levels, at most `most` entries."""
        ...

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        """Return the located paths that the project's ignore files exclude."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of files with hits, for context lines; not recorded as read by the agent."""
        ...


class HostSearch(Protocol):
    """Host port to search a workspace: confined to it, without policy; roots are located paths."""

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        """Search file contents and return up to `most` hits in paths that `admit` lets through."""
        ...

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        """Count matches by file, up to `most` files, in paths that `admit` lets through."""
        ...

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """List matching files or folders that `admit` lets through, newest first, at most `most`."""
        ...

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        """List a folder and its subfolders, at most `most` entries that `admit` lets through."""
        ...

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that ignore files exclude, directly or through a parent folder."""
        ...
