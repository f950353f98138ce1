"""Decode web pages and convert them to text or Markdown; large pages in a worker process."""

import codecs
import os
import re
from collections.abc import Mapping
from functools import cache, partial
from html import unescape
from typing import TYPE_CHECKING, Any, Literal

from anyio import to_thread

from handtools.core.errors import TooLarge
from handtools.core.web import PageForm, RenderedPage, WebResponse
from handtools.host.confined_workers import TaskFailed, TaskResult, WorkerTask, workers_of_workspace
from handtools.text.encoding import DecodedText, decode, is_binary, is_utf8, without_surrogates

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

MAX_CHARS_WITHOUT_WORKER = 32 << 10
"""Larger pages are converted in a worker process, because the converter does not release the GIL.

It needs fifty times the page's memory, and crafted pages can keep it busy.
"""
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream"})
WebPageFormat = Literal["markdown", "text"]


class UnconvertiblePage(ValueError):
    """Raised for content that the converter rejects as not HTML, such as a zip labelled as HTML."""


async def rendered_page(
    response: WebResponse, form: PageForm, root: str | os.PathLike[str] = ""
) -> RenderedPage:
    """Convert a response to the requested form; the text is None if the response is binary."""
    # A PDF may be all ASCII, but is still not text.
    if is_binary(response.data) or response.data.startswith(b"%PDF-"):
        return RenderedPage(text=None)
    source = await to_thread.run_sync(_decode_response, response)
    # Without a media type, check whether it is HTML; an explicit text/plain is respected.
    unsaid = response.media_type in _UNKNOWN_TYPES and looks_like_html(source.body)
    if not unsaid and response.media_type not in _HTML_TYPES:
        return RenderedPage(text=source.body, encoding=source.encoding)
    title = html_title(source.body)
    try:
        text = (
            source.body
            if form == "html"
            else await _convert_here_or_in_worker(source.body, form, str(response.url), root)
        )
    except UnconvertiblePage:
        return RenderedPage(text=None)
    return RenderedPage(text=text, title=title, encoding=source.encoding)


def _decode_response(response: WebResponse) -> DecodedText:
    source = decode_page(response.data, response.charset)
    return DecodedText(without_surrogates(source.body), source.encoding)


async def _convert_here_or_in_worker(
    html: str, form: WebPageFormat, address: str, root: str | os.PathLike[str]
) -> str:
    convert = (
        convert_html if len(html) <= MAX_CHARS_WITHOUT_WORKER else partial(_convert_in_worker_process, root)
    )
    return await to_thread.run_sync(convert, html, form, address, abandon_on_cancel=True)


def _convert_in_worker_process(
    root: str | os.PathLike[str], html: str, form: WebPageFormat, address: str
) -> str:
    hint = "Fetch it with format=html, or another page."
    try:
        made = workers_of_workspace(root).call(
            _CONVERT_TASK, {"form": form, "address": address}, html.encode()
        )
        return made.blobs[0].decode()
    except (TaskFailed, LookupError, ValueError) as why:
        raise TooLarge(f"Can't convert the page: {why}.", hint=hint) from why


def convert_in_worker(arguments: Mapping[str, Any], data: bytes) -> TaskResult:
    """Convert an HTML page to the requested form, in the worker process."""
    form: WebPageFormat = "text" if arguments["form"] == "text" else "markdown"
    return TaskResult({}, (convert_html(data.decode(), form, arguments["address"]).encode(),))


_CONVERT_TASK = WorkerTask(module=__name__, function=convert_in_worker.__name__)


# Browsers interpret these charset labels as a different encoding, and web pages rely on that.
_MEANT_CHARSETS = {
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
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CODECS_WITHOUT_CHARSET = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7", "undefined"}
)


def decode_page(data: bytes, label: str) -> DecodedText:
    """Decode a web page by the first that works: byte order mark, UTF-8, the server's charset, the page's own.

    Non-ASCII bytes that are valid UTF-8 are decoded as UTF-8: servers with a wrong label are far more
    common than text in another encoding that happens to be valid UTF-8.
    """
    if data.startswith(_BYTE_ORDER_MARKS) or not label:
        return decode(data)
    encoding = _encoding_of_label(label)
    if encoding is None:
        return decode(data)
    if encoding.startswith("utf-") or data.isascii() or not is_utf8(data):
        try:
            return DecodedText(data.decode(encoding), encoding, confidence=0.95)
        except UnicodeDecodeError:
            pass
    return decode(data)


def _encoding_of_label(label: str) -> str | None:
    try:
        found = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    name = found.name
    # Python's bytes-to-bytes codecs are not charsets.
    is_text = getattr(found, "_is_text_encoding", True)
    return None if name in _CODECS_WITHOUT_CHARSET or not is_text else _MEANT_CHARSETS.get(name, name)


_LEFT_OUT_ELEMENTS = [
    "nav", "[role=navigation]", "[role=search]", "template", "dialog", "button",
    ".headerlink", ".hash-link", ".doc-anchor", "a.anchor",
]  # fmt: skip
"""CSS selectors of elements left out of pages: navigation, controls, and links from headings to themselves.

Headers and footers stay: some sites put the page's title there.
"""
_LINE_NUMBER_CLASSES = ("linenos", "gutter", "lntd")
_TABLE_CELL = r"(?:[^<]|<(?!/?(?:table|td|tr)\b))*+"
# Possessive quantifiers prevent backtracking: a page could be written to make the regex slow.
_CODE_BESIDE_LINE_NUMBERS = re.compile(
    r"<table\b[^>]*+>\s*+(?:<tbody\b[^>]*+>\s*+)?<tr\b[^>]*+>\s*+"
    rf"<td\b(?=[^>]*?\b(?:linenos|gutter|lntd)\b)[^>]*+>{_TABLE_CELL}</td>\s*+<td\b[^>]*+>({_TABLE_CELL})</td>\s*+"
    r"</tr>\s*+(?:</tbody>\s*+)?</table>"
)
_HTML_TITLE = re.compile(r"<title\b[^<>]*+>((?:[^<]|<(?!/?title\b))*+)</title", re.IGNORECASE)
_HTML_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_HEAD_CHARS = 64 << 10
_HTML_START = re.compile(
    r"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


def convert_html(html: str, form: WebPageFormat, address: str = "") -> str:
    """Convert HTML to Markdown or plain text; relative links are resolved against `address`.

    Raises `UnconvertiblePage` if it is not HTML.
    """
    from html_to_markdown import ConversionError, convert

    if any(name in html for name in _LINE_NUMBER_CLASSES):
        # Code in a table next to its line numbers would lose its line breaks in the conversion.
        html = _CODE_BESIDE_LINE_NUMBERS.sub(r"<div>\1</div>", html)
    try:
        # NULs mean nothing in a page, and many of them make the converter reject it as binary.
        return convert(html.replace("\0", ""), _conversion_options(form, address)).content or ""
    except ConversionError as problem:
        raise UnconvertiblePage(str(problem)) from problem


def html_title(html: str) -> str:
    """Return the content of the `<title>` element of a page; empty if there is none."""
    found = _HTML_TITLE.search(html, 0, _HEAD_CHARS)
    return " ".join(unescape(found[1]).split()) if found else ""


def looks_like_html(text: str) -> bool:
    """Whether text without a media type begins like an HTML page."""
    return _HTML_START.match(text[:4096]) is not None


@cache
def _shared_options(form: WebPageFormat) -> "ConversionOptions":
    from html_to_markdown import ConversionOptions, InlineDataMedia, OutputFormat, PreprocessingOptions

    return ConversionOptions(
        # The converter's navigation filter would remove an article's header, with its title.
        preprocessing=PreprocessingOptions(enabled=False),
        output_format=OutputFormat.PLAIN if form == "text" else OutputFormat.MARKDOWN,
        exclude_selectors=_LEFT_OUT_ELEMENTS,
        extract_metadata=False,
        compact_tables=True,
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
    )


def _conversion_options(form: WebPageFormat, address: str) -> "ConversionOptions":
    from dataclasses import replace

    return replace(_shared_options(form), base_url=address) if address else _shared_options(form)


def without_tags(text: str) -> str:
    """Remove HTML tags and decode entities in a line of text, such as a search engine's snippet."""
    return unescape(_HTML_TAG.sub("", text))
