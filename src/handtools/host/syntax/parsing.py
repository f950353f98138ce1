"""Parsing: from a tree to the symbols, roles and matches in it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handtools.core.errors import InvalidInput
from handtools.core.syntax import Match, Outline, Role, Spot, Symbol, SymbolKind
from handtools.host.syntax.grammar import BROKEN, Grammar

if TYPE_CHECKING:
    from ast_grep_py import Pos, SgNode

CONTAINERS: frozenset[SymbolKind] = frozenset({"class", "enum", "impl", "interface", "struct", "trait"})
"""A function right inside one of these is a method."""


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
    children: list[Symbol] = field(default_factory=list)

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
    top = _Open("", "namespace", 0, 0, 0, None, -1)
    around = [top]
    broken = []
    for node in root.find_all(grammar.outline_rule):
        span = node.range()
        if node.kind() == BROKEN:
            broken.append(span.start.line + 1)
            continue
        while len(around) > 1 and around[-1].end <= span.start.index:
            _close(around)
        opened = _opened(node, grammar, around[-1].kind if len(around) > 1 else None)
        if opened is not None:
            around.append(opened)
    while len(around) > 1:
        _close(around)
    return Outline(grammar.language, tuple(top.children), tuple(dict.fromkeys(broken)))


def _close(around: list[_Open]) -> None:
    done = around.pop()
    around[-1].children.append(done.closed())


def _opened(node: "SgNode", grammar: Grammar, outer: SymbolKind | None) -> _Open | None:
    define = grammar.definitions[node.kind()]
    name = define.name(node)
    if not name:
        return None
    kind: SymbolKind = "method" if define.kind == "function" and outer in CONTAINERS else define.kind
    span = node.range()
    start = span.start.line
    parent = node.parent() if grammar.wrappers else None
    if parent is not None and parent.kind() in grammar.wrappers:
        start = parent.range().start.line
    end = span.end.line if span.end.column else max(span.end.line - 1, span.start.line)
    body = _body_line(node, define.body, span.start.line, end)
    return _Open(name, kind, start + 1, end + 1, span.start.line + 1, body, span.end.index)


def _body_line(node: "SgNode", name: str, start: int, end: int) -> int | None:
    """The line below the head: after the one that opens the body, or where an indented body begins."""
    if end <= start:
        return None
    body = node.field(name) or next((part for part in node.children() if part.kind() == name), None)
    if body is None:
        return None
    first = body.range().start.line
    opens_here = not body.text()[:1].isalnum() and body.text()[:1] in "{([:="
    line = first + 1 if opens_here or first == start else first
    return line + 1 if line <= end else None


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
        place = name and _leaf(node, name)
        return [(place, "definition")] if place else []
    if kind in grammar.imports:
        return [(node, "import")]
    return [(node, "comment" if kind in grammar.comments else "string")]


def _leaf(node: "SgNode", name: str) -> "SgNode | None":
    """The first leaf in the head of a definition that bears the end of its name."""
    wanted = name.replace("::", ".").rpartition(".")[2]
    for part in node.children():
        if part.text() == wanted:
            return last_name(part)
        if not part.is_leaf() and (found := _leaf(part, name)) is not None:
            return found
    return None


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
        found = root.find_all(pattern=pattern)
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
