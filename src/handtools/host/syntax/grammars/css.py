"""CSS."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import NAME_CHARS, Define, Grammar, Name, child

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def _head(node: "SgNode") -> Name | None:
    """What stands before the block."""
    head = " ".join(node.text().partition("{")[0].split())
    return Name(head[:NAME_CHARS], node) if "{" in node.text() else None


CSS = Grammar(
    language="css",
    definitions={
        "rule_set": Define("rule", child("selectors"), body="block"),
        "media_statement": Define("rule", _head, body="block"),
        "supports_statement": Define("rule", _head, body="block"),
        "keyframes_statement": Define("rule", _head, body="keyframe_block_list"),
        "at_rule": Define("rule", _head, body="block"),
        "declaration": Define(
            "variable",
            child("property_name"),
            where={"has": {"kind": "property_name", "regex": "^--"}},
        ),
    },
    calls={"call_expression": ""},
    imports=("import_statement",),
    strings=("string_value",),
)
