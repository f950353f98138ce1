"""File media: the Media port over the readers that are installed here."""

import os
from importlib.util import find_spec

from anyio import to_thread

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import MediaKind, Preview, Wish
from handtools.host.media.kinds import described, kind_of

_NEEDS: dict[MediaKind, tuple[str, ...]] = {"image": ("PIL",), "pdf": ("pypdfium2", "PIL")}


_OTHERWISE = "Open it with a command, or get another copy."


class FileMedia:
    """Reads with what is installed; a missing library is named instead of guessed around.

    The reading is a worker's, with limits: a file can be made so that it takes all memory there is, or worse.
    """

    def __init__(self, root: str | os.PathLike[str] = "") -> None:
        """`root` is the workspace, from which no library is loaded."""
        self._root = root

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
        return await to_thread.run_sync(self._preview, kind, path, data, wish)

    def _preview(self, kind: MediaKind, path: str, data: bytes, wish: Wish) -> Preview | None:
        from handtools.host.media import previews
        from handtools.host.workers import Overtaxed, workers_for

        try:
            made = workers_for(self._root).call(previews.task(kind), previews.asked(kind, path, wish), data)
            return previews.shown(kind, made)
        except (Overtaxed, ValueError, LookupError, TypeError) as why:
            raise TooLarge(f"`{path}` can't be shown: {why}.", hint=_OTHERWISE) from why
