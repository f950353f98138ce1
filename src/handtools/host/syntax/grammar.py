"""Syntax rules of a language: which tree-sitter nodes are definitions, calls, imports, etc."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from handtools.core.syntax import SymbolKind
from handtools.text.truncation import collapse_to_one_line

if TYPE_CHECKING:
    from ast_grep_py import SgNode

ERROR_NODE = "ERROR"
"""The node kind that every tree-sitter grammar uses for text that could not be parsed."""
SYMBOL_NAME_CHARS = 80

AstGrepRule = Mapping[str, Any]
"""An ast-grep rule: conditions on a syntax node."""


class SymbolName(NamedTuple):
    """The name of a definition, and the node that contains it."""

    text: str
    node: "SgNode"


NameFinder = Callable[["SgNode"], SymbolName | None]
"""A function that returns the name of a definition node; None if the node is not a definition."""


@dataclass(frozen=True, slots=True)
class DefinitionRule:
    """How one kind of node defines a symbol: its kind, name and body."""

    kind: SymbolKind
    name: NameFinder
    where: AstGrepRule = field(default_factory=dict)
    """An additional ast-grep rule that the node must match."""
    refine: Mapping[str, SymbolKind] = field(default_factory=dict)
    """Child node kinds that make the symbol's kind more specific, such as the keyword `interface`."""
    body: str = "body"
    """The field that contains the definition's body, or the node kind of the child that is the body."""
    local: bool = True
    """Whether the definition is listed even if it is inside a function."""
    level: Callable[["SgNode"], int] | None = None
    """For headings, their level (1 for `#`); a section ends at the next heading of an equal or smaller level."""


@dataclass(frozen=True)
class Grammar:
    """The syntax rules of one language, in terms of its tree-sitter node kinds and fields."""

    language: str
    """The language's name in ast-grep."""
    definitions: Mapping[str, DefinitionRule]
    wrappers: frozenset[str] = frozenset()
    """Parent node kinds that belong to the definition inside them: decorators, `export`, `template <…>`."""
    prefixes: frozenset[str] = frozenset()
    """Sibling node kinds that belong to the definition after them, such as attributes."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """Call node kinds, each with the field that names the called function; if empty, the whole node does."""
    imports: tuple[str, ...] = ()
    comments: tuple[str, ...] = ("comment",)
    strings: tuple[str, ...] = ()

    @cached_property
    def outline_nodes_rule(self) -> Any:
        """One ast-grep rule that finds all definitions, wrappers and syntax errors in a single pass."""
        others = [{"kind": kind} for kind in (ERROR_NODE, *sorted(self.wrappers))]
        return {"rule": {"any": [*self._definition_node_rules, *others]}}

    @cached_property
    def role_nodes_rule(self) -> Any:
        """One ast-grep rule that finds all nodes with a role: definition, call, import, comment, string."""
        kinds = dict.fromkeys((*self.calls, *self.imports, *self.comments, *self.strings))
        plain = [{"kind": kind} for kind in kinds if kind not in self.definitions]
        return {"rule": {"any": [*plain, *self._definition_node_rules]}}

    @property
    def _definition_node_rules(self) -> list[dict[str, Any]]:
        return [{"kind": kind, **define.where} for kind, define in self.definitions.items()]


def typed_field_name_finder(field_name: str, kind: str) -> NameFinder:
    """Return a name finder that uses the text of a field if the field's node is of the given kind."""

    def name(node: "SgNode") -> SymbolName | None:
        found = node.field(field_name)
        return node_text_as_name(found) if found is not None and found.kind() == kind else None

    return name


def field_name_finder(*path: str) -> NameFinder:
    """Return a name finder that uses the text of a field, or of a nested field."""

    first, *rest = path

    def name(node: "SgNode") -> SymbolName | None:
        found = node.field(first)
        for step in rest:
            found = found and found.field(step)
        return node_text_as_name(found)

    return name


def child_name_finder(*kinds: str) -> NameFinder:
    """Return a name finder that uses the text of the first child of one of these kinds."""

    def name(node: "SgNode") -> SymbolName | None:
        return node_text_as_name(next((part for part in node.children() if part.kind() in kinds), None))

    return name


def symbol_name_finder_with_replacement(namer: NameFinder, pattern: str, put: str = "") -> NameFinder:
    """Return a name finder that replaces regex matches, such as type parameters, in another finder's result."""
    compiled = re.compile(pattern)

    def name(node: "SgNode") -> SymbolName | None:
        found = namer(node)
        return found and found._replace(text=compiled.sub(put, found.text))

    return name


def fixed_name_finder(text: str) -> NameFinder:
    """Return a name finder that always returns the same text, such as `constructor`."""
    return lambda node: SymbolName(text, node)


def node_text_as_name(node: "SgNode | None") -> SymbolName | None:
    """Return the text of a node as a symbol name, on one line and clipped; None without a node."""
    if node is None:
        return None
    text = node.text()
    return SymbolName(text if text.isidentifier() else collapse_to_one_line(text, SYMBOL_NAME_CHARS), node)


def node_kind_rule(*names: str) -> AstGrepRule:
    """Return an ast-grep rule that matches nodes of these kinds."""
    return {"any": [{"kind": name} for name in names]}


def parent_kind_rule(*names: str) -> AstGrepRule:
    """Return an ast-grep rule that matches nodes whose parent is of one of these kinds."""
    return {"inside": node_kind_rule(*names)}
