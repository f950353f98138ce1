"""Conversion of HTML pages to Markdown or plain text, and decoding of bytes by their charset."""

import codecs
import re
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Literal

from handtools.text.encoding import DecodedText, decode

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions


# Charset labels that browsers interpret as a different encoding, as pages expect.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}


_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_NO_CHARSET = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7", "undefined"})


def decode_page(data: bytes, label: str) -> DecodedText:
    """Decode a web page by byte order mark, UTF-8, the server's charset label or the page's own, in turn.

    Non-ASCII bytes that are valid UTF-8 are decoded as UTF-8: servers with a wrong label are far more
    common than other text that happens to be valid UTF-8.
    """
    if data.startswith(_MARKS) or not label:
        return decode(data)
    encoding = _encoding(label)
    if encoding is None:
        return decode(data)
    if encoding.startswith("utf-") or not _is_utf8(data):
        try:
            return DecodedText(data.decode(encoding), encoding, confidence=0.95)
        except UnicodeDecodeError:
            pass
    return decode(data)


def _encoding(label: str) -> str | None:
    try:
        found = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    name = found.name
    # Python's bytes-to-bytes codecs are not charsets.
    is_text = getattr(found, "_is_text_encoding", True)
    return None if name in _NO_CHARSET or not is_text else _MEANT.get(name, name)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


WebPageFormat = Literal["markdown", "text"]


class UnconvertiblePage(ValueError):
    """Raised for content that the converter rejects as not HTML, such as a zip labelled as HTML."""


_LEFT_OUT = [
    "nav", "[role=navigation]", "[role=search]", "template", "dialog", "button",
    ".headerlink", ".hash-link", ".doc-anchor", "a.anchor",
]  # fmt: skip


"""CSS selectors of elements left out of pages: navigation, and links of headings to themselves.

Headers and footers stay: some sites put the page's title there.
"""


_NUMBERED = ("linenos", "gutter", "lntd")
_CELL = r"(?:[^<]|<(?!/?(?:table|td|tr)\b))*+"


# Possessive quantifiers prevent backtracking: a page could be written to make the regex slow.
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


def convert_html(html: str, form: WebPageFormat, address: str = "") -> str:
    """Convert HTML to Markdown or plain text; relative links are resolved against `address`.

    Raises `UnconvertiblePage`.
    """
    from html_to_markdown import ConversionError, convert

    if any(name in html for name in _NUMBERED):
        # Code next to its line numbers is a table for the converter, and would lose its line breaks.
        html = _NUMBERS_BESIDE.sub(r"<div>\1</div>", html)
    try:
        # NULs mean nothing in a page, and many of them make the converter reject it as binary.
        return convert(html.replace("\0", ""), _options(form, address)).content or ""
    except ConversionError as problem:
        raise UnconvertiblePage(str(problem)) from problem


def html_title(html: str) -> str:
    """Return the content of the `<title>` element of a page; empty if there is none."""
    found = _TITLE.search(html, 0, _HEAD_CHARS)
    return " ".join(unescape(found[1]).split()) if found else ""


def looks_like_html(text: str) -> bool:
    """Whether text without a media type begins like an HTML page."""
    return _HTML.match(text[:4096]) is not None


@cache
def _shared(form: WebPageFormat) -> "ConversionOptions":
    from html_to_markdown import ConversionOptions, InlineDataMedia, OutputFormat, PreprocessingOptions

    return ConversionOptions(
        # The converter's navigation filter would remove an article's header, with its title.
        preprocessing=PreprocessingOptions(enabled=False),
        output_format=OutputFormat.PLAIN if form == "text" else OutputFormat.MARKDOWN,
        exclude_selectors=_LEFT_OUT,
        extract_metadata=False,
        compact_tables=True,
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
    )


def _options(form: WebPageFormat, address: str) -> "ConversionOptions":
    from dataclasses import replace

    return replace(_shared(form), base_url=address) if address else _shared(form)


def without_tags(text: str) -> str:
    """Remove HTML tags and decode entities in a line of text, such as a search engine's snippet."""
    return unescape(_TAG.sub("", text))
