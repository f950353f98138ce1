"""Syntax rules for CSS, HTML, JSON, Markdown and YAML: definitions, comments, strings."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import (
    SYMBOL_NAME_CHARS,
    DefinitionRule,
    Grammar,
    SymbolName,
    child_name_finder,
    field_name_finder,
    symbol_name_finder_with_replacement,
)

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def _css_block_name(node: "SgNode") -> SymbolName | None:
    """Return the selector or at-rule before a CSS block as the name of the block."""
    head = " ".join(node.text().partition("{")[0].split())
    return SymbolName(head[:SYMBOL_NAME_CHARS], node) if "{" in node.text() else None


CSS = Grammar(
    language="css",
    definitions={
        "rule_set": DefinitionRule("rule", child_name_finder("selectors"), body="block"),
        "media_statement": DefinitionRule("rule", _css_block_name, body="block"),
        "supports_statement": DefinitionRule("rule", _css_block_name, body="block"),
        "keyframes_statement": DefinitionRule("rule", _css_block_name, body="keyframe_block_list"),
        "at_rule": DefinitionRule("rule", _css_block_name, body="block"),
        "declaration": DefinitionRule(
            "variable",
            child_name_finder("property_name"),
            where={"has": {"kind": "property_name", "regex": "^--"}},
        ),
    },
    calls={"call_expression": ""},
    imports=("import_statement",),
    strings=("string_value",),
)


_HTML_LANDMARKS = {
    "article", "aside", "body", "dialog", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header",
    "html", "main", "nav", "script", "section", "style", "table", "template", "title",
}  # fmt: skip


def _html_element_name(node: "SgNode") -> SymbolName | None:
    tag = next((part for part in node.children() if part.kind() in {"start_tag", "self_closing_tag"}), None)
    named = tag and next((part for part in tag.children() if part.kind() == "tag_name"), None)
    if tag is None or named is None:
        return None
    name, found = named.text(), _html_id_attribute(tag)
    if found:
        return SymbolName(f"{name}#{found}", named)
    return SymbolName(name, named) if name.lower() in _HTML_LANDMARKS else None


def _html_id_attribute(tag: "SgNode") -> str:
    for part in tag.children():
        if part.kind() == "attribute" and part.text()[:2].lower() == "id":
            name, _, value = part.text().partition("=")
            if name.strip().lower() == "id":
                return value.strip().strip("\"'")
    return ""


HTML = Grammar(
    language="html",
    definitions={
        "element": DefinitionRule("element", _html_element_name),
        "script_element": DefinitionRule("element", _html_element_name),
        "style_element": DefinitionRule("element", _html_element_name),
    },
    strings=("quoted_attribute_value",),
)

JSON = Grammar(
    language="json",
    definitions={
        "pair": DefinitionRule(
            "key", symbol_name_finder_with_replacement(field_name_finder("key"), r"^\"|\"$"), body="value"
        )
    },
    strings=("string",),
)


def _markdown_heading_level(node: "SgNode") -> int:
    """Return the level of a Markdown heading: 1 for `#` and `===`, 2 for `##` and `---`."""
    return next(
        (int(part.kind()[-8]) for part in node.children() if part.kind().endswith("_marker")), 0
    ) or (1 if any(part.kind() == "setext_h1_underline" for part in node.children()) else 2)


MARKDOWN = Grammar(
    language="markdown",
    definitions={
        "atx_heading": DefinitionRule(
            "heading", child_name_finder("inline"), level=_markdown_heading_level
        ),
        "setext_heading": DefinitionRule(
            "heading", child_name_finder("paragraph"), level=_markdown_heading_level
        ),
    },
    comments=("html_block",),
    strings=("fenced_code_block",),
)

YAML = Grammar(
    language="yaml",
    definitions={
        "block_mapping_pair": DefinitionRule(
            "key",
            symbol_name_finder_with_replacement(field_name_finder("key"), r"^['\"]|['\"]$"),
            body="value",
        )
    },
    strings=("double_quote_scalar", "single_quote_scalar", "block_scalar"),
)
