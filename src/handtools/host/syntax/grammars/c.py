"""C."""

import re
from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name, Pattern, kinds, named, shown, within

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_NESTED = {"parenthesized_declarator", "reference_declarator"}
_TEMPLATE = re.compile(r"<[^<>]*>")
_BODY: Pattern = {"has": {"field": "body", **kinds("field_declaration_list", "enumerator_list")}}
_GROUPS = ("preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "linkage_specification")
TOP: Pattern = within("translation_unit", "declaration_list", *_GROUPS)


def declared(node: "SgNode") -> Name | None:
    """The name at the heart of a declarator: `*name(…)[…]` reads from the inside out."""
    found = node.field("declarator")
    while found is not None:
        deeper = found.field("declarator")
        if deeper is None and found.kind() in _NESTED:
            deeper = next(iter(found.named_children()), None)
        if deeper is None:
            break
        found = deeper
    name = shown(found)
    return name and name._replace(text=_TEMPLATE.sub("", name.text))


DEFINITIONS = {
    "function_definition": Define("function", declared),
    "declaration": Define(
        "variable", declared, where=TOP, refine={"function_declarator": "function"}, body="declarator"
    ),
    "struct_specifier": Define("struct", named("name"), where=_BODY),
    "union_specifier": Define("struct", named("name"), where=_BODY),
    "enum_specifier": Define("enum", named("name"), where=_BODY),
    "type_definition": Define(
        "type", declared, refine={"struct_specifier": "struct", "enum_specifier": "enum"}, body="type"
    ),
    "preproc_def": Define("constant", named("name")),
    "preproc_function_def": Define("macro", named("name")),
}
STRINGS = ("string_literal", "raw_string_literal", "system_lib_string")

C = Grammar(
    language="c",
    definitions=DEFINITIONS,
    calls={"call_expression": "function"},
    imports=("preproc_include",),
    strings=("string_literal",),
)
