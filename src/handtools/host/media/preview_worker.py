"""Make previews of files in a worker process: the task, its arguments and its result."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from handtools.core.media import MediaKind, MediaPreview, PreviewRequest
from handtools.core.result import Image
from handtools.host.confined_workers import TaskResult, WorkerTask

_PICTURE_LIBRARIES = (
    "PIL.Image", "PIL.ImageOps", "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.GifImagePlugin",
    "PIL.WebPImagePlugin", "PIL.BmpImagePlugin", "PIL.TiffImagePlugin", "PIL.IcoImagePlugin",
)  # fmt: skip
_READERS: dict[MediaKind, str] = {
    "image": "handtools.host.media.images",
    "pdf": "handtools.host.media.pdf",
    "notebook": "handtools.host.media.notebooks",
    "archive": "handtools.host.media.archive_listings",
    "table": "handtools.host.media.table_previews",
}
_LIBRARIES: dict[MediaKind, tuple[str, ...]] = {"image": _PICTURE_LIBRARIES, "pdf": ("pypdfium2",)}
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def preview_task(kind: MediaKind) -> WorkerTask:
    """Return the worker task that makes a preview of a file of this kind."""
    libraries = (_READERS[kind], *_LIBRARIES.get(kind, ()))
    return WorkerTask(module=__name__, function=make_preview.__name__, libraries=libraries)


def preview_task_arguments(kind: MediaKind, path: str, request: PreviewRequest) -> dict[str, Any]:
    """Return the JSON arguments of a preview task."""
    return {
        "kind": kind,
        "path": path,
        "first": request.first,
        "last": request.last,
        "rendered": request.rendered,
    }


def make_preview(arguments: Mapping[str, Any], data: bytes) -> TaskResult:
    """Make a preview in the worker process and return it as a `TaskResult`."""
    request = PreviewRequest(
        first=arguments["first"], last=arguments["last"], rendered=arguments["rendered"]
    )
    preview = _preview_of_kind(arguments["kind"], arguments["path"], data, request)
    if preview is None:
        return TaskResult({"kind": ""})
    value = {
        "kind": preview.kind,
        "title": preview.title,
        "text": preview.text,
        "pictures": [image.media_type for image in preview.images],
        "image_lines": preview.image_lines,
        "left_out": preview.left_out,
        "next_page": preview.next_page,
    }
    return TaskResult(value, tuple(image.data for image in preview.images))


def media_preview_from_worker_result(kind: MediaKind, result: TaskResult) -> MediaPreview | None:
    """Return the `MediaPreview` in a worker's result; a malformed one raises `ValueError` or `LookupError`."""
    value = result.value
    if not value["kind"]:
        return None
    following = value["next_page"]
    return MediaPreview(
        kind=kind,
        title=str(value["title"]),
        text=str(value["text"]),
        images=tuple(
            Image(data, _PICTURES[_PICTURES.index(media_type)])
            for data, media_type in zip(result.blobs, value["pictures"], strict=True)
        ),
        image_lines=tuple(map(int, value["image_lines"])),
        left_out=str(value["left_out"]),
        next_page=None if following is None else int(following),
    )


def _preview_of_kind(
    kind: MediaKind, path: str, data: bytes, request: PreviewRequest
) -> MediaPreview | None:
    if kind == "pdf":
        from handtools.host.media import pdf

        return pdf.preview(path, data, request)
    # Import only the reader of this kind, so that the first preview does not wait for the others.
    preview: Callable[[str, bytes], MediaPreview | None] = importlib.import_module(_READERS[kind]).preview
    return preview(path, data)
