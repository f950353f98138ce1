"""Searching: what is looked for, where, what was found, and what was left out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from handtools.core.changes import Kind
from handtools.text.counting import agreeing, counted

Admit = Callable[[Sequence[str]], Sequence[str]]
"""Gives back those paths that may be shown, in the same order; a folder's path ends in a slash."""
Wanted = Literal["file", "folder", "any"]
AnyKind = Kind | Literal["other"]

SEARCH_SECONDS = 20.0
"""How long a search may take before it gives back what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """What is looked for: any of these, in one walk."""

    patterns: tuple[str, ...]
    literal: bool = False
    case_sensitive: bool = True
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
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
class Gaps:
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
        return self == Gaps()

    @property
    def notes(self) -> list[str]:
        """What was left out, as sentences; that a search stopped at a full page goes without saying."""
        notes = []
        if self.timed_out:
            notes.append("The time ran out: what is shown is a part. Narrow the search.")
        if self.unreadable:
            paths, were = counted(self.unreadable, "path"), agreeing(self.unreadable, "was")
            notes.append(f"{paths} could not be read and {were} skipped ({self.example[:200]}).")
        if self.binary:
            files, were = counted(self.binary, "binary file"), agreeing(self.binary, "was")
            notes.append(f"{files} {were} searched only up to the first NUL.")
        if self.withheld:
            paths, need = counted(self.withheld, "path"), agreeing(self.withheld, "needs")
            notes.append(f"{paths} {need} a person's approval: left out.")
        if self.unparsed:
            files, were = counted(self.unparsed, "file"), agreeing(self.unparsed, "was")
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
    gaps: Gaps = Gaps()


@dataclass(frozen=True, slots=True)
class Tally:
    """How often something occurs in one file."""

    path: str
    matches: int


@dataclass(frozen=True, slots=True)
class Tallies:
    """Files that hold it, in the order of their paths, and what is missing."""

    tallies: tuple[Tally, ...]
    gaps: Gaps = Gaps()


class Entry(NamedTuple):
    """What a folder holds under one name; size and time are None where they can't be had."""

    path: str
    kind: AnyKind
    bytes: int | None = None
    modified: float | None = None


@dataclass(frozen=True, slots=True)
class Paths:
    """Some of the paths that match, newest first, and how many there are."""

    found: tuple[Entry, ...]
    total: int
    gaps: Gaps = Gaps()


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds, column by column: an object for each of very many would cost more than the disk."""

    paths: Sequence[str] = ()
    """A folder's path ends in a slash."""
    kinds: Sequence[AnyKind] = ()
    sizes: Sequence[int | None] = ()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Listing":
        """The same entries in columns."""
        rows = [(path + "/" * (kind == "folder"), kind, size) for path, kind, size, _ in entries]
        return cls(*zip(*rows, strict=True)) if rows else cls()

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Entry]:
        for path, kind, size in zip(self.paths, self.kinds, self.sizes, strict=True):
            yield Entry(path.removesuffix("/"), kind, size)

    def first(self, most: int) -> "Listing":
        """The beginning of it."""
        if most >= len(self.paths):
            return self
        return Listing(self.paths[:most], self.kinds[:most], self.sizes[:most])

    def picked(self, numbers: Sequence[int]) -> "Listing":
        """Some of it, in an order."""
        return Listing(
            [self.paths[number] for number in numbers],
            [self.kinds[number] for number in numbers],
            [self.sizes[number] for number in numbers],
        )


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder and those below it, folders before files and each by name, as deep and wide as was asked for."""

    entries: Listing
    below: Mapping[str, Listing] = field(default_factory=dict)
    """What is in the folders that were looked into, by their paths; upper levels first."""
    left_out: int = 0
    """Entries beyond the limit."""
    unvisited: int = 0
    """Folders that were not opened because the limit was reached."""
    ignored: int = 0
    """Entries that ignore files or the usual habits leave out."""
    gaps: Gaps = Gaps()

    @property
    def every(self) -> Listing:
        """All that was seen, upper levels first."""
        if not self.below:
            return self.entries
        seen = [self.entries, *self.below.values()]
        return Listing(
            [path for each in seen for path in each.paths],
            [kind for each in seen for kind in each.kinds],
            [size for each in seen for size in each.sizes],
        )
