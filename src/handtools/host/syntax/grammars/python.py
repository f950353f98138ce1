"""Python."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name, named, shown

if TYPE_CHECKING:
    from ast_grep_py import SgNode


_HOLDERS = {"module", "class_definition"}


def _variable(node: "SgNode") -> Name | None:
    """A plain name that is given a value right in a module or a class, not under an `if` there."""
    left = node.field("left")
    if left is None or left.kind() != "identifier":
        return None
    if not node.range().start.column:
        return shown(left)  # Nothing that is under something else begins a line; to look up costs more.
    statement = node.parent()
    outer = statement and statement.parent()
    if outer is not None and outer.kind() == "block":
        outer = outer.parent()
    return shown(left) if outer is not None and outer.kind() in _HOLDERS else None


PYTHON = Grammar(
    language="python",
    definitions={
        "class_definition": Define("class", named("name")),
        "function_definition": Define("function", named("name")),
        "type_alias_statement": Define("type", named("left")),
        "assignment": Define("variable", _variable, body="right", local=False),
    },
    wrappers=frozenset({"decorated_definition"}),
    calls={"call": "function", "decorator": ""},
    imports=("import_statement", "import_from_statement", "future_import_statement"),
    strings=("string",),
)
