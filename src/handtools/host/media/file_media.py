"""File media: the Media port over the readers that are installed here."""

from importlib.util import find_spec

from anyio import to_thread

from handtools.core.errors import WrongKind
from handtools.core.media import MediaKind, Preview, Wish
from handtools.host.media.kinds import described, kind_of

_NEEDS: dict[MediaKind, tuple[str, ...]] = {"image": ("PIL",), "pdf": ("pypdfium2", "PIL")}


class FileMedia:
    """Reads with what is installed; a missing library is named instead of guessed around."""

    def kind(self, path: str, head: bytes) -> MediaKind | None:
        """What a file is, by its first bytes and its name."""
        return kind_of(path, head)

    def describe(self, head: bytes) -> str:
        """A binary file's kind in a few words; empty when nobody can tell."""
        return described(head)

    async def preview(self, path: str, data: bytes, wish: Wish) -> Preview | None:
        """The file as text or pictures; None when it is not of a kind that can be shown."""
        kind = kind_of(path, data)
        if kind is None:
            return None
        missing = [name for name in _NEEDS.get(kind, ()) if find_spec(name) is None]
        if missing:
            hint = "A person can install it: `pip install handtools-slim[media]`."
            raise WrongKind(f"`{path}` is of a kind ({kind}) whose reader is not installed.", hint=hint)
        return await to_thread.run_sync(_preview, kind, path, data, wish)


def _preview(kind: MediaKind, path: str, data: bytes, wish: Wish) -> Preview | None:
    from handtools.host.media import archives, documents, images, notebooks, tables

    match kind:
        case "image":
            return images.preview(path, data)
        case "pdf":
            return documents.preview(path, data, wish)
        case "notebook":
            return notebooks.preview(path, data)
        case "archive":
            return archives.preview(path, data)
        case "table":
            return tables.preview(path, data)
