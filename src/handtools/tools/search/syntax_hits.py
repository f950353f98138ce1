"""Hits by syntactic role and by structural pattern."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from handtools.core.errors import InvalidInput
from handtools.core.search import Hit, Hits, Search, SearchPatterns, SearchScope
from handtools.core.syntax import Syntax, SyntaxRole, TextPosition
from handtools.text.search.file_ranking import path_sort_key
from handtools.tools.search.ranked_hits import MAX_PARSED_HITS, _lines, _paths

MAX_PARSED_FILES = 300


"""Most files that are parsed for a structural pattern."""


MAX_MATCH_LINES = 6


"""Most lines shown of a long structural match."""


_HOLE = re.compile(r"\$+\w*")


_WORD = re.compile(r"[^\W\d]\w+")


async def hits_with_syntactic_role(
    search: Search, syntax: Syntax, patterns: SearchPatterns, scope: SearchScope, kind: SyntaxRole
) -> Hits:
    """Search for hits whose text has the given syntactic role."""
    found = await search.hits(patterns, scope, most=MAX_PARSED_HITS)
    sources = await search.read(_paths(found.hits))
    kept: list[Hit] = []
    for path, group in groupby(found.hits, key=lambda hit: hit.path):
        if path not in sources:
            continue
        spots = {TextPosition(hit.line, start): hit for hit in group for start, _ in hit.spans}
        roles = await syntax.classify(path, sources[path], list(spots)) or {}
        kept += dict.fromkeys(hit for spot, hit in spots.items() if kind in roles.get(spot, ()))
    unparsed = len({hit.path for hit in found.hits} - sources.keys())
    unseen = f"Only the first {MAX_PARSED_HITS:,} matches were parsed." if found.gaps.capped else ""
    return Hits(tuple(kept), replace(found.gaps, capped=False, unparsed=unparsed, unseen=unseen))


async def structural_hits(
    search: Search, syntax: Syntax, patterns: Sequence[str], scope: SearchScope
) -> Hits:
    """Find matches of structural patterns in files that contain each pattern's longest word."""
    words = [max(_WORD.findall(_HOLE.sub(" ", one)), key=len, default="") for one in patterns]
    if not all(words):
        hint = "Write `open($FILE)`, not only `$CALL($FILE)`."
        raise InvalidInput("A structural pattern needs a word to look for.", hint=hint)
    literal = SearchPatterns(patterns=tuple(words), literal=True)
    files = await search.tallies(literal, scope, most=MAX_PARSED_FILES)
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
                text = "\n".join(lines[match.start.line - 1 : match.end.line][:MAX_MATCH_LINES])
                found.add(Hit(path, match.start.line, text, ((match.start.column, len(text)),)))
    unread = [refusals[pattern] for pattern in patterns if pattern in refusals and pattern not in read]
    if unread:
        raise unread[0]
    ordered = sorted(found, key=lambda hit: (path_sort_key(hit.path), hit.line, hit.spans))
    unparsed = len({tally.path for tally in files.tallies} - sources.keys())
    words_there = " or ".join(f"`{word}`" for word in dict.fromkeys(words))
    unseen = (
        f"Only the first {MAX_PARSED_FILES} files with {words_there} were parsed."
        if files.gaps.capped
        else ""
    )
    return Hits(tuple(ordered), replace(files.gaps, capped=False, unparsed=unparsed, unseen=unseen))
