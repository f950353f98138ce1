"""Tree syntax: the Syntax port over ast-grep's parsers."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyio.lowlevel import checkpoint

from handtools.core.syntax import Match, Outline, Role, Spot, Symbol, enclosing
from handtools.host.syntax import parsing
from handtools.host.syntax.grammar import Grammar
from handtools.host.syntax.grammars import grammar_of
from handtools.host.syntax.languages import language_of
from handtools.text import lines
from handtools.text.encoding import decode, displayed
from handtools.text.tangles import is_tangled

if TYPE_CHECKING:
    from ast_grep_py import SgNode

PARSED_BYTES = 4 << 20
"""Larger files are not parsed: a tree takes many times the memory of its text."""
KEPT_BYTES = 16 << 20
SYMBOL_BYTES = 250
"""About what one symbol costs in memory."""


class TreeSyntax:
    """Parses what it is given and remembers outlines, not trees; safe to share between threads."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept: OrderedDict[bytes, Outline] = OrderedDict()
        self._lock = threading.Lock()
        self._room = kept_bytes

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """What the file defines."""
        grammar = _grammar(path, data)
        if grammar is None:
            return None
        key = grammar.language.encode() + hashlib.sha256(data).digest()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        # The parsers keep the interpreter to themselves: a thread would not free this one. A pause does.
        await checkpoint()
        root = _parsed(data, grammar)
        if root is None:
            return None
        found = parsing.outline(root, grammar)
        self._keep(key, found)
        return found

    async def enclosing(
        self, path: str, data: bytes, lines: Sequence[int]
    ) -> dict[int, tuple[Symbol, ...]]:
        """The symbols around each line, outermost first."""
        found = await self.outline(path, data)
        return {line: enclosing(found.symbols, line) if found else () for line in lines}

    async def classify(
        self, path: str, data: bytes, spots: Sequence[Spot]
    ) -> dict[Spot, frozenset[Role]] | None:
        """What the text at each spot is."""
        await checkpoint()
        grammar = _grammar(path, data)
        root = grammar and _parsed(data, grammar)
        return parsing.roles(root, grammar, spots) if grammar and root else None

    async def structural(self, path: str, data: bytes, pattern: str) -> list[Match] | None:
        """Where an ast-grep pattern matches."""
        await checkpoint()
        grammar = _grammar(path, data)
        root = grammar and _parsed(data, grammar)
        return parsing.matches(root, grammar, pattern) if grammar and root else None

    def _keep(self, key: bytes, found: Outline) -> None:
        with self._lock:
            if key not in self._kept:
                self._room -= _weight(found)
            self._kept[key] = found
            while self._room < 0 and self._kept:
                _, dropped = self._kept.popitem(last=False)
                self._room += _weight(dropped)


def _grammar(path: str, data: bytes) -> Grammar | None:
    if len(data) > PARSED_BYTES:
        return None
    language = language_of(path, data)
    return None if language is None else grammar_of(language)


def _parsed(data: bytes, grammar: Grammar) -> "SgNode | None":
    """The tree, unless it would cost too much to have."""
    text = _text(data)
    return None if is_tangled(text, grammar.language) else parsing.parse(text, grammar)


def _text(data: bytes) -> str:
    """The text with the line ends that parsers count, and without what UTF-8 can't carry."""
    source = decode(data)
    body = lines.adopt(source.body, "\n")
    return body if source.errors == "strict" else displayed(body)


def _weight(found: Outline) -> int:
    return SYMBOL_BYTES * (1 + _count(found.symbols))


def _count(symbols: Sequence[Symbol]) -> int:
    return len(symbols) + sum(_count(one.children) for one in symbols if one.children)
