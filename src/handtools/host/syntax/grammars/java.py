"""Java."""

from handtools.host.syntax.grammar import Define, Grammar, named

JAVA = Grammar(
    language="java",
    definitions={
        "class_declaration": Define("class", named("name")),
        "interface_declaration": Define("interface", named("name")),
        "annotation_type_declaration": Define("interface", named("name")),
        "enum_declaration": Define("enum", named("name")),
        "record_declaration": Define("class", named("name")),
        "method_declaration": Define("method", named("name")),
        "constructor_declaration": Define("method", named("name")),
        "compact_constructor_declaration": Define("method", named("name")),
        "annotation_type_element_declaration": Define("method", named("name")),
        "field_declaration": Define("field", named("declarator", "name"), body="declarator"),
        "constant_declaration": Define("constant", named("declarator", "name"), body="declarator"),
    },
    calls={"method_invocation": "name", "object_creation_expression": "type"},
    imports=("import_declaration", "package_declaration"),
    comments=("line_comment", "block_comment"),
    strings=("string_literal",),
)
