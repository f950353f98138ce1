"""Previews of PDF pages, as text or as images."""

from typing import TYPE_CHECKING

from handtools.core.errors import InvalidInput, WrongKind
from handtools.core.media import MediaPreview, PreviewRequest
from handtools.core.result import Image
from handtools.host.media import UNREADABLE_HINT
from handtools.host.media.images import MAX_IMAGE_EDGE_PIXELS, encoded_image
from handtools.text.plurals import number_with_noun

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

MAX_PDF_TEXT_PAGES = 40
MAX_PDF_IMAGE_PAGES = 5
PDF_RENDER_SCALE = 2
"""The scale at which pages are rendered, in multiples of 72 dpi; very large pages are rendered smaller."""


def preview(path: str, data: bytes, request: PreviewRequest) -> MediaPreview:
    """Preview the requested pages of a PDF, or the first ones."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        reason = str(error).rstrip(".")
        message = f"`{path}` looks like a PDF but can't be read: {reason}."
        raise WrongKind(message, hint=UNREADABLE_HINT) from error
    try:
        return _pages_preview(document, request)
    finally:
        document.close()


def _pages_preview(document: "PdfDocument", request: PreviewRequest) -> MediaPreview:
    total = len(document)
    most = MAX_PDF_IMAGE_PAGES if request.rendered else MAX_PDF_TEXT_PAGES
    first, last = _page_range(request, total, most)
    numbers = range(first, last + 1)
    title = f"PDF, {number_with_noun(total, 'page')}"
    rest = f'pages {first}-{last} of {total} shown; use pages="{last + 1}-" for the next'
    left_out = rest if last < total else f"pages before {first}" if first > 1 else ""
    following = last + 1 if last < total else None
    if request.rendered:
        pictures = tuple(_page_image(document, n) for n in numbers)
        return MediaPreview(
            kind="pdf", title=title, images=pictures, left_out=left_out, next_page=following
        )
    pages = [f"--- page {n} ---\n{_page_text(document, n)}" for n in numbers]
    return MediaPreview(
        kind="pdf", title=title, text="\n".join(pages), left_out=left_out, next_page=following
    )


def _page_range(request: PreviewRequest, total: int, most: int) -> tuple[int, int]:
    first = request.first or 1
    first = max(total + first + 1, 1) if first < 0 else first
    if first > max(total, 1):
        message = f"The PDF has {number_with_noun(total, 'page')}; page {first} is past the end."
        raise InvalidInput(message, hint="Request earlier `pages`.")
    last = total if request.last is None else min(request.last, total)
    return first, min(last, first + most - 1)


def _page_image(document: "PdfDocument", number: int) -> Image:
    page = document[number - 1]
    scale = min(PDF_RENDER_SCALE, PDF_RENDER_SCALE * MAX_IMAGE_EDGE_PIXELS / max(*page.get_size(), 1))
    return encoded_image(page.render(scale=scale).to_pil())[0]


def _page_text(document: "PdfDocument", number: int) -> str:
    text = str(document[number - 1].get_textpage().get_text_range()).replace("\r\n", "\n").strip()
    return text or "(No text on this page; view=image shows it.)"
