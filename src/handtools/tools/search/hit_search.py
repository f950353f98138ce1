"""Search requests for text, syntactic roles or structural patterns, and reasons for empty results."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from handtools.core.errors import InvalidInput
from handtools.core.search import Hit, Hits, MatchCount, MatchCounts, Search, SearchPatterns, SearchScope
from handtools.core.syntax import Syntax, SyntaxRole, TextPosition
from handtools.text.plurals import inflect_for_number
from handtools.text.search.file_ranking import path_sort_key
from handtools.tools.search.ranked_hits import MAX_COUNTED_FILES, RANKING_BLOCK, paths_of_hits, source_lines

MAX_PARSED_HITS = 1_000
"""Most hits that are parsed to find those with a syntactic role."""
EMPTY_RESULT_PROBE_SECONDS = 0.25
"""Time limit in seconds of each search that explains an empty result; short, since it was not requested."""
MAX_PARSED_FILES = 300
"""Most files that are parsed for a structural pattern."""
MAX_MATCH_LINES = 6
"""Most lines shown of a long structural match."""
_HOLE = re.compile(r"\$+\w*")
_WORD = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitQuery:
    """Search request: patterns, scope, and a syntactic role or structural pattern."""

    patterns: SearchPatterns
    scope: SearchScope
    shape: bool = False
    """Whether the patterns are structural (ast-grep) instead of text."""
    kind: SyntaxRole | None = None

    async def hits(self, search: Search, syntax: Syntax, *, most: int) -> Hits:
        """Search and return up to `most` hits sorted by path; syntax searches return all parsed hits."""
        if self.shape:
            return await _structural_hits(search, syntax, self.patterns.patterns, self.scope)
        if self.kind is not None:
            return await _hits_with_syntactic_role(search, syntax, self.patterns, self.scope, self.kind)
        return await search.hits(self.patterns, self.scope, most=most)

    async def tallies(self, search: Search, syntax: Syntax) -> MatchCounts:
        """Search and return match counts by file."""
        if not self.shape and self.kind is None:
            return await search.tallies(self.patterns, self.scope, most=MAX_COUNTED_FILES)
        found = await self.hits(search, syntax, most=MAX_PARSED_HITS)
        counts = Counter(hit.path for hit in found.hits)
        return MatchCounts(tuple(MatchCount(path, count) for path, count in counts.items()), found.gaps)


async def why_no_hits(search: Search, query: HitQuery) -> list[str]:
    """Explain an empty search result: sentences on hits that other options would have found."""
    patterns, scope, kind = query.patterns, query.scope, query.kind
    if query.shape:
        return []
    if kind is not None:
        others = await _hits_elsewhere(
            search, patterns, scope, f"that the parser does not classify as a {kind} (kind)"
        )
        if others:
            return others
    wider = {
        "in hidden or ignored files (include_ignored)": (
            patterns,
            replace(scope, hidden=True, ignored=True),
        ),
        "when case is ignored (case_sensitive=false)": (replace(patterns, case_sensitive=False), scope),
        "outside `include`": (patterns, replace(scope, include=())),
    }
    notes = []
    for where, (other, there) in wider.items():
        if (other, there) != (patterns, scope):
            notes += await _hits_elsewhere(search, other, there, where)
    return notes


async def _hits_elsewhere(
    search: Search, patterns: SearchPatterns, scope: SearchScope, where: str
) -> list[str]:
    found = await search.hits(
        patterns, replace(scope, timeout=EMPTY_RESULT_PROBE_SECONDS), most=RANKING_BLOCK
    )
    if not found.hits:
        return [f"There may be some {where}: that search timed out."] if found.gaps.timed_out else []
    unsure = "more than " if found.gaps.capped else "at least " if found.gaps.timed_out else ""
    return [f"There {inflect_for_number(len(found.hits), 'is')} {unsure}{len(found.hits)} {where}."]


async def _hits_with_syntactic_role(
    search: Search, syntax: Syntax, patterns: SearchPatterns, scope: SearchScope, kind: SyntaxRole
) -> Hits:
    """Search for hits whose text has the given syntactic role."""
    found = await search.hits(patterns, scope, most=MAX_PARSED_HITS)
    sources = await search.read(paths_of_hits(found.hits))
    hits: list[Hit] = []
    for path, group in groupby(found.hits, key=lambda hit: hit.path):
        if path not in sources:
            continue
        spots = {TextPosition(hit.line, start): hit for hit in group for start, _ in hit.spans}
        roles = await syntax.classify(path, sources[path], list(spots)) or {}
        hits += dict.fromkeys(hit for spot, hit in spots.items() if kind in roles.get(spot, ()))
    unparsed = len({hit.path for hit in found.hits} - sources.keys())
    unseen = f"Only the first {MAX_PARSED_HITS:,} matches were parsed." if found.gaps.capped else ""
    return Hits(tuple(hits), replace(found.gaps, capped=False, unparsed=unparsed, unseen=unseen))


async def _structural_hits(
    search: Search, syntax: Syntax, patterns: Sequence[str], scope: SearchScope
) -> Hits:
    """Find matches of structural patterns in files that contain each pattern's longest word."""
    words = [max(_WORD.findall(_HOLE.sub(" ", one)), key=len, default="") for one in patterns]
    if not all(words):
        hint = "Write `open($FILE)`, not only `$CALL($FILE)`."
        raise InvalidInput("A structural pattern needs a literal word.", hint=hint)
    search_patterns = SearchPatterns(patterns=tuple(words), literal=True)
    files = await search.tallies(search_patterns, scope, most=MAX_PARSED_FILES)
    sources = await search.read([tally.path for tally in files.tallies])
    hits: set[Hit] = set()
    errors: dict[str, InvalidInput] = {}
    read: set[str] = set()
    for path, data in sources.items():
        lines = source_lines(data)
        for pattern in patterns:
            try:
                matches = await syntax.structural(path, data, pattern)
            except InvalidInput as refusal:
                # A pattern that is invalid in one language may be valid in another.
                errors[pattern] = refusal
                continue
            if matches is not None:
                read.add(pattern)
            for match in matches or ():
                text = "\n".join(lines[match.start.line - 1 : match.end.line][:MAX_MATCH_LINES])
                hits.add(Hit(path, match.start.line, text, ((match.start.column, len(text)),)))
    unread = [errors[pattern] for pattern in patterns if pattern in errors and pattern not in read]
    if unread:
        raise unread[0]
    ordered = sorted(hits, key=lambda hit: (path_sort_key(hit.path), hit.line, hit.spans))
    unparsed = len({tally.path for tally in files.tallies} - sources.keys())
    words_there = " or ".join(f"`{word}`" for word in dict.fromkeys(words))
    unseen = (
        f"Only the first {MAX_PARSED_FILES} files with {words_there} were parsed."
        if files.gaps.capped
        else ""
    )
    return Hits(tuple(ordered), replace(files.gaps, capped=False, unparsed=unparsed, unseen=unseen))
