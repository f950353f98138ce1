"""Markup: HTML as Markdown or as plain text, with nothing of the page's content left out."""

import re
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

Flat = Literal["markdown", "text"]

_LEFT_OUT = [
    "nav", "[role=navigation]", "[role=search]", "template", "dialog", "button",
    ".headerlink", ".hash-link", ".doc-anchor", "a.anchor",
]  # fmt: skip
"""What is on every page of a site, and the links of headings to themselves. Headers and footers stay: some sites
put the page's own title there."""
_NUMBERED = ("linenos", "gutter", "lntd")
_CELL = r"(?:[^<]|<(?!/?(?:table|td|tr)\b))*+"
# Nothing here goes back over what it has passed: the page may have been written to make it.
_NUMBERS_BESIDE = re.compile(
    r"<table\b[^>]*+>\s*+(?:<tbody\b[^>]*+>\s*+)?<tr\b[^>]*+>\s*+"
    rf"<td\b(?=[^>]*?\b(?:linenos|gutter|lntd)\b)[^>]*+>{_CELL}</td>\s*+<td\b[^>]*+>({_CELL})</td>\s*+"
    r"</tr>\s*+(?:</tbody>\s*+)?</table>"
)
_TITLE = re.compile(r"<title\b[^<>]*+>((?:[^<]|<(?!/?title\b))*+)</title", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_HEAD_CHARS = 64 << 10
_HTML = re.compile(
    r"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


def converted(html: str, form: Flat, address: str = "") -> str:
    """The page as text; links that were relative lead where they led."""
    from html_to_markdown import convert

    if any(name in html for name in _NUMBERED):
        # A sample beside its line numbers is a table to a converter, and would lose its line ends in it.
        html = _NUMBERS_BESIDE.sub(r"<div>\1</div>", html)
    return convert(html, _options(form, address)).content or ""


def title_of(html: str) -> str:
    """What the page calls itself; empty when it does not."""
    found = _TITLE.search(html, 0, _HEAD_CHARS)
    return " ".join(unescape(found[1]).split()) if found else ""


def looks_like_html(text: str) -> bool:
    """Whether a text that nobody says anything about is a page."""
    return _HTML.match(text[:4096]) is not None


@cache
def _shared(form: Flat) -> "ConversionOptions":
    from html_to_markdown import ConversionOptions, InlineDataMedia, OutputFormat, PreprocessingOptions

    return ConversionOptions(
        # Its own idea of navigation takes the header of an article away, and the title in it.
        preprocessing=PreprocessingOptions(enabled=False),
        output_format=OutputFormat.PLAIN if form == "text" else OutputFormat.MARKDOWN,
        exclude_selectors=_LEFT_OUT,
        extract_metadata=False,
        compact_tables=True,
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
    )


def _options(form: Flat, address: str) -> "ConversionOptions":
    from dataclasses import replace

    return replace(_shared(form), base_url=address) if address else _shared(form)


def without_tags(text: str) -> str:
    """A line of text without the few tags by which engines mark words."""
    return unescape(_TAG.sub("", text))
