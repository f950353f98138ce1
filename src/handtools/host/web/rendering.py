"""Rendering: the bytes of a page as text."""

from handtools.core.web import Answer, Form, Rendered
from handtools.text.charsets import read_page
from handtools.text.encoding import displayed, is_binary
from handtools.text.markup import converted, looks_like_html, title_of

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_UNSAID = frozenset({"", "application/octet-stream"})


def rendered(answer: Answer, form: Form) -> Rendered:
    """The text of an answer in a form; none where its bytes are no text."""
    # A PDF may be all ASCII, and is still no text.
    if is_binary(answer.data) or answer.data.startswith(b"%PDF-"):
        return Rendered(text=None)
    source = read_page(answer.data, answer.charset)
    body = displayed(source.body)
    # A server that says nothing may still mean a page; one that says plain text means it.
    unsaid = answer.media_type in _UNSAID and looks_like_html(body)
    if not unsaid and answer.media_type not in _PAGES:
        return Rendered(text=body, encoding=source.encoding)
    title = title_of(body)
    text = body if form == "html" else converted(body, form, str(answer.url))
    return Rendered(text=text, title=title, encoding=source.encoding)
