"""TypeScript, and TypeScript with JSX: two grammars, one table."""

from dataclasses import replace

from handtools.host.syntax.grammar import Define, Grammar, named, plain
from handtools.host.syntax.grammars.javascript import (
    CALLS,
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    STRINGS,
    WRAPPERS,
)

_UNQUOTED = plain(named("name"), r"^['\"]|['\"]$")

TYPESCRIPT = Grammar(
    language="typescript",
    definitions={
        **DEFINITIONS,
        "abstract_class_declaration": Define("class", named("name")),
        "interface_declaration": Define("interface", named("name")),
        "enum_declaration": Define("enum", named("name")),
        "type_alias_declaration": Define("type", named("name"), body="value"),
        "internal_module": Define("namespace", _UNQUOTED),
        "module": Define("namespace", _UNQUOTED),
        "function_signature": Define("function", named("name")),
        "method_signature": Define("method", named("name"), where={"inside": {"kind": "interface_body"}}),
        "abstract_method_signature": Define("method", named("name")),
        "property_signature": Define("field", named("name"), where={"inside": {"kind": "interface_body"}}),
        "public_field_definition": Define(
            "field", named("name"), refine=dict.fromkeys(FUNCTIONS, "method"), body="value"
        ),
    },
    wrappers=WRAPPERS,
    prefixes=frozenset({"decorator"}),
    calls=CALLS,
    imports=IMPORTS,
    strings=STRINGS,
)
TSX = replace(TYPESCRIPT, language="tsx")
