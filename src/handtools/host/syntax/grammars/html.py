"""HTML: the elements that give a page its shape, and every element with an id."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, Name

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_SHAPE = {
    "article", "aside", "body", "dialog", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header",
    "html", "main", "nav", "script", "section", "style", "table", "template", "title",
}  # fmt: skip


def _element(node: "SgNode") -> Name | None:
    tag = next((part for part in node.children() if part.kind() in {"start_tag", "self_closing_tag"}), None)
    named = tag and next((part for part in tag.children() if part.kind() == "tag_name"), None)
    if tag is None or named is None:
        return None
    name, found = named.text(), _id(tag)
    if found:
        return Name(f"{name}#{found}", named)
    return Name(name, named) if name.lower() in _SHAPE else None


def _id(tag: "SgNode") -> str:
    for part in tag.children():
        if part.kind() == "attribute" and part.text()[:2].lower() == "id":
            name, _, value = part.text().partition("=")
            if name.strip().lower() == "id":
                return value.strip().strip("\"'")
    return ""


HTML = Grammar(
    language="html",
    definitions={
        "element": Define("element", _element),
        "script_element": Define("element", _element),
        "style_element": Define("element", _element),
    },
    strings=("quoted_attribute_value",),
)
