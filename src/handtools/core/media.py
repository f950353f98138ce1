"""Previews of images, PDFs, notebooks, archives and tables as text or pictures; and the media port."""

from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.result import Image

MAX_RESULT_IMAGES = 4
"""Maximum number of images in one tool result."""
MediaKind = Literal["image", "pdf", "notebook", "archive", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """Options for the preview of a media file: the page range, and pages as text or as pictures."""

    first: int | None = None
    """First page to show, from 1; a negative number counts from the end."""
    last: int | None = None
    rendered: bool = False
    """Whether to show pages as pictures instead of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPreview:
    """Preview of a media file as text, pictures, or both."""

    kind: MediaKind
    title: str
    """One line about the file: format, size, number of pages."""
    text: str = ""
    images: tuple[Image, ...] = ()
    image_lines: tuple[int, ...] = ()
    """For each picture, the line of `text` that it belongs to; empty if all belong to the whole text."""
    left_out: str = ""
    """Sentence on what the preview leaves out and how to get it; empty if complete."""
    next_page: int | None = None
    """The next page after those shown; None at the end."""


class Media(Protocol):
    """Port that makes previews of non-text files from bytes that were already read."""

    def kind(self, path: str, head: bytes) -> MediaKind | None:
        """Detect the media kind of a file by its first bytes and name; None if it can't be previewed."""
        ...

    def describe(self, head: bytes) -> str:
        """Describe a binary file's format in a few words from its first bytes; empty if unknown."""
        ...

    async def preview(self, path: str, data: bytes, request: PreviewRequest) -> MediaPreview | None:
        """Make a preview of a file's bytes; None if its format is not supported."""
        ...
