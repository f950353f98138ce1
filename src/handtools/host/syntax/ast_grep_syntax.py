"""The Syntax port with ast-grep: outlines, roles of positions and pattern matches from a file's syntax tree.

ADR 20.
"""

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from anyio.lowlevel import checkpoint

from handtools.core.errors import InvalidInput
from handtools.core.syntax import (
    Outline,
    StructuralMatch,
    Symbol,
    SymbolKind,
    SyntaxRole,
    TextPosition,
    enclosing_symbols,
)
from handtools.host.syntax.grammar import ERROR_NODE, DefinitionRule, Grammar
from handtools.host.syntax.languages import grammar_of_language, language_of
from handtools.text import lines
from handtools.text.encoding import decode, without_surrogates

if TYPE_CHECKING:
    from ast_grep_py import Pos, Range, SgNode


class _Limit(NamedTuple):
    spelling: re.Pattern[str]
    most: int


_OPENERS = {
    "bash": _Limit(re.compile("<<"), 4_000),
    "css": _Limit(re.compile(r":[-\w]+\("), 4_000),
    "html": _Limit(re.compile(r"<[^\W\d_]"), 12_000),
    "kotlin": _Limit(re.compile(r"\$\{"), 500),
    "lua": _Limit(re.compile(r"\[=*\["), 4_000),
    "scala": _Limit(re.compile(r"\bcase\b"), 4_000),
}
"""By language, constructs that some parsers handle badly, and how many of them a text may contain."""
_LEVELS = {
    "markdown": re.compile(r"^(?:[ \t>]|[-+*](?=[ \t])|\d+[.)](?=[ \t]))+", re.MULTILINE),
    "yaml": re.compile(r"^(?:[ \t]|[-?:](?=[ \t]))+", re.MULTILINE),
}
"""By language, what at the beginning of a line determines its nesting depth."""
_MOST_CHARS = 120
"""The longest such beginning of a line, in characters; deeper nesting would overflow the parser."""


def exceeds_parser_limits(text: str, language: str) -> bool:
    """Whether a text has too many or too deeply nested constructs to be given to the language's parser safely."""
    if (limit := _OPENERS.get(language)) and sum(1 for _ in limit.spelling.finditer(text)) > limit.most:
        return True
    levels = _LEVELS.get(language)
    return levels is not None and any(len(found[0]) > _MOST_CHARS for found in levels.finditer(text))


CONTAINER_KINDS: frozenset[SymbolKind] = frozenset(
    {"class", "enum", "impl", "interface", "struct", "trait"}
)
FUNCTION_KINDS: frozenset[SymbolKind] = frozenset({"function", "method"})
MEMBER_KINDS: dict[SymbolKind, SymbolKind] = {"function": "method", "variable": "field"}
"""The kinds that functions and variables have directly inside a class."""
BODY_OPENERS = frozenset("{([=")
_METAVARIABLE = re.compile(r"\$+\w*")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def parse_tree(text: str, grammar: Grammar) -> "SgNode":
    """Parse a text, in which all line ends are LF; returns the root node."""
    from ast_grep_py import SgRoot

    # Some grammars look characters up in tables that end before these, and take the process along.
    readable = text if text.isascii() else _ASTRAL.sub("\ufffd", text)
    return SgRoot(readable, grammar.language).root()


@dataclass(slots=True)
class _OpenSymbol:
    """A symbol under construction, whose end has not been reached yet."""

    name: str
    kind: SymbolKind
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    level: int
    end: int
    children: list[Symbol] = field(default_factory=list)


def outline_of_tree(root: "SgNode", grammar: Grammar) -> Outline:
    """The outline (nested symbols, lines with syntax errors) of a syntax tree."""
    whole, definitions = root.range().end, grammar.definitions
    around = [_OpenSymbol("", "namespace", 0, 0, 0, None, 0, whole.index + 1)]
    broken: dict[int, None] = {}
    wrapper: Range | None = None
    local_until = 0
    """The end offset of the function that is being passed, inside which most definitions don't count."""
    for node in root.find_all(grammar.outline_nodes_rule):
        kind, span = node.kind(), node.range()
        define = definitions.get(kind)
        if define is None:
            if kind == ERROR_NODE:
                broken[span.start.line + 1] = None
            else:
                wrapper = span
            continue
        start = span.start
        at = start.index
        if at < local_until and not define.local:
            continue
        level, outer = 0, around[-1]
        if define.level:
            level = define.level(node)
        while outer.end <= at or 0 < level <= outer.level:
            outer = _close_symbol(around, start.line)
        if not define.local and outer.kind in FUNCTION_KINDS:
            local_until = outer.end
            continue
        opened = _open_symbol(node, define, start, whole if level else span.end)
        if opened is None:
            continue
        opened.level = level
        if grammar.prefixes or wrapper is not None:
            opened.start_line = _first_line(node, grammar, wrapper, opened)
            wrapper = None
        if outer.kind in CONTAINER_KINDS:
            opened.kind = MEMBER_KINDS.get(opened.kind, opened.kind)
        around.append(opened)
        local_until = opened.end if opened.kind in FUNCTION_KINDS else 0
    while len(around) > 1:
        _close_symbol(around, None)
    return Outline(grammar.language, tuple(around[0].children), tuple(broken))


def _close_symbol(around: list[_OpenSymbol], next_line: int | None) -> _OpenSymbol:
    """Add the innermost open symbol to its parent and return the parent; a heading ends before `next_line`."""
    done = around.pop()
    end = next_line if done.level and next_line is not None else done.end_line
    around[-1].children.append(
        Symbol(done.name, done.kind, done.start_line, end, done.line, done.body_line, tuple(done.children))
    )
    return around[-1]


def _open_symbol(node: "SgNode", define: DefinitionRule, start: "Pos", end: "Pos") -> _OpenSymbol | None:
    name = define.name(node)
    if not name or not name.text:
        return None
    first = start.line
    last = end.line if end.column else max(end.line - 1, first)
    line, body = first, None
    if last > first:
        line = name.node.range().start.line
        body = _body_line(node, define, line, last) if last > line else None
    kind = _kind(node, define) if define.refine else define.kind
    return _OpenSymbol(name.text, kind, first + 1, last + 1, line + 1, body, 0, end.index)


def _first_line(node: "SgNode", grammar: Grammar, wrapper: "Range | None", opened: _OpenSymbol) -> int:
    """The first line of a definition, including decorators or other wrappers and attributes before it."""
    if wrapper is not None and wrapper.end.index >= opened.end:
        return wrapper.start.line + 1
    line = opened.start_line
    while grammar.prefixes and (before := node.prev()) is not None and before.kind() in grammar.prefixes:
        node, line = before, before.range().start.line + 1
    return line


def _kind(node: "SgNode", define: DefinitionRule) -> SymbolKind:
    for part in node.children():
        if part.kind() in define.refine:
            return define.refine[part.kind()]
    return define.kind


def _body_line(node: "SgNode", define: DefinitionRule, line: int, last: int) -> int | None:
    """The first line of a definition's body: after the opening bracket's line, or where the block begins."""
    body = node.field(define.body) or next(
        (part for part in node.children() if part.kind() == define.body), None
    )
    if body is None:
        return None
    first = body.range().start.line
    below = first + (first == line or _opens(body))
    return below + 1 if line < below <= last else None


def _opens(body: "SgNode") -> bool:
    opener = body.child(0)
    return opener is not None and opener.kind() in BODY_OPENERS


def roles_at(
    root: "SgNode", grammar: Grammar, spots: Iterable[TextPosition]
) -> dict[TextPosition, frozenset[SyntaxRole]]:
    """The syntax roles (definition, call, import, comment, string) at each position."""
    found: dict[TextPosition, set[SyntaxRole]] = {spot: set() for spot in spots}
    by_line: dict[int, list[TextPosition]] = {}
    for spot in found:
        by_line.setdefault(spot.line, []).append(spot)
    for node in root.find_all(grammar.role_nodes_rule):
        span = node.range()
        lines = range(span.start.line + 1, span.end.line + 2)
        if not _touched(by_line, lines):
            continue
        for part, role in _parts(node, grammar):
            start, end = _spots(part)
            near = _near(by_line, start, end)
            for spot in near:
                if start <= spot < end:
                    found[spot].add(role)
    return {spot: frozenset(every) for spot, every in found.items()}


def _touched(by_line: dict[int, list[TextPosition]], lines: range) -> bool:
    if len(lines) <= len(by_line):
        return any(line in by_line for line in lines)
    return any(line in lines for line in by_line)


def _near(
    by_line: dict[int, list[TextPosition]], start: TextPosition, end: TextPosition
) -> list[TextPosition]:
    lines = range(start.line, end.line + 1)
    return [spot for line, spots in by_line.items() if line in lines for spot in spots]


def _parts(node: "SgNode", grammar: Grammar) -> list[tuple["SgNode", SyntaxRole]]:
    kind = node.kind()
    if kind in grammar.calls:
        callee = node.field(grammar.calls[kind]) if grammar.calls[kind] else node
        return [(last_dotted_name(callee), "call")] if callee is not None else []
    if kind in grammar.definitions:
        name = grammar.definitions[kind].name(node)
        return [(last_dotted_name(name.node), "definition")] if name else []
    if kind in grammar.imports:
        return [(node, "import")]
    return [(node, "comment" if kind in grammar.comments else "string")]


def last_dotted_name(node: "SgNode") -> "SgNode":
    """The last name in a dotted expression: `c` in `a.b.c`."""
    while not node.is_leaf():
        parts = node.named_children()
        if not parts:
            break
        node = parts[-1]
    return node


def find_structural_matches(root: "SgNode", grammar: Grammar, pattern: str) -> list[StructuralMatch]:
    """The places where an ast-grep pattern matches, in order; raises for an invalid pattern."""
    if _is_broken(pattern, grammar):
        said = f"The pattern is no whole piece of {grammar.language}: the parser can't read it."
        raise InvalidInput(said, hint="Write one piece of code, with $NAME for a part and $$$ for several.")
    try:
        found = root.find_all(pattern=without_surrogates(pattern))
    except RuntimeError as refusal:
        raise InvalidInput(
            _reason(str(refusal)), hint="Write one piece of code, with $NAME for a part."
        ) from None
    return [StructuralMatch(*_spots(node), node.text()) for node in found]


def _is_broken(pattern: str, grammar: Grammar) -> bool:
    """Whether a pattern itself has a syntax error, in which case it would match nothing."""
    return (
        parse_tree(_METAVARIABLE.sub("hole", without_surrogates(pattern)), grammar).find(kind=ERROR_NODE)
        is not None
    )


def _reason(message: str) -> str:
    """The last cause in an error message of ast-grep."""
    causes = [line.strip() for line in message.partition("Stack backtrace")[0].splitlines() if line.strip()]
    reason = causes[-1].partition(": ")[2] or causes[-1]
    return f"The pattern can't be used: {reason.rstrip('.')}."


def _spots(node: "SgNode") -> tuple[TextPosition, TextPosition]:
    span = node.range()
    return _spot(span.start), _spot(span.end)


def _spot(place: "Pos") -> TextPosition:
    return TextPosition(place.line + 1, place.column)


MOST_PARSED_BYTES = 4 << 20
"""Files larger than this many bytes are not parsed: a tree takes many times the memory of its text."""
OUTLINE_CACHE_BYTES = 16 << 20
OUTLINE_SYMBOL_BYTES = 250
"""The approximate memory of one symbol in bytes, for the size of the cache."""


class TreeSyntax:
    """Parses files and caches their outlines, not their trees; safe to share between threads."""

    def __init__(self, *, kept_bytes: int = OUTLINE_CACHE_BYTES) -> None:
        self._kept: OrderedDict[bytes, Outline] = OrderedDict()
        self._lock = threading.Lock()
        self._room = kept_bytes

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """The outline of a file: nested symbols; None when its language is unknown or it can't be parsed."""
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
        found = outline_of_tree(root, grammar)
        self._keep(key, found)
        return found

    async def enclosing(
        self, path: str, data: bytes, lines: Sequence[int]
    ) -> dict[int, tuple[Symbol, ...]]:
        """The symbols that contain each line, outermost first."""
        found = await self.outline(path, data)
        return {line: enclosing_symbols(found.symbols, line) if found else () for line in lines}

    async def classify(
        self, path: str, data: bytes, spots: Sequence[TextPosition]
    ) -> dict[TextPosition, frozenset[SyntaxRole]] | None:
        """The syntax roles of each position in a file; None when it can't be parsed."""
        await checkpoint()
        grammar = _grammar(path, data)
        root = grammar and _parsed(data, grammar)
        return roles_at(root, grammar, spots) if grammar and root else None

    async def structural(self, path: str, data: bytes, pattern: str) -> list[StructuralMatch] | None:
        """The matches of an ast-grep pattern in a file; None when it can't be parsed."""
        await checkpoint()
        grammar = _grammar(path, data)
        root = grammar and _parsed(data, grammar)
        return find_structural_matches(root, grammar, pattern) if grammar and root else None

    def _keep(self, key: bytes, found: Outline) -> None:
        with self._lock:
            if key not in self._kept:
                self._room -= _weight(found)
            self._kept[key] = found
            while self._room < 0 and self._kept:
                _, dropped = self._kept.popitem(last=False)
                self._room += _weight(dropped)


def _grammar(path: str, data: bytes) -> Grammar | None:
    if len(data) > MOST_PARSED_BYTES:
        return None
    language = language_of(path, data)
    return None if language is None else grammar_of_language(language)


def _parsed(data: bytes, grammar: Grammar) -> "SgNode | None":
    """Parse bytes and return the root node; None when they are too large or exceed the parser's limits."""
    text = _text(data)
    return None if exceeds_parser_limits(text, grammar.language) else parse_tree(text, grammar)


def _text(data: bytes) -> str:
    """Decode bytes with LF line ends, and replace what UTF-8 can't encode."""
    source = decode(data)
    body = lines.convert_line_ends(source.body, "\n")
    return body if source.errors == "strict" else without_surrogates(body)


def _weight(found: Outline) -> int:
    return OUTLINE_SYMBOL_BYTES * (1 + _count(found.symbols))


def _count(symbols: Sequence[Symbol]) -> int:
    return len(symbols) + sum(_count(one.children) for one in symbols if one.children)
