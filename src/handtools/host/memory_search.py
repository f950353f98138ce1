"""Memory search: looking through files in memory, under the same contract as ripgrep over a disk.

Patterns are Python's, which differ from ripgrep's in rare signs and may take exponential time: good for tests.
"""

import re
from collections.abc import Iterator
from itertools import islice

from handtools.core.errors import InvalidInput
from handtools.core.searching import (
    Admit,
    Entry,
    Gaps,
    Hit,
    Hits,
    Listing,
    Paths,
    Patterns,
    Scope,
    Tallies,
    Tally,
    Tree,
    Wanted,
)
from handtools.host.memory_files import MemoryFiles
from handtools.text.encoding import decode
from handtools.text.globbing import AnyGlob
from handtools.text.ignoring import IGNORE_FILES, Ignores, leaves_out
from handtools.text.lines import adopt
from handtools.text.selecting import Selection

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})


class MemorySearch:
    """The HostSearch port over `MemoryFiles`."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files

    async def hits(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Hits:
        """The first hits in the order of their paths."""
        wanted = _compiled(patterns)
        texts = self._texts(scope, admit)
        every = (found for path, text in texts for found in _hits(path, text, wanted, patterns))
        found = list(islice(every, most + 1))
        return Hits(tuple(found[:most]), Gaps(capped=len(found) > most))

    async def tallies(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Tallies:
        """The first files that hold it, and how often."""
        wanted = _compiled(patterns)
        counts = ((path, len(wanted.findall(text))) for path, text in self._texts(scope, admit))
        found = list(islice((Tally(path, count) for path, count in counts if count), most + 1))
        return Tallies(tuple(found[:most]), Gaps(capped=len(found) > most))

    async def paths(self, scope: Scope, *, wanted: Wanted, most: int, admit: Admit) -> Paths:
        """The newest paths below a folder, and how many there are."""
        asked = _selection(scope, itself=wanted != "file")
        found = [
            entry
            for entry in self._walk(scope.root, self._above(scope), scope, admit)
            if wanted in {"any", entry.kind} and asked.takes(entry.path)
        ]
        found.sort(key=lambda entry: (-(entry.modified or 0.0), entry.path))
        return Paths(tuple(found[:most]), len(found))

    async def tree(self, scope: Scope, *, depth: int, most: int, admit: Admit) -> Tree:
        """What a folder holds, level by level until enough is shown."""
        looks: dict[str, list[Entry]] = {}
        waiting = [(scope.root, self._above(scope), 1)]
        left, left_out, unvisited, ignored = most, 0, 0, 0
        for folder, ignores, level in waiting:
            if left <= 0:
                unvisited += 1
                continue
            entries, below, passed = self._look(folder, ignores, scope, admit)
            entries.sort(key=lambda entry: (entry.kind != "folder", entry.path))
            looks[folder] = entries[:left]
            left_out, ignored = left_out + len(entries[left:]), ignored + passed
            left -= len(looks[folder])
            if level < depth:
                waiting += [(e.path, below, level + 1) for e in looks[folder] if e.kind == "folder"]
        listings = {folder: Listing.of(entries) for folder, entries in looks.items()}
        return Tree(listings.pop(scope.root), listings, left_out, unvisited, ignored)

    def _texts(self, scope: Scope, admit: Admit) -> Iterator[tuple[str, str]]:
        asked = _selection(scope)
        facts = self._files.facts(scope.root)
        if facts is not None and facts.kind == "file":
            entries = [Entry(scope.root, "file")] if admit([scope.root]) else []
        else:
            entries = list(self._walk(scope.root, self._above(scope), scope, admit))
        paths = [entry.path for entry in entries if entry.kind == "file" and asked.takes(entry.path)]
        for path in sorted(paths, key=lambda path: path.split("/")):
            data = self._files.read(path)
            if b"\0" not in data:
                yield path, adopt(decode(data).body, "\n")

    def _walk(self, folder: str, ignores: Ignores, scope: Scope, admit: Admit) -> Iterator[Entry]:
        entries, below, _ = self._look(folder, ignores, scope, admit)
        for entry in entries:
            yield entry
            if entry.kind == "folder":
                yield from self._walk(entry.path, below, scope, admit)

    def _look(
        self, folder: str, ignores: Ignores, scope: Scope, admit: Admit
    ) -> tuple[list[Entry], Ignores, int]:
        facts = self._files.names(folder)
        inside = "" if folder == "." else folder
        if not scope.ignored:
            ignores = self._into(ignores, inside)
        excluded = AnyGlob(scope.exclude, case_sensitive=False)
        kept: list[Entry] = []
        ignored = 0
        for found in facts:
            name, below = found.path.rpartition("/")[2], found.kind == "folder"
            if name in VERSION_CONTROL:
                continue
            passed = leaves_out(ignores, found.path, folder=below, hidden=scope.hidden)
            if passed or scope.skips(name, folder=below):
                ignored += 1
                continue
            shown = found.path + "/" * below
            if not excluded.matches(found.path, folder=below) and admit([shown]):
                kept.append(Entry(found.path, found.kind, None if below else found.bytes, found.modified))
        return kept, ignores, ignored

    def _above(self, scope: Scope) -> Ignores:
        ignores = Ignores()
        if scope.ignored or scope.root == ".":
            return ignores
        parts = scope.root.split("/")
        for depth in range(len(parts)):
            path = "/".join(parts[:depth])
            ignores = self._into(ignores, path)
        return ignores

    def _into(self, ignores: Ignores, folder: str) -> Ignores:
        git = self._files.facts(f"{folder}/.git" if folder else ".git")
        return ignores.into(folder, self._ignore_texts(folder), repository=git is not None)

    def _ignore_texts(self, folder: str) -> dict[str, str]:
        files = self._files.files
        paths = {name: f"{folder}/{name}" if folder else name for name in IGNORE_FILES}
        return {
            name: files[path].decode("utf-8", "replace") for name, path in paths.items() if path in files
        }


def _compiled(patterns: Patterns) -> re.Pattern[str]:
    each = [re.escape(one) if patterns.literal else one for one in patterns.patterns]
    flags = re.MULTILINE if patterns.case_sensitive else re.MULTILINE | re.IGNORECASE
    try:
        return re.compile("|".join(f"(?:{one})" for one in each), flags)
    except re.error as problem:
        hint = "Escape what is meant as it is, or set syntax='literal'."
        raise InvalidInput(f"The pattern can't be used: {problem}.", hint=hint) from None


def _hits(path: str, text: str, wanted: re.Pattern[str], patterns: Patterns) -> Iterator[Hit]:
    if patterns.multiline:
        yield from _blocks(path, text, wanted)
        return
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        spans = tuple(match.span() for match in wanted.finditer(line))
        if spans:
            yield Hit(path, number, line, spans)


def _blocks(path: str, text: str, wanted: re.Pattern[str]) -> Iterator[Hit]:
    """Whole lines around each match, those that share a line together."""
    spans: list[tuple[int, int]] = []
    end, start = -1, 0
    for match in wanted.finditer(text):
        begins = text.rfind("\n", 0, match.start()) + 1
        if spans and begins > end:
            yield _block(path, text, start, end, spans)
            spans = []
        start = start if spans else begins
        spans.append(match.span())
        end = max(end, text.find("\n", max(match.end() - 1, match.start())))
        end = len(text) if end < 0 else end
    if spans:
        yield _block(path, text, start, end, spans)


def _block(path: str, text: str, start: int, end: int, spans: list[tuple[int, int]]) -> Hit:
    inside = tuple((min(a, end) - start, min(b, end) - start) for a, b in spans)
    return Hit(path, text.count("\n", 0, start) + 1, text[start:end], inside)


def _selection(scope: Scope, *, itself: bool = False) -> Selection:
    return Selection(
        scope.include,
        root=scope.root,
        case_sensitive=scope.case_sensitive,
        hidden=scope.hidden,
        itself=itself,
    )
