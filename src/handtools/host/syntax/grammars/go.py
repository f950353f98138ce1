"""Go."""

import re
from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name, named, shown

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)?\s*\Z")


def _method(node: "SgNode") -> Name | None:
    """`func (s *Store) Load()` is `Store.Load`: a method stands apart from its type."""
    name, receiver = shown(node.field("name")), node.field("receiver")
    owner = receiver and _RECEIVER.search(receiver.text())
    return name and name._replace(text=f"{owner[1]}.{name.text}" if owner else name.text)


_TOP = {"inside": {"kind": "source_file", "stopBy": {"any": [{"kind": "block"}]}}}

GO = Grammar(
    language="go",
    definitions={
        "function_declaration": Define("function", named("name")),
        "method_declaration": Define("method", _method),
        "type_spec": Define(
            "type",
            named("name"),
            refine={"struct_type": "struct", "interface_type": "interface"},
            body="type",
        ),
        "type_alias": Define("type", named("name")),
        "const_spec": Define("constant", named("name"), where=_TOP, body="value"),
        "var_spec": Define("variable", named("name"), where=_TOP, body="value"),
        "field_declaration": Define("field", named("name")),
        "method_elem": Define("method", named("name")),
    },
    calls={"call_expression": "function"},
    imports=("import_declaration", "import_spec"),
    strings=("interpreted_string_literal", "raw_string_literal"),
)
