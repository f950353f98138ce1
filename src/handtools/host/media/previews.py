"""Previews: the task of a worker that reads one file of a kind that we know."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from handtools.core.content import Image
from handtools.core.media import MediaKind, Preview, Wish
from handtools.host.workers import Made, Task

_PICTURE_LIBRARIES = (
    "PIL.Image", "PIL.ImageOps", "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.GifImagePlugin",
    "PIL.WebPImagePlugin", "PIL.BmpImagePlugin", "PIL.TiffImagePlugin", "PIL.IcoImagePlugin",
)  # fmt: skip
_READERS: dict[MediaKind, str] = {
    "image": "handtools.host.media.images",
    "pdf": "handtools.host.media.documents",
    "notebook": "handtools.host.media.notebooks",
    "archive": "handtools.host.media.archives",
    "table": "handtools.host.media.tables",
}
_LIBRARIES: dict[MediaKind, tuple[str, ...]] = {"image": _PICTURE_LIBRARIES, "pdf": ("pypdfium2",)}
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def task(kind: MediaKind) -> Task:
    """How a worker reads such a file."""
    libraries = (_READERS[kind], *_LIBRARIES.get(kind, ()))
    return Task(module=__name__, function=show.__name__, libraries=libraries)


def asked(kind: MediaKind, path: str, wish: Wish) -> dict[str, Any]:
    """What the task is told."""
    return {"kind": kind, "path": path, "first": wish.first, "last": wish.last, "rendered": wish.rendered}


def show(arguments: Mapping[str, Any], data: bytes) -> Made:
    """In the worker: read the file."""
    wish = Wish(first=arguments["first"], last=arguments["last"], rendered=arguments["rendered"])
    preview = _preview(arguments["kind"], arguments["path"], data, wish)
    if preview is None:
        return Made({"kind": ""})
    value = {
        "kind": preview.kind,
        "title": preview.title,
        "text": preview.text,
        "pictures": [image.media_type for image in preview.images],
        "image_lines": preview.image_lines,
        "left_out": preview.left_out,
        "next_page": preview.next_page,
    }
    return Made(value, tuple(image.data for image in preview.images))


def shown(kind: MediaKind, made: Made) -> Preview | None:
    """What a worker gave back; raises `ValueError` or `LookupError` when it is not what it should be."""
    value = made.value
    if not value["kind"]:
        return None
    following = value["next_page"]
    return Preview(
        kind=kind,
        title=str(value["title"]),
        text=str(value["text"]),
        images=tuple(
            Image(data, _PICTURES[_PICTURES.index(media_type)])
            for data, media_type in zip(made.blobs, value["pictures"], strict=True)
        ),
        image_lines=tuple(map(int, value["image_lines"])),
        left_out=str(value["left_out"]),
        next_page=None if following is None else int(following),
    )


def _preview(kind: MediaKind, path: str, data: bytes, wish: Wish) -> Preview | None:
    if kind == "pdf":
        from handtools.host.media import documents

        return documents.preview(path, data, wish)
    # One at a time: the first file of a kind waits for what reads it, and for nothing else.
    preview: Callable[[str, bytes], Preview | None] = importlib.import_module(_READERS[kind]).preview
    return preview(path, data)
