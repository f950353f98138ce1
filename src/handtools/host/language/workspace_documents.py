"""Files of a workspace as LSP documents: file URIs, the text on disk, and whether it changed since."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handtools.core.errors import Redirected
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.text.encoding import decode

MOST_DOCUMENT_BYTES = 1 << 20
"""Larger files are not handed to a server: they are data, or made by a machine."""


@dataclass(frozen=True, slots=True)
class WorkspaceDocuments:
    """Paths relative to a workspace, and back."""

    workspace: str

    def uri(self, path: str) -> str:
        """The address of a file."""
        return _file_uri(self.workspace, path)

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
            status, fd = _workspace_root(self.workspace).found(path)
        except (OSError, Redirected):
            return None
        if fd is None:
            return None
        with open(fd, "rb", 0) as file:
            return file.read() if status.st_size <= MOST_DOCUMENT_BYTES else None

    def stamp(self, path: str) -> tuple[int, int] | None:
        """Tells whether a file was written since."""
        try:
            status = os.stat(os.path.join(self.workspace, path))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _workspace_root(workspace: str) -> WorkspaceRoot:
    return WorkspaceRoot(Path(workspace), kernel=True)


@lru_cache(maxsize=1024)
def _file_uri(workspace: str, path: str) -> str:
    return Path(workspace, path).as_uri()


def document_text(data: bytes | None) -> str | None:
    """The text of some bytes; None for what is no text, or too large."""
    if data is None or len(data) > MOST_DOCUMENT_BYTES or b"\0" in data[:8192]:
        return None
    return decode(data).body
