"""Rendering: the bytes of a page as text."""

import json
import subprocess
import sys

from anyio import to_thread

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.web import Answer, Form, Rendered
from handtools.text.charsets import read_page
from handtools.text.encoding import Source, displayed, is_binary
from handtools.text.markup import Flat, converted, looks_like_html, title_of

APART_CHARS = 256 << 10
"""A longer page is converted by a process of its own: the converter holds on to the interpreter while it works,
takes fifty times the page's memory, and some pages are made to keep it busy."""
APART_SECONDS = 20.0
APART_BYTES = 2 << 30
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_UNSAID = frozenset({"", "application/octet-stream"})


async def rendered(answer: Answer, form: Form) -> Rendered:
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
    text = source.body if form == "html" else await _converted(source.body, form, str(answer.url))
    return Rendered(text=text, title=title, encoding=source.encoding)


def _read(answer: Answer) -> Source:
    source = read_page(answer.data, answer.charset)
    return Source(displayed(source.body), source.encoding)


async def _converted(html: str, form: Flat, address: str) -> str:
    convert = converted if len(html) <= APART_CHARS else _converted_apart
    return await to_thread.run_sync(convert, html, form, address, abandon_on_cancel=True)


def _converted_apart(html: str, form: Flat, address: str) -> str:
    line = [sys.executable, "-I", "-c", _PROGRAM.format(__name__), json.dumps(sys.path), form, address]
    try:
        done = subprocess.run(
            line, input=html.encode(), capture_output=True, timeout=APART_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        hint = "Fetch it with format=html, or another page."
        raise TooLarge(f"The page takes longer than {APART_SECONDS:g} s to convert.", hint=hint) from None
    except subprocess.CalledProcessError as failure:
        raise WrongKind("The page can't be converted.", hint="Fetch it with format=html.") from failure
    return done.stdout.decode()


def main() -> None:
    """Convert the page that comes in; for a process of its own."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (APART_BYTES, APART_BYTES))
    form: Flat = "text" if sys.argv[2] == "text" else "markdown"
    sys.stdout.buffer.write(converted(sys.stdin.buffer.read().decode(), form, sys.argv[3]).encode())
