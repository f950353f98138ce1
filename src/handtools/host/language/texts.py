"""Texts: files of a workspace as language servers name and read them."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handtools.core.errors import Redirected
from handtools.host.resolving import Root
from handtools.text.encoding import decode

LARGEST_BYTES = 1 << 20
"""Larger files are not handed to a server: they are data, or made by a machine."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Paths relative to a workspace, and back."""

    workspace: str

    def uri(self, path: str) -> str:
        """The address of a file."""
        return _uri(self.workspace, path)

    def path(self, uri: str) -> str | None:
        """The path of an address; None when it is outside."""
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return None
        name = os.path.normpath(unquote(parts.path))
        inside = name.startswith(f"{self.workspace.rstrip('/')}/")
        return os.path.relpath(name, self.workspace) if inside else None

    def read(self, path: str) -> bytes | None:
        """The bytes on disk; None when there is no regular file, or a large one, or a link on the way.

        A server says which files it means, and rules judge the paths it names: what is behind a link they do not.
        """
        try:
            status, fd = _root(self.workspace).found(path)
        except (OSError, Redirected):
            return None
        if fd is None:
            return None
        with open(fd, "rb", 0) as file:
            return file.read() if status.st_size <= LARGEST_BYTES else None

    def stamp(self, path: str) -> tuple[int, int] | None:
        """Tells whether a file was written since."""
        try:
            status = os.stat(os.path.join(self.workspace, path))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _root(workspace: str) -> Root:
    return Root(Path(workspace), kernel=True)


@lru_cache(maxsize=1024)
def _uri(workspace: str, path: str) -> str:
    return Path(workspace, path).as_uri()


def text_of(data: bytes | None) -> str | None:
    """The text of some bytes; None for what is no text, or too large."""
    if data is None or len(data) > LARGEST_BYTES or b"\0" in data[:8192]:
        return None
    return decode(data).body
