"""The Media port: previews of images, PDFs, tables, notebooks and archives with installed libraries."""

import os
from importlib.util import find_spec

from anyio import to_thread

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import MediaKind, MediaPreview, PreviewRequest
from handtools.text.media_type_sniffing import media_type_by_signature

_KINDS: dict[str, MediaKind] = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/bmp": "image",
    "image/tiff": "image",
    "image/x-icon": "image",
    "image/webp": "image",
    "application/pdf": "pdf",
    "application/zip": "archive",
    "application/gzip": "archive",
    "application/x-bzip2": "archive",
    "application/x-xz": "archive",
    "application/vnd.sqlite3": "table",
    "application/vnd.apache.parquet": "table",
}
"""The kind of reader for each media type."""
_SUFFIXES: dict[str, MediaKind] = {"ipynb": "notebook", "csv": "table", "tsv": "table", "tar": "archive"}
_REQUIRED_LIBRARIES: dict[MediaKind, tuple[str, ...]] = {"image": ("PIL",), "pdf": ("pypdfium2", "PIL")}


_HINT = "Open it with a command, or get another copy."


class LocalMedia:
    """Makes previews of files with the installed libraries; raises an error if a library is missing.

    Files are read in a worker process with limits, because a crafted file could use up all memory or
    exploit a bug in a library.
    """

    def __init__(self, root: str | os.PathLike[str] = "") -> None:
        """`root` is the workspace; no library is imported from it."""
        self._root = root

    def kind(self, path: str, head: bytes) -> MediaKind | None:
        return _KINDS.get(media_type_by_signature(head)) or _SUFFIXES.get(path.rpartition(".")[2].lower())

    def describe(self, head: bytes) -> str:
        """Return a binary file's media type; empty if unknown."""
        return media_type_by_signature(head)

    async def preview(self, path: str, data: bytes, request: PreviewRequest) -> MediaPreview | None:
        """Return the file as text or images; None if its kind has no preview."""
        kind = self.kind(path, data)
        if kind is None:
            return None
        missing = [name for name in _REQUIRED_LIBRARIES.get(kind, ()) if find_spec(name) is None]
        if missing:
            hint = "The user can install it: `pip install handtools-slim[media]`."
            raise WrongKind(f"No reader is installed for `{path}` (kind: {kind}).", hint=hint)
        return await to_thread.run_sync(self._preview_in_worker, kind, path, data, request)

    def _preview_in_worker(
        self, kind: MediaKind, path: str, data: bytes, request: PreviewRequest
    ) -> MediaPreview | None:
        from handtools.host.confined_workers import TaskFailed, workers_of_workspace
        from handtools.host.media import preview_worker

        try:
            made = workers_of_workspace(self._root).call(
                preview_worker.preview_task(kind),
                preview_worker.preview_task_arguments(kind, path, request),
                data,
            )
            return preview_worker.media_preview_from_worker_result(kind, made)
        except (TaskFailed, ValueError, LookupError, TypeError) as why:
            raise TooLarge(f"Can't show `{path}`: {why}.", hint=_HINT) from why
