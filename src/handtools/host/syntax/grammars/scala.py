"""Scala."""

from handtools.host.syntax.grammar import Define, Grammar, named, within

_TOP = within("compilation_unit", "template_body")

SCALA = Grammar(
    language="scala",
    definitions={
        "class_definition": Define("class", named("name")),
        "object_definition": Define("class", named("name")),
        "trait_definition": Define("trait", named("name")),
        "enum_definition": Define("enum", named("name")),
        "function_definition": Define("function", named("name")),
        "function_declaration": Define("function", named("name")),
        "type_definition": Define("type", named("name")),
        "val_definition": Define("constant", named("pattern"), where=_TOP, body="value"),
        "var_definition": Define("variable", named("pattern"), where=_TOP, body="value"),
        "val_declaration": Define("constant", named("name"), where=_TOP),
        "var_declaration": Define("variable", named("name"), where=_TOP),
    },
    calls={"call_expression": "function"},
    imports=("import_declaration", "package_clause"),
    comments=("comment", "block_comment"),
    strings=("string", "interpolated_string_expression"),
)
