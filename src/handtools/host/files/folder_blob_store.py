"""Blob store: named bytes as files in one folder outside the workspace, with clean-up by age and size."""

import contextlib
import os
import re
import secrets
import time
from pathlib import Path

from handtools.core.errors import UsageError
from handtools.host.files.os_errors import os_error_as_tool_error

_BLOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_CREATE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


class FolderBlobStore:
    """Keeps bytes as one file per name, readable by the owner only.

    A file is complete and synced when it appears.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def put(self, data: bytes, *, name: str) -> None:
        """Store bytes under a name; does nothing if the name exists already."""
        path = self._path(name)
        temporary = self._folder / f".{secrets.token_hex(8)}"
        try:
            if path.exists():
                self._sync()  # a process may have been killed between its rename and its sync
                return
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            try:
                _write_durably(temporary, data)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._sync()
        except OSError as error:
            raise os_error_as_tool_error(error, name) from error

    def get(self, name: str) -> bytes:
        """Return the bytes stored under a name; raises `KeyError` if there are none."""
        try:
            return self._path_for_reading(name).read_bytes()
        except FileNotFoundError:
            raise KeyError(name) from None
        except OSError as error:
            raise os_error_as_tool_error(error, name) from error

    def part(self, name: str, start: int, size: int | None) -> bytes:
        """Return `size` bytes stored under a name, from `start`, without reading the rest into memory."""
        try:
            with open(self._path_for_reading(name), "rb") as file:
                file.seek(start)
                return file.read(-1 if size is None else size)
        except FileNotFoundError:
            raise KeyError(name) from None
        except OSError as error:
            raise os_error_as_tool_error(error, name) from error

    def size(self, name: str) -> int:
        """Return the number of bytes stored under a name; raises `KeyError` if there are none."""
        try:
            return self._path_for_reading(name).stat().st_size
        except FileNotFoundError:
            raise KeyError(name) from None

    def blob_path(self, name: str) -> Path:
        """Return the path of a name's file, for a caller that writes it while others read it."""
        return self._path(name)

    def tidy(self, *, max_bytes: int, max_age: float) -> int:
        """Delete blobs older than `max_age` seconds, then the oldest until the rest fits into `max_bytes`.

        Returns how many were deleted.
        """
        kept = []
        for name in self.names():
            with contextlib.suppress(OSError):
                facts = self._path(name).stat()
                kept.append((facts.st_mtime, facts.st_blocks * 512, name))
        horizon, total, gone = time.time() - max_age, sum(size for _, size, _ in kept), 0
        for modified, size, name in sorted(kept):
            if modified >= horizon and total <= max_bytes:
                break
            self.drop(name)
            total -= size
            gone += 1
        return gone

    def drop(self, name: str) -> None:
        """Delete the bytes stored under a name; no error if there are none."""
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            raise os_error_as_tool_error(error, name) from error

    def names(self) -> list[str]:
        """List all names under which bytes are stored."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(self._folder) if _BLOB_NAME.fullmatch(name))
        return []

    def _path_for_reading(self, name: str) -> Path:
        if not _BLOB_NAME.fullmatch(name):  # it may come from a model
            raise KeyError(name)
        return self._folder / name

    def _path(self, name: str) -> Path:
        if not _BLOB_NAME.fullmatch(name):
            raise UsageError(f"{name[:80]!r} is not a valid blob name.")
        return self._folder / name

    def _sync(self) -> None:
        if os.name == "nt":  # Windows can't open folders
            return
        fd = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write_durably(path: Path, data: bytes) -> None:
    with open(os.open(path, _CREATE_FLAGS, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
