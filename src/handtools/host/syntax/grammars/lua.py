"""Lua."""

from handtools.host.syntax.grammar import Define, Grammar, named, shown

_FUNCTION = {"has": {"kind": "expression_list", "has": {"kind": "function_definition"}}}
_LOCAL = {"inside": {"kind": "variable_declaration", "inside": {"kind": "chunk"}}}

LUA = Grammar(
    language="lua",
    definitions={
        "function_declaration": Define("function", named("name")),
        "assignment_statement": Define(
            "variable",
            lambda node: shown(next(iter(node.named_children()), None)),
            where={"any": [_FUNCTION, _LOCAL]},
        ),
        "field": Define(
            "function", named("name"), where={"has": {"field": "value", "kind": "function_definition"}}
        ),
    },
    calls={"function_call": "name"},
    strings=("string",),
)
