"""Bash and its relatives."""

from handtools.host.syntax.grammar import Define, Grammar, named

_TOP = {
    "any": [
        {"inside": {"kind": "program"}},
        {"inside": {"kind": "declaration_command", "inside": {"kind": "program"}}},
    ]
}

BASH = Grammar(
    language="bash",
    definitions={
        "function_definition": Define("function", named("name")),
        "variable_assignment": Define("variable", named("name"), where=_TOP, body="value"),
    },
    calls={"command": "name"},
    strings=("string", "raw_string", "heredoc_body"),
)
