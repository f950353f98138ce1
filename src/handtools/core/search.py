"""Search: patterns, scope, hits, listings and what was left out, and the ports that search a workspace.

ADR 10, 98.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from handtools.core.changes import NodeKind
from handtools.text.plurals import counted, inflected

PathFilter = Callable[[Sequence[str]], Sequence[str]]
"""Gives back those paths that may be shown, in the same order; a folder's path ends in a slash."""
WantedKind = Literal["file", "folder", "any"]
PathKind = NodeKind | Literal["other"]

SEARCH_SECONDS = 20.0
"""How long a search may take before it gives back what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPatterns:
    """What is looked for: any of these, in one walk."""

    patterns: tuple[str, ...]
    literal: bool = False
    case_sensitive: bool = True
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to look, and what to pass by."""

    root: str = "."
    include: tuple[str, ...] = ()
    """Globs of the files to look at, `!` before those to leave out; none means all."""
    exclude: tuple[str, ...] = ()
    """Globs of what is never entered, matched without regard to case."""
    case_sensitive: bool = True
    """Whether `include` tells `A` from `a`."""
    skip: frozenset[str] = frozenset()
    """Names of folders that are passed by, wherever they are below the root; a hidden one may be a file too."""
    hidden: bool = False
    """Also what begins with a dot."""
    ignored: bool = False
    """Also what ignore files leave out."""
    timeout: float = SEARCH_SECONDS

    def skips(self, name: str, *, folder: bool) -> bool:
        """Whether `skip` is about this: `build` may be a script of somebody's, `.coverage` never is."""
        return name in self.skip and (folder or name.startswith("."))


@dataclass(frozen=True, slots=True)
class SearchGaps:
    """What a search left out and why; nothing of it means that the answer is complete."""

    capped: bool = False
    """It was stopped as soon as enough was found."""
    timed_out: bool = False
    unreadable: int = 0
    """Paths that could not be read and were skipped."""
    example: str = ""
    """What the machine said about the first of them."""
    binary: int = 0
    """Files whose search ended where they turn out to be binary."""
    withheld: int = 0
    """Paths that rules keep back until a person allows them."""
    unparsed: int = 0
    """Files that hold it and could not be had for the parser."""
    unseen: str = ""
    """How far a search for kinds or shapes came, when there is more to look at."""

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return self == SearchGaps()

    @property
    def notes(self) -> list[str]:
        """What was left out, as sentences; that a search stopped at a full page goes without saying."""
        notes = []
        if self.timed_out:
            notes.append("The time ran out: what is shown is a part. Narrow the search.")
        if self.unreadable:
            paths, were = counted(self.unreadable, "path"), inflected(self.unreadable, "was")
            notes.append(f"{paths} could not be read and {were} skipped ({self.example[:200]}).")
        if self.binary:
            files, were = counted(self.binary, "binary file"), inflected(self.binary, "was")
            notes.append(f"{files} {were} searched only up to the first NUL.")
        if self.withheld:
            paths, need = counted(self.withheld, "path"), inflected(self.withheld, "needs")
            notes.append(f"{paths} {need} a person's approval: left out.")
        if self.unparsed:
            files, were = counted(self.unparsed, "file"), inflected(self.unparsed, "was")
            notes.append(f"{files} that may hold it {were} not parsed: too large, or gone by now.")
        if self.unseen:
            notes.append(f"{self.unseen} Narrow it with `path` or `include`.")
        return notes


class Hit(NamedTuple):
    """One match: the line where it begins, its text, and where in it the matches are."""

    path: str
    line: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    """Characters of `text`, from 0, the end not included."""
    clipped: bool = False
    """Whether `text` is only a part of a very long line."""

    @property
    def end_line(self) -> int:
        """The last line of a match that goes over several."""
        return self.line + self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits in the order of their paths and lines, and what is missing."""

    hits: tuple[Hit, ...]
    gaps: SearchGaps = SearchGaps()


@dataclass(frozen=True, slots=True)
class MatchCount:
    """How often something occurs in one file."""

    path: str
    matches: int


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """Files that hold it, in the order of their paths, and what is missing."""

    tallies: tuple[MatchCount, ...]
    gaps: SearchGaps = SearchGaps()


class FolderEntry(NamedTuple):
    """What a folder holds under one name; size and time are None where they can't be had."""

    path: str
    kind: PathKind
    bytes: int | None = None
    modified: float | None = None


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """Some of the paths that match, newest first, and how many there are."""

    found: tuple[FolderEntry, ...]
    total: int
    gaps: SearchGaps = SearchGaps()


@dataclass(frozen=True, slots=True)
class FolderListing:
    """What a folder holds, column by column: an object for each of very many would cost more than the disk."""

    paths: Sequence[str] = ()
    """A folder's path ends in a slash."""
    kinds: Sequence[PathKind] = ()
    sizes: Sequence[int | None] = ()

    @classmethod
    def of(cls, entries: Iterable[FolderEntry]) -> "FolderListing":
        """The same entries in columns."""
        rows = [(path + "/" * (kind == "folder"), kind, size) for path, kind, size, _ in entries]
        return cls(*zip(*rows, strict=True)) if rows else cls()

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[FolderEntry]:
        for path, kind, size in zip(self.paths, self.kinds, self.sizes, strict=True):
            yield FolderEntry(path.removesuffix("/"), kind, size)

    def first(self, most: int) -> "FolderListing":
        """The beginning of it."""
        if most >= len(self.paths):
            return self
        return FolderListing(self.paths[:most], self.kinds[:most], self.sizes[:most])

    def picked(self, numbers: Sequence[int]) -> "FolderListing":
        """Some of it, in an order."""
        return FolderListing(
            [self.paths[number] for number in numbers],
            [self.kinds[number] for number in numbers],
            [self.sizes[number] for number in numbers],
        )


@dataclass(frozen=True, slots=True)
class FolderTree:
    """A folder and those below it, folders before files and each by name, as deep and wide as was asked for."""

    entries: FolderListing
    below: Mapping[str, FolderListing] = field(default_factory=dict)
    """What is in the folders that were looked into, by their paths; upper levels first."""
    left_out: int = 0
    """Entries beyond the limit."""
    unvisited: int = 0
    """Folders that were not opened because the limit was reached."""
    ignored: int = 0
    """Entries that ignore files or the usual habits leave out."""
    gaps: SearchGaps = SearchGaps()

    @property
    def every(self) -> FolderListing:
        """All that was seen, upper levels first."""
        if not self.below:
            return self.entries
        seen = [self.entries, *self.below.values()]
        return FolderListing(
            [path for each in seen for path in each.paths],
            [kind for each in seen for kind in each.kinds],
            [size for each in seen for size in each.sizes],
        )


class Search(Protocol):
    """Looking through the workspace: what rules hide is never in an answer, whatever is asked."""

    async def hits(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> Hits:
        """The first hits in the order of their paths, `most` at the most."""
        ...

    async def tallies(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> MatchCounts:
        """The first files that hold it, and how often."""
        ...

    async def paths(self, scope: SearchScope, *, wanted: WantedKind, most: int) -> FoundPaths:
        """The newest paths below a folder, and how many there are."""
        ...

    async def tree(self, scope: SearchScope, *, depth: int, most: int) -> FolderTree:
        """What a folder holds, and the folders in it."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The bytes behind hits, for their surroundings; this does not count as seen by the agent."""
        ...


class HostSearch(Protocol):
    """A workspace's search as a machine offers it: confined, without policy. Roots are located paths."""

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        """As `Search`; only paths that `admit` lets through count."""
        ...

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        """As `Search`."""
        ...

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        """As `Search`."""
        ...

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        """As `Search`."""
        ...
