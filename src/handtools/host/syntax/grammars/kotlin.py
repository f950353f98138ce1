"""Kotlin."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name, child, shown, within

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_TOP = within("source_file", "class_body", "enum_class_body")


def _property(node: "SgNode") -> Name | None:
    found = next((part for part in node.children() if part.kind() == "variable_declaration"), None)
    return shown(found and next(iter(found.named_children()), None))


KOTLIN = Grammar(
    language="kotlin",
    definitions={
        "class_declaration": Define(
            "class",
            child("type_identifier"),
            refine={"interface": "interface", "enum": "enum"},
            body="class_body",
        ),
        "object_declaration": Define("class", child("type_identifier"), body="class_body"),
        "function_declaration": Define("function", child("simple_identifier"), body="function_body"),
        "property_declaration": Define("property", _property, where=_TOP),
        "type_alias": Define("type", child("type_identifier")),
    },
    calls={"call_expression": ""},
    imports=("import_header", "package_header"),
    comments=("line_comment", "multiline_comment"),
    strings=("string_literal",),
)
