"""C#."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name, named, shown

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def _variable(node: "SgNode") -> Name | None:
    """`public int X = 1;` keeps its name two levels down."""
    for part in node.children():
        if part.kind() == "variable_declaration":
            found = next((d for d in part.children() if d.kind() == "variable_declarator"), None)
            return shown(found and found.field("name"))
    return None


CSHARP = Grammar(
    language="csharp",
    definitions={
        "namespace_declaration": Define("namespace", named("name")),
        "class_declaration": Define("class", named("name")),
        "record_declaration": Define("class", named("name")),
        "struct_declaration": Define("struct", named("name")),
        "interface_declaration": Define("interface", named("name")),
        "enum_declaration": Define("enum", named("name")),
        "delegate_declaration": Define("type", named("name")),
        "method_declaration": Define("method", named("name")),
        "constructor_declaration": Define("method", named("name")),
        "destructor_declaration": Define("method", named("name")),
        "local_function_statement": Define("function", named("name")),
        "property_declaration": Define("property", named("name"), body="accessors"),
        "field_declaration": Define("field", _variable),
    },
    calls={"invocation_expression": "function", "object_creation_expression": "type"},
    imports=("using_directive",),
    strings=(
        "string_literal",
        "verbatim_string_literal",
        "interpolated_string_expression",
        "raw_string_literal",
    ),
)
