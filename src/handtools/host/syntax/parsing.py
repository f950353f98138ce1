"""Parsing: from a tree to the symbols, roles and matches in it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handtools.core.errors import InvalidInput
from handtools.core.syntax import Match, Outline, Role, Spot, Symbol, SymbolKind
from handtools.host.syntax.grammar import BROKEN, Define, Grammar
from handtools.text.encoding import displayed

if TYPE_CHECKING:
    from ast_grep_py import Pos, Range, SgNode

CONTAINERS: frozenset[SymbolKind] = frozenset({"class", "enum", "impl", "interface", "struct", "trait"})
FUNCTIONS: frozenset[SymbolKind] = frozenset({"function", "method"})
INSIDE: dict[SymbolKind, SymbolKind] = {"function": "method", "variable": "field"}
"""What these are called right inside a container."""
OPENERS = frozenset("{([=")
_HOLE = re.compile(r"\$+\w*")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def parse(text: str, grammar: Grammar) -> "SgNode":
    """The tree of a text whose line ends are all `\\n`."""
    from ast_grep_py import SgRoot

    # Some grammars look characters up in tables that end before these, and take the process along.
    readable = text if text.isascii() else _ASTRAL.sub("\ufffd", text)
    return SgRoot(readable, grammar.language).root()


@dataclass(slots=True)
class _Open:
    """A symbol whose end has not been passed yet."""

    name: str
    kind: SymbolKind
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    level: int
    end: int
    children: list[Symbol] = field(default_factory=list)


def outline(root: "SgNode", grammar: Grammar) -> Outline:
    """What the tree defines. Nodes come in the order they stand, outer ones first: nesting is a stack."""
    whole, definitions = root.range().end, grammar.definitions
    around = [_Open("", "namespace", 0, 0, 0, None, 0, whole.index + 1)]
    broken: dict[int, None] = {}
    wrapper: Range | None = None
    local_until = 0
    """Where the function ends that is being passed: most of what has no say in it is passed without a look."""
    for node in root.find_all(grammar.outline_rule):
        kind, span = node.kind(), node.range()
        define = definitions.get(kind)
        if define is None:
            if kind == BROKEN:
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
            outer = _closed(around, start.line)
        if not define.local and outer.kind in FUNCTIONS:
            local_until = outer.end
            continue
        opened = _opened(node, define, start, whole if level else span.end)
        if opened is None:
            continue
        opened.level = level
        if grammar.prefixes or wrapper is not None:
            opened.start_line = _beginning(node, grammar, wrapper, opened)
            wrapper = None
        if outer.kind in CONTAINERS:
            opened.kind = INSIDE.get(opened.kind, opened.kind)
        around.append(opened)
        local_until = opened.end if opened.kind in FUNCTIONS else 0
    while len(around) > 1:
        _closed(around, None)
    return Outline(grammar.language, tuple(around[0].children), tuple(broken))


def _closed(around: list[_Open], next_line: int | None) -> _Open:
    """Put the innermost into the one around it, and give that; a heading ends before the next one's line."""
    done = around.pop()
    end = next_line if done.level and next_line is not None else done.end_line
    around[-1].children.append(
        Symbol(done.name, done.kind, done.start_line, end, done.line, done.body_line, tuple(done.children))
    )
    return around[-1]


def _opened(node: "SgNode", define: Define, start: "Pos", end: "Pos") -> _Open | None:
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
    return _Open(name.text, kind, first + 1, last + 1, line + 1, body, 0, end.index)


def _beginning(node: "SgNode", grammar: Grammar, wrapper: "Range | None", opened: _Open) -> int:
    """Where a definition begins, with what is wrapped around it and the attributes that stand before it."""
    if wrapper is not None and wrapper.end.index >= opened.end:
        return wrapper.start.line + 1
    line = opened.start_line
    while grammar.prefixes and (before := node.prev()) is not None and before.kind() in grammar.prefixes:
        node, line = before, before.range().start.line + 1
    return line


def _kind(node: "SgNode", define: Define) -> SymbolKind:
    for part in node.children():
        if part.kind() in define.refine:
            return define.refine[part.kind()]
    return define.kind


def _body_line(node: "SgNode", define: Define, line: int, last: int) -> int | None:
    """The first line below the head: that after the bracket which opens the body, or where a block begins."""
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
    return opener is not None and opener.kind() in OPENERS


def roles(root: "SgNode", grammar: Grammar, spots: Iterable[Spot]) -> dict[Spot, frozenset[Role]]:
    """What stands at each spot. A call is its name, a definition its name; the rest is the whole node."""
    found: dict[Spot, set[Role]] = {spot: set() for spot in spots}
    by_line: dict[int, list[Spot]] = {}
    for spot in found:
        by_line.setdefault(spot.line, []).append(spot)
    for node in root.find_all(grammar.role_rule):
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


def _touched(by_line: dict[int, list[Spot]], lines: range) -> bool:
    if len(lines) <= len(by_line):
        return any(line in by_line for line in lines)
    return any(line in lines for line in by_line)


def _near(by_line: dict[int, list[Spot]], start: Spot, end: Spot) -> list[Spot]:
    lines = range(start.line, end.line + 1)
    return [spot for line, spots in by_line.items() if line in lines for spot in spots]


def _parts(node: "SgNode", grammar: Grammar) -> list[tuple["SgNode", Role]]:
    kind = node.kind()
    if kind in grammar.calls:
        callee = node.field(grammar.calls[kind]) if grammar.calls[kind] else node
        return [(last_name(callee), "call")] if callee is not None else []
    if kind in grammar.definitions:
        name = grammar.definitions[kind].name(node)
        return [(last_name(name.node), "definition")] if name else []
    if kind in grammar.imports:
        return [(node, "import")]
    return [(node, "comment" if kind in grammar.comments else "string")]


def last_name(node: "SgNode") -> "SgNode":
    """Of `a.b.c` the `c`."""
    while not node.is_leaf():
        parts = node.named_children()
        if not parts:
            break
        node = parts[-1]
    return node


def matches(root: "SgNode", grammar: Grammar, pattern: str) -> list[Match]:
    """Where a pattern matches, in the order of the text."""
    if _is_broken(pattern, grammar):
        said = f"The pattern is no whole piece of {grammar.language}: the parser can't read it."
        raise InvalidInput(said, hint="Write one piece of code, with $NAME for a part and $$$ for several.")
    try:
        found = root.find_all(pattern=displayed(pattern))
    except RuntimeError as refusal:
        raise InvalidInput(
            _reason(str(refusal)), hint="Write one piece of code, with $NAME for a part."
        ) from None
    return [Match(*_spots(node), node.text()) for node in found]


def _is_broken(pattern: str, grammar: Grammar) -> bool:
    """Whether the parser stumbles over it, with plain names where the holes are: it would then match nothing."""
    return parse(_HOLE.sub("hole", displayed(pattern)), grammar).find(kind=BROKEN) is not None


def _reason(message: str) -> str:
    """The last cause that ast-grep gives, without its stack."""
    causes = [line.strip() for line in message.partition("Stack backtrace")[0].splitlines() if line.strip()]
    reason = causes[-1].partition(": ")[2] or causes[-1]
    return f"The pattern can't be used: {reason.rstrip('.')}."


def _spots(node: "SgNode") -> tuple[Spot, Spot]:
    span = node.range()
    return _spot(span.start), _spot(span.end)


def _spot(place: "Pos") -> Spot:
    return Spot(place.line + 1, place.column)
