"""Media: images, PDFs, notebooks, archives and tables as previews that a model can read, and the port for them.

ADR 21.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.result import Image

MAX_IMAGES = 4
"""Pictures that come with one answer."""
MediaKind = Literal["image", "pdf", "notebook", "archive", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """What is wanted of a file that could be shown in several ways."""

    first: int | None = None
    """The first page, from 1; the last ones when it is negative."""
    last: int | None = None
    rendered: bool = False
    """Pages as pictures instead of as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A file as text, as pictures, or both."""

    kind: MediaKind
    title: str
    """One line on what the file is: format, size, number of pages."""
    text: str = ""
    images: tuple[Image, ...] = ()
    image_lines: tuple[int, ...] = ()
    """The line of `text` that each picture belongs to; none when they belong to all of it."""
    left_out: str = ""
    """What of the file is not here, and how to get it; empty when all of it is."""
    next_page: int | None = None
    """The first page after those that are here; None when there is none."""


class Media(Protocol):
    """Readers of files that are not plain text, over bytes that the caller holds already."""

    def kind(self, path: str, head: bytes) -> MediaKind | None:
        """What a file is, by its first bytes and its name; None when it is nothing that can be shown."""
        ...

    def describe(self, head: bytes) -> str:
        """A binary file's kind in a few words; empty when nobody can tell."""
        ...

    async def preview(self, path: str, data: bytes, wish: PreviewRequest) -> Preview | None:
        """The file as text or pictures; None when nothing here can show it."""
        ...
