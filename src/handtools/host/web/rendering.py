"""Rendering: the bytes of a page as text."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread

from handtools.core.errors import TooLarge
from handtools.core.web import Answer, Form, Rendered
from handtools.host.workers import Made, Overtaxed, Task, workers_for
from handtools.text.charsets import read_page
from handtools.text.encoding import Source, displayed, is_binary
from handtools.text.markup import Flat, converted, looks_like_html, title_of

APART_CHARS = 256 << 10
"""A longer page is converted by a worker: the converter holds on to the interpreter while it works,
takes fifty times the page's memory, and some pages are made to keep it busy."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_UNSAID = frozenset({"", "application/octet-stream"})


async def rendered(answer: Answer, form: Form, root: str | os.PathLike[str] = "") -> Rendered:
    """The text of an answer in a form; none where its bytes are no text."""
    # A PDF may be all ASCII, and is still no text.
    if is_binary(answer.data) or answer.data.startswith(b"%PDF-"):
        return Rendered(text=None)
    source = await to_thread.run_sync(_read, answer)
    # A server that says nothing may still mean a page; one that says plain text means it.
    unsaid = answer.media_type in _UNSAID and looks_like_html(source.body)
    if not unsaid and answer.media_type not in _PAGES:
        return Rendered(text=source.body, encoding=source.encoding)
    title = title_of(source.body)
    text = source.body if form == "html" else await _converted(source.body, form, str(answer.url), root)
    return Rendered(text=text, title=title, encoding=source.encoding)


def _read(answer: Answer) -> Source:
    source = read_page(answer.data, answer.charset)
    return Source(displayed(source.body), source.encoding)


async def _converted(html: str, form: Flat, address: str, root: str | os.PathLike[str]) -> str:
    convert = converted if len(html) <= APART_CHARS else partial(_converted_apart, root)
    return await to_thread.run_sync(convert, html, form, address, abandon_on_cancel=True)


def _converted_apart(root: str | os.PathLike[str], html: str, form: Flat, address: str) -> str:
    hint = "Fetch it with format=html, or another page."
    try:
        made = workers_for(root).call(_CONVERT, {"form": form, "address": address}, html.encode())
        return made.blobs[0].decode()
    except (Overtaxed, LookupError, ValueError) as why:
        raise TooLarge(f"The page can't be converted: {why}.", hint=hint) from why


def convert(arguments: Mapping[str, Any], data: bytes) -> Made:
    """In a worker: the task of converting a page."""
    form: Flat = "text" if arguments["form"] == "text" else "markdown"
    return Made({}, (converted(data.decode(), form, arguments["address"]).encode(),))


_CONVERT = Task(module=__name__, function=convert.__name__)
