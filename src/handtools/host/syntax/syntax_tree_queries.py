"""Parse source text with ast-grep's grammars, and extract outlines, roles and matches from the tree.

This runs in a worker process, because one crafted kilobyte can keep a parser busy for minutes or crash it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from handtools.core.errors import InvalidInput
from handtools.core.syntax import SymbolKind, SyntaxRole, TextPosition
from handtools.host.confined_workers import TaskResult, WorkerTask
from handtools.host.syntax.grammar import ERROR_NODE, DefinitionRule, Grammar
from handtools.host.syntax.languages import GRAMMAR_MODULES, grammar_of_language
from handtools.text import lines
from handtools.text.encoding import decode, without_surrogates

if TYPE_CHECKING:
    from ast_grep_py import Pos, Range, SgNode

ParsedPart = Literal["outline", "roles", "matches"]
MAX_OUTLINE_SYMBOLS = 20_000
MAX_OUTLINE_DEPTH = 50
MAX_MATCHES = 10_000
MAX_BROKEN_LINES = 100


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
"""For some languages, a construct that the parser handles badly, and how many of them a text may contain."""
_LEVELS = {
    "markdown": re.compile(r"^(?:[ \t>]|[-+*](?=[ \t])|\d+[.)](?=[ \t]))+", re.MULTILINE),
    "yaml": re.compile(r"^(?:[ \t]|[-?:](?=[ \t]))+", re.MULTILINE),
}
"""For some languages, a regex for the beginning of a line; the longer the match, the deeper the nesting."""
_MAX_CHARS = 120
"""The longest match of a `_LEVELS` regex, in characters; deeper nesting would overflow the parser."""


def exceeds_parser_limits(text: str, language: str) -> bool:
    """Whether a text has too many or too deeply nested constructs for the language's parser."""
    if (limit := _OPENERS.get(language)) and sum(1 for _ in limit.spelling.finditer(text)) > limit.most:
        return True
    levels = _LEVELS.get(language)
    return levels is not None and any(len(found[0]) > _MAX_CHARS for found in levels.finditer(text))


CONTAINER_KINDS: frozenset[SymbolKind] = frozenset(
    {"class", "enum", "impl", "interface", "struct", "trait"}
)
FUNCTION_KINDS: frozenset[SymbolKind] = frozenset({"function", "method"})
MEMBER_KINDS: dict[SymbolKind, SymbolKind] = {"function": "method", "variable": "field"}
"""The kinds of functions and variables directly inside a class."""
BODY_OPENERS = frozenset("{([=")
_METAVARIABLE = re.compile(r"\$+\w*")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def parse_tree(text: str, grammar: Grammar) -> "SgNode":
    """Parse a text with LF line endings; returns the root node."""
    from ast_grep_py import SgRoot

    # On characters beyond U+FFFF, some grammars read past their lookup tables and crash the process.
    readable = text if text.isascii() else _ASTRAL.sub("\ufffd", text)
    return SgRoot(readable, grammar.language).root()


@dataclass(slots=True)
class _FoundSymbol:
    """A symbol of an outline; while it is open, its end may not be known yet."""

    depth: int
    name: str
    kind: SymbolKind
    start_line: int
    end_line: int
    line: int
    body_line: int | None
    level: int
    end: int

    @property
    def row(self) -> tuple[int, str, str, int, int, int, int | None]:
        """The row that the worker returns: the depth, then the fields of `Symbol` without its children."""
        return (
            self.depth,
            self.name,
            self.kind,
            self.start_line,
            self.end_line,
            self.line,
            self.body_line,
        )


def outline_of_tree(root: "SgNode", grammar: Grammar) -> dict[str, Any]:
    """Return the outline of a syntax tree as JSON: symbols, how many were left out, and lines with errors."""
    whole, definitions = root.range().end, grammar.definitions
    found: list[_FoundSymbol] = []
    around = [_FoundSymbol(-1, "", "namespace", 0, 0, 0, None, 0, whole.index + 1)]
    broken: dict[int, None] = {}
    left_out = 0
    wrapper: Range | None = None
    local_until = 0
    """The end offset of the current function, inside which most definitions are not listed."""
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
        if len(found) == MAX_OUTLINE_SYMBOLS or outer.depth == MAX_OUTLINE_DEPTH:
            left_out += 1
            continue
        opened = _open_symbol(node, define, start, whole if level else span.end)
        if opened is None:
            continue
        opened.depth, opened.level = outer.depth + 1, level
        if grammar.prefixes or wrapper is not None:
            opened.start_line = _first_line_of_definition(node, grammar, wrapper, opened)
            wrapper = None
        if outer.kind in CONTAINER_KINDS:
            opened.kind = MEMBER_KINDS.get(opened.kind, opened.kind)
        around.append(opened)
        found.append(opened)
        local_until = opened.end if opened.kind in FUNCTION_KINDS else 0
    return {
        "language": grammar.language,
        "symbols": [symbol.row for symbol in found],
        "broken": list(broken)[:MAX_BROKEN_LINES],
        "left_out": left_out,
    }


def _close_symbol(outer_symbols: list[_FoundSymbol], next_line: int) -> _FoundSymbol:
    """Close the innermost open symbol and return the one around it; a heading ends before `next_line`, 0-based."""
    done = outer_symbols.pop()
    if done.level:
        done.end_line = next_line
    return outer_symbols[-1]


def _open_symbol(
    node: "SgNode", definition: DefinitionRule, start: "Pos", end: "Pos"
) -> _FoundSymbol | None:
    name = definition.name(node)
    if not name or not name.text:
        return None
    first = start.line
    last = end.line if end.column else max(end.line - 1, first)
    line, body = first, None
    if last > first:
        line = name.node.range().start.line
        body = _first_body_line(node, definition, line, last) if last > line else None
    kind = _symbol_kind(node, definition) if definition.refine else definition.kind
    return _FoundSymbol(0, name.text, kind, first + 1, last + 1, line + 1, body, 0, end.index)


def _first_line_of_definition(
    node: "SgNode", grammar: Grammar, wrapper: "Range | None", symbol: _FoundSymbol
) -> int:
    """Return the first line of a definition, including decorators, other wrappers and attributes."""
    if wrapper is not None and wrapper.end.index >= symbol.end:
        return wrapper.start.line + 1
    line = symbol.start_line
    while grammar.prefixes and (before := node.prev()) is not None and before.kind() in grammar.prefixes:
        node, line = before, before.range().start.line + 1
    return line


def _symbol_kind(node: "SgNode", definition: DefinitionRule) -> SymbolKind:
    for part in node.children():
        if part.kind() in definition.refine:
            return definition.refine[part.kind()]
    return definition.kind


def _first_body_line(node: "SgNode", definition: DefinitionRule, line: int, last: int) -> int | None:
    """Return the first line of a definition's body, below its opening bracket; None if there is no such line."""
    body = node.field(definition.body) or next(
        (part for part in node.children() if part.kind() == definition.body), None
    )
    if body is None:
        return None
    first = body.range().start.line
    below = first + (first == line or _has_opening_bracket(body))
    return below + 1 if line < below <= last else None


def _has_opening_bracket(body: "SgNode") -> bool:
    opener = body.child(0)
    return opener is not None and opener.kind() in BODY_OPENERS


def roles_at(
    root: "SgNode", grammar: Grammar, positions: Iterable[TextPosition]
) -> dict[TextPosition, frozenset[SyntaxRole]]:
    """Return the syntax roles (definition, call, import, comment, string) at each position."""
    text_positions: dict[TextPosition, set[SyntaxRole]] = {spot: set() for spot in positions}
    positions_by_line: dict[int, list[TextPosition]] = {}
    for spot in text_positions:
        positions_by_line.setdefault(spot.line, []).append(spot)
    for node in root.find_all(grammar.role_nodes_rule):
        span = node.range()
        lines = range(span.start.line + 1, span.end.line + 2)
        if not _has_position_in_lines(positions_by_line, lines):
            continue
        for part, role in _nodes_with_roles(node, grammar):
            start, end = _start_and_end_position(part)
            near = _positions_in_lines(positions_by_line, start, end)
            for spot in near:
                if start <= spot < end:
                    text_positions[spot].add(role)
    return {spot: frozenset(every) for spot, every in text_positions.items()}


def _has_position_in_lines(positions_by_line: dict[int, list[TextPosition]], lines: range) -> bool:
    if len(lines) <= len(positions_by_line):
        return any(line in positions_by_line for line in lines)
    return any(line in lines for line in positions_by_line)


def _positions_in_lines(
    positions_by_line: dict[int, list[TextPosition]],
    start_position: TextPosition,
    end_position: TextPosition,
) -> list[TextPosition]:
    lines = range(start_position.line, end_position.line + 1)
    return [spot for line, spots in positions_by_line.items() if line in lines for spot in spots]


def _nodes_with_roles(node: "SgNode", grammar: Grammar) -> list[tuple["SgNode", SyntaxRole]]:
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
    """Return the last name in a dotted expression: `c` in `a.b.c`."""
    while not node.is_leaf():
        parts = node.named_children()
        if not parts:
            break
        node = parts[-1]
    return node


def find_structural_matches(
    root: "SgNode", grammar: Grammar, pattern: str
) -> list[tuple[TextPosition, TextPosition]]:
    """Return the matches of an ast-grep pattern, in order, at most `MAX_MATCHES`; raises if it is invalid."""
    if _has_syntax_error(pattern, grammar):
        said = f"The pattern is not valid {grammar.language} code."
        raise InvalidInput(
            said, hint="Write one code snippet, with $NAME for one node and $$$ for several."
        )
    try:
        found = root.find_all(pattern=without_surrogates(pattern))
    except RuntimeError as refusal:
        raise InvalidInput(
            _pattern_error_message(str(refusal)), hint="Write one code snippet, with $NAME for one node."
        ) from None
    return [_start_and_end_position(node) for node in found[:MAX_MATCHES]]


def _has_syntax_error(pattern: str, grammar: Grammar) -> bool:
    """Whether a pattern has a syntax error, in which case it would match nothing."""
    return (
        parse_tree(_METAVARIABLE.sub("hole", without_surrogates(pattern)), grammar).find(kind=ERROR_NODE)
        is not None
    )


def _pattern_error_message(message: str) -> str:
    """Return the last cause in an ast-grep error message."""
    causes = [line.strip() for line in message.partition("Stack backtrace")[0].splitlines() if line.strip()]
    reason = causes[-1].partition(": ")[2] or causes[-1]
    return f"Invalid pattern: {reason.rstrip('.')}."


def _start_and_end_position(node: "SgNode") -> tuple[TextPosition, TextPosition]:
    span = node.range()
    return _text_position(span.start), _text_position(span.end)


def _text_position(place: "Pos") -> TextPosition:
    return TextPosition(place.line + 1, place.column)


def parse_in_worker(arguments: Mapping[str, Any], data: bytes) -> TaskResult:
    """Parse files in the worker process and return the wanted part of their syntax as JSON.

    `files` are the languages and sizes of the files, `data` their concatenated bytes. The parts are in the
    same order; None for a file that exceeds the parser's limits.
    """
    parts: list[Any] = []
    for language, size in arguments["files"]:
        file, data = data[:size], data[size:]
        text, grammar = _normalized_text(file), grammar_of_language(language)
        root = None if exceeds_parser_limits(text, language) else parse_tree(text, grammar)
        parts.append(None if root is None else _wanted_part(root, grammar, arguments))
    return TaskResult({"parts": parts})


def _wanted_part(root: "SgNode", grammar: Grammar, arguments: Mapping[str, Any]) -> Any:
    wanted: ParsedPart = arguments["wanted"]
    if wanted == "outline":
        return outline_of_tree(root, grammar)
    if wanted == "roles":
        spots = [TextPosition(*spot) for spot in arguments["spots"]]
        roles = roles_at(root, grammar, spots)
        return [sorted(roles[spot]) for spot in spots]
    matches = find_structural_matches(root, grammar, arguments["pattern"])
    return [(start.line, start.column, end.line, end.column) for start, end in matches]


def _normalized_text(data: bytes) -> str:
    """Decode bytes, convert line endings to LF, and replace lone surrogates."""
    source = decode(data)
    body = lines.convert_line_ends(source.body, "\n")
    return body if source.errors == "strict" else without_surrogates(body)


PARSE_TASK = WorkerTask(
    module=__name__, function=parse_in_worker.__name__, libraries=("ast_grep_py", *GRAMMAR_MODULES)
)
