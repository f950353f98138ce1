"""Swift."""

from handtools.host.syntax.grammar import Define, Grammar, child, fixed, named, plain, within

_TOP = within("source_file", "class_body", "enum_class_body", "protocol_body")

SWIFT = Grammar(
    language="swift",
    definitions={
        "class_declaration": Define(
            "class",
            plain(child("type_identifier", "user_type"), r"<.*"),
            refine={"struct": "struct", "enum": "enum", "extension": "impl"},
        ),
        "protocol_declaration": Define("interface", named("name")),
        "function_declaration": Define("function", child("simple_identifier")),
        "protocol_function_declaration": Define("function", child("simple_identifier")),
        "init_declaration": Define("method", fixed("init")),
        "deinit_declaration": Define("method", fixed("deinit")),
        "property_declaration": Define("property", child("pattern"), where=_TOP, body="computed_property"),
        "protocol_property_declaration": Define("property", plain(child("pattern"), r"^(?:var|let)\s+")),
        "typealias_declaration": Define("type", child("type_identifier")),
    },
    calls={"call_expression": ""},
    imports=("import_declaration",),
    comments=("comment", "multiline_comment"),
    strings=("line_string_literal", "multi_line_string_literal", "raw_string_literal"),
)
