"""Workspace files for LSP: convert paths to and from file URIs, read bytes, and get modification stamps."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handtools.core.errors import SymlinkInPath
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.text.encoding import decode

MAX_DOCUMENT_BYTES = 1 << 20
"""Larger files are not sent to a language server: they are data or generated."""


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """Converts between workspace paths and file URIs, and reads the files from disk."""

    workspace: str

    def uri(self, path: str) -> str:
        return _file_uri(self.workspace, path)

    def path(self, uri: str) -> str | None:
        """The workspace path of a file URI; None if it is outside the workspace."""
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return None
        name = os.path.normpath(unquote(parts.path))
        inside = name.startswith(f"{self.workspace.rstrip('/')}/")
        return os.path.relpath(name, self.workspace) if inside else None

    def read(self, path: str) -> bytes | None:
        """A file's bytes on disk; None unless it is a small regular file without symlinks in its path.

        The path comes from a server, and policy rules match paths, so they can't check a symlink's target.
        """
        try:
            status, fd = _workspace_root(self.workspace).stat_and_open_path(path)
        except (OSError, SymlinkInPath):
            return None
        if fd is None:
            return None
        with open(fd, "rb", 0) as file:
            return file.read() if status.st_size <= MAX_DOCUMENT_BYTES else None

    def stamp(self, path: str) -> tuple[int, int] | None:
        """A file's modification time and size, to detect later writes; None if it is missing."""
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
    """Decode bytes as text; None if the data is binary or too large."""
    if data is None or len(data) > MAX_DOCUMENT_BYTES or b"\0" in data[:8192]:
        return None
    return decode(data).body
