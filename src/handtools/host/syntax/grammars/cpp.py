"""C++."""

from handtools.host.syntax.grammar import Define, Grammar, named
from handtools.host.syntax.grammars.c import DEFINITIONS, declared

_FUNCTION = {"has": {"kind": "function_declarator", "stopBy": {"kind": "field_declaration_list"}}}

CPP = Grammar(
    language="cpp",
    definitions={
        **DEFINITIONS,
        "class_specifier": Define("class", named("name"), where=DEFINITIONS["struct_specifier"].where),
        "namespace_definition": Define("namespace", named("name")),
        "field_declaration": Define("method", declared, where=_FUNCTION),
        "alias_declaration": Define("type", named("name")),
        "concept_definition": Define("type", named("name")),
    },
    wrappers=frozenset({"template_declaration"}),
    calls={"call_expression": "function", "new_expression": "type"},
    imports=("preproc_include", "using_declaration"),
    strings=("string_literal", "raw_string_literal"),
)
