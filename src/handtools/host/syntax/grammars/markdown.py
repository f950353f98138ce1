"""Markdown: headings, each with all that stands below it."""

from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import Define, Grammar, child

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def _level(node: "SgNode") -> int:
    """1 for `#` and `===`, 2 for `##` and `---`."""
    return next(
        (int(part.kind()[-8]) for part in node.children() if part.kind().endswith("_marker")), 0
    ) or (1 if any(part.kind() == "setext_h1_underline" for part in node.children()) else 2)


MARKDOWN = Grammar(
    language="markdown",
    definitions={
        "atx_heading": Define("heading", child("inline"), level=_level),
        "setext_heading": Define("heading", child("paragraph"), level=_level),
    },
    comments=("html_block",),
    strings=("fenced_code_block",),
)
