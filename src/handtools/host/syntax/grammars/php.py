"""PHP."""

from handtools.host.syntax.grammar import Define, Grammar, child, named, shown

PHP = Grammar(
    language="php",
    definitions={
        "namespace_definition": Define("namespace", named("name")),
        "class_declaration": Define("class", named("name")),
        "interface_declaration": Define("interface", named("name")),
        "trait_declaration": Define("trait", named("name")),
        "enum_declaration": Define("enum", named("name")),
        "function_definition": Define("function", named("name")),
        "method_declaration": Define("method", named("name")),
        "const_element": Define("constant", child("name")),
        "property_element": Define(
            "field", lambda node: shown(node.field("name") or next(iter(node.named_children()), None))
        ),
    },
    calls={
        "function_call_expression": "function",
        "member_call_expression": "name",
        "scoped_call_expression": "name",
        "object_creation_expression": "",
    },
    imports=("namespace_use_declaration",),
    strings=("string", "encapsed_string", "heredoc"),
)
