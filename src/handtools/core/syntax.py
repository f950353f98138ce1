"""Syntax: what a parser knows about a file, as values."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

SymbolKind = Literal[
    "class",
    "constant",
    "element",
    "enum",
    "field",
    "function",
    "heading",
    "impl",
    "interface",
    "key",
    "macro",
    "method",
    "namespace",
    "property",
    "rule",
    "struct",
    "trait",
    "type",
    "variable",
]
Role = Literal["definition", "call", "import", "comment", "string"]
"""What a piece of text is to the parser; text may be none of these."""

_SEPARATOR = re.compile(r"::|[.#/]")


class Symbol(NamedTuple):
    """Something a file defines: its name and its lines. A tuple, because they are made by the thousand."""

    name: str
    kind: SymbolKind
    start_line: int
    """The first line, decorators included."""
    end_line: int
    line: int
    """The line where its name stands."""
    body_line: int | None = None
    """The first line below its head: what a folded view may leave out."""
    children: tuple["Symbol", ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """The symbols of a file, outermost first, in the order they stand."""

    language: str
    symbols: tuple[Symbol, ...]
    broken_lines: tuple[int, ...] = ()
    """Where the parser met what it could not read; the symbols around it are still good."""


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in a text: a line from 1, and characters from 0 on that line."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Match:
    """Where a structural pattern matched: from the first character to just after the last."""

    start: Spot
    end: Spot
    text: str


def enclosing(symbols: Iterable[Symbol], line: int) -> tuple[Symbol, ...]:
    """Give the symbols around a line, outermost first."""
    for symbol in symbols:
        if symbol.start_line <= line <= symbol.end_line:
            return (symbol, *enclosing(symbol.children, line))
    return ()


def flattened(symbols: Iterable[Symbol], outer: tuple[Symbol, ...] = ()) -> Iterator[tuple[Symbol, ...]]:
    """Give the way to every symbol, outermost first, in the order they stand."""
    for symbol in symbols:
        way = (*outer, symbol)
        yield way
        yield from flattened(symbol.children, way)


def qualified(way: Sequence[Symbol]) -> str:
    """Give the full name of a symbol: the names on the way to it, dotted."""
    return ".".join(symbol.name for symbol in way)


def named(symbols: Iterable[Symbol], wanted: str) -> list[tuple[Symbol, ...]]:
    """Find what a name such as `Class.method` means: its full name, else the end of one."""
    parts = _parts(wanted)
    ways = [(way, _parts(qualified(way))) for way in flattened(symbols)]
    exact = [way for way, own in ways if own == parts]
    return exact or [way for way, own in ways if own[-len(parts) :] == parts]


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATOR.split(name) if part]
