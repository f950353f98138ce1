"""Syntax: symbols, outlines and structural matches that a parser finds, and the port for it. ADR 20."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

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
SyntaxRole = Literal["definition", "call", "import", "comment", "string"]
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
class TextPosition:
    """A place in a text: a line from 1, and characters from 0 on that line."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class StructuralMatch:
    """Where a structural pattern matched: from the first character to just after the last."""

    start: TextPosition
    end: TextPosition
    text: str


def enclosing_symbols(symbols: Iterable[Symbol], line: int) -> tuple[Symbol, ...]:
    """Give the symbols around a line, outermost first."""
    for symbol in symbols:
        if symbol.start_line <= line <= symbol.end_line:
            return (symbol, *enclosing_symbols(symbol.children, line))
    return ()


def symbol_chains(
    symbols: Iterable[Symbol], outer: tuple[Symbol, ...] = ()
) -> Iterator[tuple[Symbol, ...]]:
    """Give the way to every symbol, outermost first, in the order they stand."""
    for symbol in symbols:
        way = (*outer, symbol)
        yield way
        yield from symbol_chains(symbol.children, way)


def qualified_name(way: Sequence[Symbol]) -> str:
    """Give the full name of a symbol: the names on the way to it, dotted."""
    return ".".join(symbol.name for symbol in way)


def symbols_named(symbols: Iterable[Symbol], wanted: str) -> list[tuple[Symbol, ...]]:
    """Find what a name such as `Class.method` means: its full name, else the end of one."""
    parts = _parts(wanted)
    ways = [(way, _parts(qualified_name(way))) for way in symbol_chains(symbols)]
    exact = [way for way, own in ways if own == parts]
    return exact or [way for way, own in ways if own[-len(parts) :] == parts]


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATOR.split(name) if part]


class Syntax(Protocol):
    """What parsers know about bytes that the caller holds already: no effect on the world, so nothing to judge."""

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """What the file defines; None when no grammar fits its name or first line, or it is too large."""
        ...

    async def enclosing(
        self, path: str, data: bytes, lines: Sequence[int]
    ) -> dict[int, tuple[Symbol, ...]]:
        """The symbols around each line, outermost first; empty where there are none or no grammar fits."""
        ...

    async def classify(
        self, path: str, data: bytes, spots: Sequence[TextPosition]
    ) -> dict[TextPosition, frozenset[SyntaxRole]] | None:
        """What the text at each spot is: a definition, a call and so on; None when no grammar fits."""
        ...

    async def structural(self, path: str, data: bytes, pattern: str) -> list[StructuralMatch] | None:
        """Where an ast-grep pattern such as `open($FILE, $$$)` matches; None when no grammar fits."""
        ...
