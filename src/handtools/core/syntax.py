"""Parsed source code: symbols, outlines, structural matches, lookup of symbols by name; the parser port."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Syntactic role of a piece of source text; a piece may have none."""

_SEPARATOR = re.compile(r"::|[.#/]")


class Symbol(NamedTuple):
    """A definition in a source file: name, kind, lines and nested symbols; a tuple to keep it cheap."""

    name: str
    kind: SymbolKind
    start_line: int
    """First line of the definition, decorators included."""
    end_line: int
    line: int
    """Line of the symbol's name."""
    body_line: int | None = None
    """First line of the body, where a folded view starts hiding lines; None if there is no body."""
    children: tuple["Symbol", ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """The nested symbols of a file in source order, and lines with parse errors."""

    language: str
    symbols: tuple[Symbol, ...]
    broken_lines: tuple[int, ...] = ()
    """The first lines that the parser could not parse; the symbols around them are valid."""
    left_out: int = 0
    """Number of further symbols in the file: outlines are limited in size and depth."""


@dataclass(frozen=True, slots=True, order=True)
class TextPosition:
    """Position in a text: line from 1, character in the line from 0."""

    line: int
    column: int


class StructuralMatch(NamedTuple):
    """Range in which a structural pattern matched, end exclusive."""

    start: TextPosition
    end: TextPosition


def enclosing_symbols(symbols: Iterable[Symbol], line: int) -> tuple[Symbol, ...]:
    """Return the symbols that enclose a line, outermost first."""
    for symbol in symbols:
        if symbol.start_line <= line <= symbol.end_line:
            return (symbol, *enclosing_symbols(symbol.children, line))
    return ()


def symbol_chains(
    symbols: Iterable[Symbol], outer_symbols: tuple[Symbol, ...] = ()
) -> Iterator[tuple[Symbol, ...]]:
    """Yield each symbol with its enclosing symbols, outermost first, in source order."""
    for symbol in symbols:
        way = (*outer_symbols, symbol)
        yield way
        yield from symbol_chains(symbol.children, way)


def qualified_name(symbols: Sequence[Symbol]) -> str:
    """Return the dotted name of a symbol from the chain of its enclosing symbols."""
    return ".".join(symbol.name for symbol in symbols)


def symbols_named(symbols: Iterable[Symbol], wanted: str) -> list[tuple[Symbol, ...]]:
    """Find symbols by a name such as `Class.method`: by full name, otherwise by its last parts."""
    parts = _parts(wanted)
    ways = [(way, _parts(qualified_name(way))) for way in symbol_chains(symbols)]
    exact = [way for way, own in ways if own == parts]
    return exact or [way for way, own in ways if own[-len(parts) :] == parts]


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATOR.split(name) if part]


class Syntax(Protocol):
    """Port for source code parsers; works on bytes that were already read, so policy does not apply."""

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """Return the outline of a file's definitions; None if no grammar fits or the file is too large."""
        ...

    async def outlines(self, files: Mapping[str, bytes]) -> dict[str, Outline | None]:
        """Return the outlines of several files by path, like `outline` but faster."""
        ...

    async def classify(
        self, path: str, data: bytes, positions: Sequence[TextPosition]
    ) -> dict[TextPosition, frozenset[SyntaxRole]] | None:
        """Return the syntactic roles of the text at each position; None if no grammar fits."""
        ...

    async def structural(self, path: str, data: bytes, pattern: str) -> list[StructuralMatch] | None:
        """Find the matches of an ast-grep pattern such as `open($FILE, $$$)`; None if no grammar fits."""
        ...
