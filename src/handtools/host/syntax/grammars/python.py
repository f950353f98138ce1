"""Python."""

from handtools.host.syntax.grammar import Define, Grammar, named, simple

_TOP = {
    "kind": "expression_statement",
    "inside": {"any": [{"kind": "module"}, {"kind": "block", "inside": {"kind": "class_definition"}}]},
}

PYTHON = Grammar(
    language="python",
    definitions={
        "class_definition": Define("class", named("name")),
        "function_definition": Define("function", named("name")),
        "type_alias_statement": Define("type", named("left")),
        "assignment": Define(
            "variable", simple("left", "identifier"), where={"inside": _TOP}, body="right"
        ),
    },
    wrappers=frozenset({"decorated_definition"}),
    calls={"call": "function", "decorator": ""},
    imports=("import_statement", "import_from_statement", "future_import_statement"),
    strings=("string",),
)
