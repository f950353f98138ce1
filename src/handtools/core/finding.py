"""Finding: hits together with what parsers know about them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

from handtools.core.errors import InvalidInput
from handtools.core.ports import Search, Syntax
from handtools.core.searching import Hit, Hits, Patterns, Scope, Tallies, Tally
from handtools.core.syntax import Role, Spot, Symbol
from handtools.text import cursors
from handtools.text.citing import Citation, cite
from handtools.text.counting import agreeing, counted
from handtools.text.cursors import Cursor
from handtools.text.encoding import decode
from handtools.text.lines import bare, split
from handtools.text.ranking import components, defines, tier
from handtools.text.tokens import estimate

PARSED_HITS = 1_000
"""How many hits are looked at to find those of a kind."""
PARSED_FILES = 300
"""How many files are parsed for a structural pattern."""
SHOWN_LINES = 6
"""How much of a long structural match is shown."""
BLOCK = 100
"""Hits are ranked within blocks of so many, in the order of paths: no search has to find all to show the first."""
COUNTED_FILES = 10_000
"""How many files are counted at the most."""
PROBE_SECONDS = 5.0
"""How long each look for what was missed may take."""
_HOLE = re.compile(r"\$+\w*")
_WORD = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, slots=True)
class Sight:
    """A hit, the symbols around it, and how it is shown."""

    hit: Hit
    symbols: tuple[Symbol, ...]
    citation: Citation


T = TypeVar("T", Hit, Tally)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what was found, out of ranked blocks, and where it is."""

    found: list[T]
    start: int
    """How many come before them."""
    moved: bool
    """Whether what is found is no longer what the page before was taken from."""
    keys: list[str]
    block: int
    """Where the block begins that the first is out of."""
    size: int

    def after(self, shown: int) -> str:
        """The cursor for the page that follows the first `shown` of this one."""
        return str(cursors.cursor(self.keys, self.block, self.size, self.start - self.block + shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked for, where, and what it has to be to the parser."""

    patterns: Patterns
    scope: Scope
    shape: bool = False
    """Whether the patterns are structural."""
    kind: Role | None = None

    async def hits(self, search: Search, syntax: Syntax, *, most: int) -> Hits:
        """Hits in the order of paths; where a parser decides, all that it was shown."""
        if self.shape:
            return await structural(search, syntax, self.patterns.patterns, self.scope)
        if self.kind is not None:
            return await of_kind(search, syntax, self.patterns, self.scope, self.kind)
        return await search.hits(self.patterns, self.scope, most=most)

    async def tallies(self, search: Search, syntax: Syntax) -> Tallies:
        """The files that hold it, and how often."""
        if not self.shape and self.kind is None:
            return await search.tallies(self.patterns, self.scope, most=COUNTED_FILES)
        found = await self.hits(search, syntax, most=PARSED_HITS)
        counts = Counter(hit.path for hit in found.hits)
        return Tallies(tuple(Tally(path, count) for path, count in counts.items()), found.gaps)


def reach(offset: int, cursor: Cursor | None, limit: int) -> int:
    """How many hits must be found to have a page; after a cursor a block more, should hits have been added."""
    if cursor is None:
        return -(-(offset + limit) // BLOCK) * BLOCK
    return (cursor.block + 1 - (-(cursor.shown + limit) // BLOCK)) * BLOCK


def page(found: Hits, root: str, *, offset: int, cursor: Cursor | None, limit: int) -> Page[Hit]:
    """A page of what was found; blocks are of one size, however large the pages are that are asked for."""
    keys = _keys(found.hits)
    place = cursors.Place(offset // BLOCK * BLOCK, offset % BLOCK, moved=False)
    if cursor:
        place = cursors.place(cursor, keys, BLOCK)
    ahead: list[Hit] = []
    for start in range(place.start, place.start + place.shown + limit, BLOCK):
        ahead += ranked(found.hits[start : start + BLOCK], root)
    shown = ahead[place.shown :][:limit]
    _check(shown, f"{agreeing(len(keys), 'is')} only {counted(len(keys), 'match')}")
    return Page(shown, place.start + place.shown, place.moved, keys, place.start, BLOCK)


def files(found: Tallies, *, by_count: bool, offset: int, cursor: Cursor | None, limit: int) -> Page[Tally]:
    """A page of files: all of them are one block, as they are known before any is shown."""
    ranking = ordered(found.tallies, by_count=by_count)
    keys = [f"{tally.path}\0{tally.matches * by_count}" for tally in ranking]
    place = cursors.place(cursor, keys, COUNTED_FILES) if cursor else cursors.Place(0, offset, moved=False)
    shown = ranking[place.shown :][:limit]
    _check(shown, f"{agreeing(len(keys), 'is')} only {counted(len(keys), 'file')}")
    return Page(shown, place.shown, place.moved, keys, 0, COUNTED_FILES)


def _check(shown: Sequence[Hit | Tally], there: str) -> None:
    if not shown:
        raise InvalidInput(f"There {there}.", hint="Use a smaller offset.")


def _keys(hits: Sequence[Hit]) -> list[str]:
    """What names each hit: no line number, as lines that were added above it do not make it another one."""
    keys = [f"{hit.path}\0{hit.text}" for hit in hits]
    if len(set(keys)) == len(keys):
        return keys
    before: Counter[str] = Counter()
    for index, key in enumerate(keys):
        before[key] += 1
        keys[index] = f"{key}\0{before[key]}"
    return keys


async def missed(search: Search, asked: Asked) -> list[str]:
    """Why nothing was found, as sentences: what there would be if less was left out."""
    patterns, scope, kind = asked.patterns, asked.scope, asked.kind
    if asked.shape:
        return []
    if kind is not None:
        others = await _there(search, patterns, scope, f"that the parser does not take for a {kind} (kind)")
        if others:
            return others
    wider = {
        "in hidden or ignored files (include_ignored)": (
            patterns,
            replace(scope, hidden=True, ignored=True),
        ),
        "when case is ignored (case_sensitive=false)": (replace(patterns, case_sensitive=False), scope),
        "outside of `include`": (patterns, replace(scope, include=())),
    }
    notes = []
    for where, (other, there) in wider.items():
        if (other, there) != (patterns, scope):
            notes += await _there(search, other, there, where)
    return notes


async def _there(search: Search, patterns: Patterns, scope: Scope, where: str) -> list[str]:
    found = await search.hits(patterns, replace(scope, timeout=PROBE_SECONDS), most=BLOCK)
    count = f"more than {BLOCK}" if found.gaps.capped else f"{len(found.hits)}"
    return [f"There {agreeing(len(found.hits), 'is')} {count} {where}."] if found.hits else []


async def of_kind(search: Search, syntax: Syntax, patterns: Patterns, scope: Scope, kind: Role) -> Hits:
    """Those hits that are of a kind to the parser."""
    found = await search.hits(patterns, scope, most=PARSED_HITS)
    sources = await search.read(_paths(found.hits))
    kept: list[Hit] = []
    for path, group in groupby(found.hits, key=lambda hit: hit.path):
        if path not in sources:
            continue
        spots = {Spot(hit.line, start): hit for hit in group for start, _ in hit.spans}
        roles = await syntax.classify(path, sources[path], list(spots)) or {}
        kept += dict.fromkeys(hit for spot, hit in spots.items() if kind in roles.get(spot, ()))
    unparsed = len({hit.path for hit in found.hits} - sources.keys())
    unseen = f"Only the first {PARSED_HITS:,} matches were parsed." if found.gaps.capped else ""
    return Hits(tuple(kept), replace(found.gaps, capped=False, unparsed=unparsed, unseen=unseen))


async def structural(search: Search, syntax: Syntax, patterns: Sequence[str], scope: Scope) -> Hits:
    """Matches of structural patterns, in the files that hold the longest word of each."""
    words = [max(_WORD.findall(_HOLE.sub(" ", one)), key=len, default="") for one in patterns]
    if not all(words):
        hint = "Write `open($FILE)`, not only `$CALL($FILE)`."
        raise InvalidInput("A structural pattern needs a word to look for.", hint=hint)
    literal = Patterns(patterns=tuple(words), literal=True)
    files = await search.tallies(literal, scope, most=PARSED_FILES)
    sources = await search.read([tally.path for tally in files.tallies])
    found: set[Hit] = set()
    refusals: dict[str, InvalidInput] = {}
    read: set[str] = set()
    for path, data in sources.items():
        lines = _lines(data)
        for pattern in patterns:
            try:
                matches = await syntax.structural(path, data, pattern)
            except InvalidInput as refusal:
                # What is no code in one language may be in the next.
                refusals[pattern] = refusal
                continue
            if matches is not None:
                read.add(pattern)
            for match in matches or ():
                text = "\n".join(lines[match.start.line - 1 : match.end.line][:SHOWN_LINES])
                found.add(Hit(path, match.start.line, text, ((match.start.column, len(text)),)))
    unread = [refusals[pattern] for pattern in patterns if pattern in refusals and pattern not in read]
    if unread:
        raise unread[0]
    ordered = sorted(found, key=lambda hit: (components(hit.path), hit.line, hit.spans))
    unparsed = len({tally.path for tally in files.tallies} - sources.keys())
    words_there = " or ".join(f"`{word}`" for word in dict.fromkeys(words))
    unseen = (
        f"Only the first {PARSED_FILES} files with {words_there} were parsed." if files.gaps.capped else ""
    )
    return Hits(tuple(ordered), replace(files.gaps, capped=False, unparsed=unparsed, unseen=unseen))


def ranked(hits: Sequence[Hit], root: str) -> list[Hit]:
    """Source before tests, files that define it before those that use it: the same for the same hits."""
    start = 0 if root in {"", "."} else len(root) + 1
    files: dict[str, list[Hit]] = {}
    for hit in hits:
        files.setdefault(hit.path, []).append(hit)

    def rank(path: str) -> tuple[int, bool, tuple[str, ...]]:
        defining = defines([(hit.text, hit.spans) for hit in files[path]])
        return tier(path[start:]), not defining, components(path)

    return [hit for path in sorted(files, key=rank) for hit in files[path]]


async def sights(search: Search, syntax: Syntax, hits: Sequence[Hit], context: int) -> list[Sight]:
    """Hits with their surroundings; a file that changed since it was searched is shown without any."""
    sources = await search.read(_paths(hits))
    seen: list[Sight] = []
    for path, group in groupby(hits, key=lambda hit: hit.path):
        of_file = list(group)
        data = sources.get(path)
        if data is None:
            seen += [Sight(hit, (), _citation(hit)) for hit in of_file]
            continue
        lines = _lines(data) if context else []
        around = await syntax.enclosing(path, data, [hit.line for hit in of_file])
        last: tuple[Symbol, ...] = ()
        crumbs = ""
        for hit in of_file:
            symbols = around.get(hit.line, ())
            if symbols != last:
                last, crumbs = symbols, _crumbs(symbols)
            seen.append(Sight(hit, symbols, _citation(hit, crumbs, lines, context)))
    return seen


def shown(seen: Sequence[Sight]) -> str:
    """Sights as text, file by file."""
    files = groupby(seen, key=lambda sight: sight.hit.path)
    return "\n".join(cite(path, [sight.citation for sight in group]) for path, group in files)


def fitted(seen: Sequence[Sight], tokens: int) -> tuple[str, int]:
    """As many sights as fit, without surroundings if need be; one at least. The text, and how many."""
    text, count = "", 0
    for some in _smaller(seen):
        text, count = shown(some), len(some)
        if estimate(text) <= tokens:
            break
    return text, count


def _smaller(seen: Sequence[Sight]) -> Iterator[Sequence[Sight]]:
    yield seen
    bare = [Sight(sight.hit, sight.symbols, _citation(sight.hit, sight.citation.crumbs)) for sight in seen]
    for count in range(len(bare), 0, -1):
        yield bare[:count]


def _crumbs(symbols: Sequence[Symbol]) -> str:
    return " › ".join([f"{symbol.name} {symbol.start_line}-{symbol.end_line}" for symbol in symbols])


def _citation(hit: Hit, crumbs: str = "", lines: Sequence[str] = (), context: int = 0) -> Citation:
    at = hit.spans[0][0] if hit.spans else 0
    if not lines:
        return Citation(hit.line, hit.text, at, crumbs, part=hit.clipped)
    first, last = hit.line - context, hit.end_line + context
    unchanged = lines[hit.line - 1 : hit.line] and hit.text.startswith(lines[hit.line - 1])
    numbers = range(max(first, 1), min(last, len(lines)) + 1) if unchanged else ()
    around = {number: lines[number - 1] for number in numbers}
    return Citation(hit.line, hit.text, at, crumbs, around, hit.clipped)


def _lines(data: bytes) -> list[str]:
    """The lines of a file as `read` counts them."""
    return [bare(line) for line in split(decode(data).body)]


def ordered(tallies: Sequence[Tally], *, by_count: bool) -> list[Tally]:
    """Files, the best first; or the most frequent first."""

    def rank(tally: Tally) -> tuple[int, tuple[str, ...]]:
        return (-tally.matches if by_count else tier(tally.path), components(tally.path))

    return sorted(tallies, key=rank)


def _paths(hits: Sequence[Hit]) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in hits))
