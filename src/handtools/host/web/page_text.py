"""Convert a web page's bytes to text or Markdown; large pages in a worker process."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread

from handtools.core.errors import TooLarge
from handtools.core.web import PageForm, RenderedPage, WebResponse
from handtools.host.confined_workers import TaskFailed, TaskResult, WorkerTask, workers_of_workspace
from handtools.host.web.html_conversion import (
    UnconvertiblePage,
    WebPageFormat,
    convert_html,
    decode_page,
    html_title,
    looks_like_html,
)
from handtools.text.encoding import DecodedText, is_binary, without_surrogates

MAX_CHARS_WITHOUT_WORKER = 32 << 10
"""Larger pages are converted in a worker, because the converter holds the GIL.

It needs fifty times the page's memory, and crafted pages can keep it busy.
"""
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream"})


async def rendered_page(
    response: WebResponse, form: PageForm, root: str | os.PathLike[str] = ""
) -> RenderedPage:
    """Convert a response to the requested form; without text if its bytes are binary."""
    # A PDF may be all ASCII, but is still not text.
    if is_binary(response.data) or response.data.startswith(b"%PDF-"):
        return RenderedPage(text=None)
    source = await to_thread.run_sync(_decoded, response)
    # Without a media type, check whether it is HTML; an explicit text/plain is respected.
    unsaid = response.media_type in _UNKNOWN_TYPES and looks_like_html(source.body)
    if not unsaid and response.media_type not in _HTML_TYPES:
        return RenderedPage(text=source.body, encoding=source.encoding)
    title = html_title(source.body)
    try:
        text = (
            source.body if form == "html" else await _converted(source.body, form, str(response.url), root)
        )
    except UnconvertiblePage:
        return RenderedPage(text=None)
    return RenderedPage(text=text, title=title, encoding=source.encoding)


def _decoded(response: WebResponse) -> DecodedText:
    source = decode_page(response.data, response.charset)
    return DecodedText(without_surrogates(source.body), source.encoding)


async def _converted(html: str, form: WebPageFormat, address: str, root: str | os.PathLike[str]) -> str:
    convert = convert_html if len(html) <= MAX_CHARS_WITHOUT_WORKER else partial(_converted_in_worker, root)
    return await to_thread.run_sync(convert, html, form, address, abandon_on_cancel=True)


def _converted_in_worker(root: str | os.PathLike[str], html: str, form: WebPageFormat, address: str) -> str:
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
