"""Pointing: between symbols by name and line, as a model knows them, and the places that servers speak of."""

import re
from collections.abc import Sequence

from handtools.core.errors import InvalidInput, NoMatch
from handtools.core.language import Place
from handtools.core.ports import Search, Syntax
from handtools.core.searching import Hit
from handtools.core.syntax import Spot, named
from handtools.text.encoding import decode
from handtools.text.lines import bare, split

NEAR = 3
"""Lines that a model may be off by."""
LISTED = 10
_LAST = re.compile(r"[^\W\d][\w$]*\Z")


async def spot(syntax: Syntax, path: str, data: bytes, symbol: str, line: int | None) -> Spot:
    """Where a name stands: on its line or near it; without a line, where the file defines it."""
    rows = [bare(row) for row in split(decode(data).body)]
    match = _LAST.search(symbol)
    if match is None:
        raise InvalidInput(f"`{symbol}` is no name.", hint="Give the name alone, such as `Reader.read`.")
    word = re.compile(rf"(?<![\w$]){re.escape(match[0])}(?![\w$])")
    places = [
        Spot(number, found.start()) for number, row in enumerate(rows, 1) if (found := word.search(row))
    ]
    if not places:
        raise NoMatch(
            f"`{match[0]}` does not stand in {path}.", hint="Read the file, or search for the name."
        )
    if line is not None:
        nearest = min(places, key=lambda place: abs(place.line - line))
        if abs(nearest.line - line) <= NEAR:
            return nearest
        lines = ", ".join(str(place.line) for place in places[:LISTED])
        raise NoMatch(f"`{match[0]}` is not on line {line} of {path}.", hint=f"It stands on lines {lines}.")
    outline = await syntax.outline(path, data)
    ways = named(outline.symbols, symbol) if outline else []
    if ways:
        defined = ways[0][-1].line
        return next((place for place in places if place.line == defined), places[0])
    return places[0]


async def hits_of(search: Search, places: Sequence[Place]) -> list[Hit]:
    """Places with the lines that they are on, each line once."""
    sources = await search.read(list(dict.fromkeys(place.path for place in places)))
    rows = {path: split(decode(data).body) for path, data in sources.items()}
    found: dict[tuple[str, int], Hit] = {}
    for place in sorted(places, key=lambda place: (place.path, place.line, place.column)):
        lines = rows.get(place.path, [])
        text = bare(lines[place.line - 1]) if place.line <= len(lines) else place.name
        span = (place.column, place.column + max(len(place.name), 1))
        found.setdefault((place.path, place.line), Hit(place.path, place.line, text, (span,)))
    return list(found.values())
