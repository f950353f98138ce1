"""Convert a web page's bytes to text or Markdown; large pages in a worker process. ADR 92, 125."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread

from handtools.core.errors import TooLarge
from handtools.core.web import PageForm, RenderedPage, WebResponse
from handtools.host.confined_workers import TaskFailed, TaskResult, WorkerTask, workers_of_workspace
from handtools.text.encoding import DecodedText, is_binary, without_surrogates
from handtools.text.web.html_conversion import (
    UnconvertiblePage,
    WebPageFormat,
    convert_html,
    decode_page,
    html_title,
    looks_like_html,
)

MOST_CHARS_WITHOUT_WORKER = 32 << 10
"""Pages with more characters are converted in a worker: the converter blocks the interpreter.

It takes fifty times the page's memory, and some pages are made to keep it busy.
"""
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream"})


async def rendered_page(
    answer: WebResponse, form: PageForm, root: str | os.PathLike[str] = ""
) -> RenderedPage:
    """Convert a response to the wanted form; without text if its bytes are binary."""
    # A PDF may be all ASCII, and is still no text.
    if is_binary(answer.data) or answer.data.startswith(b"%PDF-"):
        return RenderedPage(text=None)
    source = await to_thread.run_sync(_decoded, answer)
    # A server that says nothing may still mean a page; one that says plain text means it.
    unsaid = answer.media_type in _UNKNOWN_TYPES and looks_like_html(source.body)
    if not unsaid and answer.media_type not in _HTML_TYPES:
        return RenderedPage(text=source.body, encoding=source.encoding)
    title = html_title(source.body)
    try:
        text = source.body if form == "html" else await _converted(source.body, form, str(answer.url), root)
    except UnconvertiblePage:
        return RenderedPage(text=None)
    return RenderedPage(text=text, title=title, encoding=source.encoding)


def _decoded(answer: WebResponse) -> DecodedText:
    source = decode_page(answer.data, answer.charset)
    return DecodedText(without_surrogates(source.body), source.encoding)


async def _converted(html: str, form: WebPageFormat, address: str, root: str | os.PathLike[str]) -> str:
    convert = (
        convert_html if len(html) <= MOST_CHARS_WITHOUT_WORKER else partial(_converted_in_worker, root)
    )
    return await to_thread.run_sync(convert, html, form, address, abandon_on_cancel=True)


def _converted_in_worker(root: str | os.PathLike[str], html: str, form: WebPageFormat, address: str) -> str:
    hint = "Fetch it with format=html, or another page."
    try:
        made = workers_of_workspace(root).call(
            _CONVERT_TASK, {"form": form, "address": address}, html.encode()
        )
        return made.blobs[0].decode()
    except (TaskFailed, LookupError, ValueError) as why:
        raise TooLarge(f"The page can't be converted: {why}.", hint=hint) from why


def convert_in_worker(arguments: Mapping[str, Any], data: bytes) -> TaskResult:
    """In the worker process: convert an HTML page to the wanted form."""
    form: WebPageFormat = "text" if arguments["form"] == "text" else "markdown"
    return TaskResult({}, (convert_html(data.decode(), form, arguments["address"]).encode(),))


_CONVERT_TASK = WorkerTask(module=__name__, function=convert_in_worker.__name__)
