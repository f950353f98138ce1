"""Rust."""

from handtools.host.syntax.grammar import Define, Grammar, named, plain

RUST = Grammar(
    language="rust",
    definitions={
        "function_item": Define("function", named("name")),
        "function_signature_item": Define("function", named("name")),
        "struct_item": Define("struct", named("name")),
        "union_item": Define("struct", named("name")),
        "enum_item": Define("enum", named("name")),
        "trait_item": Define("trait", named("name")),
        # Named for its type, so that `Type.method` finds a method wherever it is implemented.
        "impl_item": Define("impl", plain(named("type"), r"<.*")),
        "mod_item": Define("namespace", named("name")),
        "const_item": Define("constant", named("name"), body="value"),
        "static_item": Define("variable", named("name"), body="value"),
        "type_item": Define("type", named("name"), body="type"),
        "associated_type": Define("type", named("name")),
        "macro_definition": Define("macro", named("name")),
        "field_declaration": Define(
            "field",
            named("name"),
            where={"inside": {"kind": "field_declaration_list", "inside": {"kind": "struct_item"}}},
        ),
    },
    prefixes=frozenset({"attribute_item"}),
    calls={"call_expression": "function", "macro_invocation": "macro"},
    imports=("use_declaration", "extern_crate_declaration"),
    comments=("line_comment", "block_comment"),
    strings=("string_literal", "raw_string_literal"),
)
