"""A grammar: what counts as a definition, a call, an import, a comment and a string in one language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from handtools.core.syntax import SymbolKind

if TYPE_CHECKING:
    from ast_grep_py import SgNode

Namer = Callable[["SgNode"], str | None]
"""Finds the name of a definition; None means that it is none after all."""
Pattern = Mapping[str, Any]
"""An ast-grep rule: https://ast-grep.github.io/reference/rule.html"""

BROKEN = "ERROR"
"""What every grammar calls a stretch that it could not read."""
NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Define:
    """How one kind of node defines a symbol."""

    kind: SymbolKind
    name: Namer
    where: Pattern = field(default_factory=dict)
    """What must hold of the node as well."""
    body: str = "body"
    """The field, or the kind of child, below the head."""


@dataclass(frozen=True)
class Grammar:
    """The table of one language; node kinds and fields are named as the grammar names them."""

    language: str
    """As ast-grep calls it."""
    definitions: Mapping[str, Define]
    wrappers: frozenset[str] = frozenset()
    """Parents that belong to the definition inside: decorators, `export`, `template <…>`."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """Kinds of calls, each with the field that holds what is called."""
    imports: tuple[str, ...] = ()
    comments: tuple[str, ...] = ("comment",)
    strings: tuple[str, ...] = ()

    @cached_property
    def outline_rule(self) -> Any:
        """One rule for one walk of the tree: every definition, and what is broken."""
        kinds = [{"kind": kind, **define.where} for kind, define in self.definitions.items()]
        return {"rule": {"any": [*kinds, {"kind": BROKEN}]}}

    @cached_property
    def role_rule(self) -> Any:
        """One rule for every node that has a role."""
        kinds = (*self.definitions, *self.calls, *self.imports, *self.comments, *self.strings)
        plain = [{"kind": kind} for kind in dict.fromkeys(kinds) if kind not in self.definitions]
        defined = [{"kind": kind, **define.where} for kind, define in self.definitions.items()]
        return {"rule": {"any": [*plain, *defined]}}


def named(*path: str) -> Namer:
    """The text of a field, or of a field of a field."""

    def name(node: "SgNode") -> str | None:
        found: SgNode | None = node
        for step in path:
            found = found and found.field(step)
        return shown(found)

    return name


def child(*kinds: str) -> Namer:
    """The text of the first child of one of these kinds."""

    def name(node: "SgNode") -> str | None:
        return shown(next((part for part in node.children() if part.kind() in kinds), None))

    return name


def innermost(field_name: str) -> Namer:
    """The text at the end of a chain of one field, as in C's declarators of declarators."""

    def name(node: "SgNode") -> str | None:
        found = node.field(field_name)
        while found is not None and (deeper := found.field(field_name)) is not None:
            found = deeper
        return shown(found)

    return name


def shown(node: "SgNode | None") -> str | None:
    """A node's text as a name: one line, not too long."""
    if node is None:
        return None
    text = " ".join(node.text().split())
    return text if len(text) <= NAME_CHARS else f"{text[: NAME_CHARS - 1]}…"


def within(*kinds: str) -> Pattern:
    """Holds of a node whose parent is one of these kinds."""
    return {"inside": one_of(*kinds)}


def one_of(*kinds: str) -> Pattern:
    """Holds of nodes of these kinds."""
    return {"any": [{"kind": kind} for kind in kinds]}
