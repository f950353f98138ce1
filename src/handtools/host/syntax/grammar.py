"""A grammar: what counts as a definition, a call, an import, a comment and a string in one language."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from handtools.core.syntax import SymbolKind
from handtools.text.truncation import one_line

if TYPE_CHECKING:
    from ast_grep_py import SgNode

ERROR_NODE = "ERROR"
"""What every grammar calls a stretch that it could not read."""
SYMBOL_NAME_CHARS = 80

NodeRule = Mapping[str, Any]
"""An ast-grep rule: what must hold of a node."""


class SymbolName(NamedTuple):
    """What a definition is called, and the node that says so."""

    text: str
    node: "SgNode"


NameFinder = Callable[["SgNode"], SymbolName | None]
"""Finds the name of a definition; None means that it is none after all."""


@dataclass(frozen=True, slots=True)
class DefinitionRule:
    """How one kind of node defines a symbol."""

    kind: SymbolKind
    name: NameFinder
    where: NodeRule = field(default_factory=dict)
    """What must hold of the node as well."""
    refine: Mapping[str, SymbolKind] = field(default_factory=dict)
    """Kinds of children that make it something more exact, such as the keyword `interface`."""
    body: str = "body"
    """The field, or the kind of child, below the head."""
    local: bool = True
    """Whether it counts inside a function too; told from what is around it, cheaper than by a rule."""
    level: Callable[["SgNode"], int] | None = None
    """For headings: it goes on until one of the same or a lower level."""


@dataclass(frozen=True)
class Grammar:
    """The table of one language; node kinds and fields are named as the grammar names them."""

    language: str
    """As ast-grep calls it."""
    definitions: Mapping[str, DefinitionRule]
    wrappers: frozenset[str] = frozenset()
    """Parents that belong to the definition inside: decorators, `export`, `template <…>`."""
    prefixes: frozenset[str] = frozenset()
    """Kinds of nodes that belong to the definition after them."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """Kinds of calls, each with the field that holds what is called; empty for all of the node."""
    imports: tuple[str, ...] = ()
    comments: tuple[str, ...] = ("comment",)
    strings: tuple[str, ...] = ()

    @cached_property
    def outline_rule(self) -> Any:
        """One rule for one walk of the tree: every definition, what wraps one, and what is broken."""
        others = [{"kind": kind} for kind in (ERROR_NODE, *sorted(self.wrappers))]
        return {"rule": {"any": [*self._defined, *others]}}

    @cached_property
    def role_rule(self) -> Any:
        """One rule for every node that has a role."""
        kinds = dict.fromkeys((*self.calls, *self.imports, *self.comments, *self.strings))
        plain = [{"kind": kind} for kind in kinds if kind not in self.definitions]
        return {"rule": {"any": [*plain, *self._defined]}}

    @property
    def _defined(self) -> list[dict[str, Any]]:
        return [{"kind": kind, **define.where} for kind, define in self.definitions.items()]


def field_of_kind(field_name: str, kind: str) -> NameFinder:
    """The text of a field, if it is of one kind: cheaper here than as a rule."""

    def name(node: "SgNode") -> SymbolName | None:
        found = node.field(field_name)
        return name_of_node(found) if found is not None and found.kind() == kind else None

    return name


def field_text(*path: str) -> NameFinder:
    """The text of a field, or of a field of a field."""

    first, *rest = path

    def name(node: "SgNode") -> SymbolName | None:
        found = node.field(first)
        for step in rest:
            found = found and found.field(step)
        return name_of_node(found)

    return name


def child_text(*kinds: str) -> NameFinder:
    """The text of the first child of one of these kinds."""

    def name(node: "SgNode") -> SymbolName | None:
        return name_of_node(next((part for part in node.children() if part.kind() in kinds), None))

    return name


def name_without(namer: NameFinder, pattern: str, put: str = "") -> NameFinder:
    """A name with what matches a pattern taken out or replaced: type parameters, quotes."""
    compiled = re.compile(pattern)

    def name(node: "SgNode") -> SymbolName | None:
        found = namer(node)
        return found and found._replace(text=compiled.sub(put, found.text))

    return name


def fixed_name(text: str) -> NameFinder:
    """A name that the language gives."""
    return lambda node: SymbolName(text, node)


def name_of_node(node: "SgNode | None") -> SymbolName | None:
    """A node's text as a name: one line, not too long."""
    if node is None:
        return None
    text = node.text()
    return SymbolName(text if text.isidentifier() else one_line(text, SYMBOL_NAME_CHARS), node)


def any_kind(*names: str) -> NodeRule:
    """Holds of nodes of these kinds."""
    return {"any": [{"kind": name} for name in names]}


def inside_kind(*names: str) -> NodeRule:
    """Holds of a node whose parent is of one of these kinds."""
    return {"inside": any_kind(*names)}
