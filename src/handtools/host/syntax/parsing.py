"""Parsing: from a tree to the symbols, roles and matches in it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handtools.core.errors import InvalidInput
from handtools.core.syntax import Match, Outline, Role, Spot, Symbol, SymbolKind
from handtools.host.syntax.grammar import BROKEN, Define, Grammar
from handtools.text.encoding import displayed

if TYPE_CHECKING:
    from ast_grep_py import Pos, SgNode

CONTAINERS: frozenset[SymbolKind] = frozenset({"class", "enum", "impl", "interface", "struct", "trait"})
INSIDE: dict[SymbolKind, SymbolKind] = {"function": "method", "variable": "field"}
"""What these are called right inside a container."""
OPENERS = frozenset("{([=")


def parse(text: str, grammar: Grammar) -> "SgNode":
    """The tree of a text whose line ends are all `\\n`."""
    from ast_grep_py import SgRoot

    return SgRoot(text, grammar.language).root()


@dataclass(slots=True)
class _Open:
    """A symbol whose end has not been passed yet."""

    name: str
    kind: SymbolKind
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    end: int
    level: int
    children: list[Symbol] = field(default_factory=list)

    def ends_before(self, start: int, level: int) -> bool:
        """Whether what starts here is outside: a heading also ends where its equal begins."""
        return self.end <= start or 0 < level <= self.level

    def closed(self) -> Symbol:
        return Symbol(
            self.name,
            self.kind,
            self.start_line,
            self.end_line,
            self.line,
            self.body_line,
            tuple(self.children),
        )


def outline(root: "SgNode", grammar: Grammar) -> Outline:
    """What the tree defines. Nodes come in the order they stand, outer ones first: nesting is a stack."""
    whole = root.range().end
    top = _Open("", "namespace", 0, 0, 0, None, whole.index + 1, 0)
    around = [top]
    broken = []
    for node in root.find_all(grammar.outline_rule):
        if node.kind() == BROKEN:
            broken.append(node.range().start.line + 1)
            continue
        opened = _opened(node, grammar, whole)
        if opened is None:
            continue
        start = node.range().start.index
        while len(around) > 1 and around[-1].ends_before(start, opened.level):
            _close(around, opened.start_line)
        if around[-1].kind in CONTAINERS:
            opened.kind = INSIDE.get(opened.kind, opened.kind)
        around.append(opened)
    while len(around) > 1:
        _close(around, None)
    return Outline(grammar.language, tuple(top.children), tuple(dict.fromkeys(broken)))


def _close(around: list[_Open], next_line: int | None) -> None:
    done = around.pop()
    if done.level and next_line is not None:
        done.end_line = next_line - 1
    around[-1].children.append(done.closed())


def _opened(node: "SgNode", grammar: Grammar, whole: "Pos") -> _Open | None:
    define = grammar.definitions[node.kind()]
    name = define.name(node)
    if not name or not name.text:
        return None
    level = define.level(node) if define.level else 0
    span = node.range()
    start, end = span.start.line, whole if level else span.end
    if grammar.wrappers or grammar.prefixes:
        start = _first_line(node, grammar)
    last = end.line if end.column else max(end.line - 1, start)
    line = name.node.range().start.line
    body = _body_line(node, define, line, last)
    return _Open(name.text, _kind(node, define), start + 1, last + 1, line + 1, body, end.index, level)


def _first_line(node: "SgNode", grammar: Grammar) -> int:
    """Where a definition begins, with its decorators and the like."""
    parent = node.parent()
    if parent is not None and parent.kind() in grammar.wrappers:
        node = parent
    if grammar.prefixes:
        while (before := node.prev()) is not None and before.kind() in grammar.prefixes:
            node = before
    return node.range().start.line


def _kind(node: "SgNode", define: Define) -> SymbolKind:
    if define.refine:
        for part in node.children():
            if part.kind() in define.refine:
                return define.refine[part.kind()]
    return define.kind


def _body_line(node: "SgNode", define: Define, line: int, last: int) -> int | None:
    """The first line below the head: that after the bracket which opens the body, or where a block begins."""
    if last <= line:
        return None
    body = node.field(define.body) or next(
        (part for part in node.children() if part.kind() == define.body), None
    )
    if body is None:
        return None
    first = body.range().start.line
    below = first if first > line and body.text()[:1] not in OPENERS else first + 1
    return below + 1 if below <= last else None


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


def matches(root: "SgNode", pattern: str) -> list[Match]:
    """Where a pattern matches, in the order of the text."""
    try:
        found = root.find_all(pattern=displayed(pattern))
    except RuntimeError as refusal:
        raise InvalidInput(
            _reason(str(refusal)), hint="Write one piece of code, with $NAME for a part."
        ) from None
    return [Match(*_spots(node), node.text()) for node in found]


def _reason(message: str) -> str:
    """The last cause that ast-grep gives, without its stack."""
    causes = [line.strip() for line in message.partition("Stack backtrace")[0].splitlines() if line.strip()]
    return f"The pattern can't be used: {causes[-1].partition(': ')[2] or causes[-1]}"


def _spots(node: "SgNode") -> tuple[Spot, Spot]:
    span = node.range()
    return _spot(span.start), _spot(span.end)


def _spot(place: "Pos") -> Spot:
    return Spot(place.line + 1, place.column)
