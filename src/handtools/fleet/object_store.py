"""Store objects by key in a folder or in any store that fsspec supports, such as `s3://bucket/fleet`."""

import contextlib
import errno
import importlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from handtools.core.errors import HostError, WrongKind
from handtools.host.files.folder_handle import FolderHandle, open_inner_folder

_FOLDER_SCHEME = "file://"


class ObjectStore(Protocol):
    """A store of objects. Failed operations raise one of its `errors`."""

    errors: tuple[type[Exception], ...]

    def create_object(self, key: str, data: bytes) -> None:
        """Create an object. Raises an error if the key exists."""
        ...

    def read_start(self, key: str, most: int) -> bytes | None:
        """The first `most` bytes of an object; None if it does not exist."""
        ...

    def has_object(self, key: str) -> bool:
        """Whether an object exists."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """The names of the objects and folders in a folder."""
        ...

    def creation_time(self, key: str) -> float:
        """When an object was created, in seconds since 1970."""
        ...

    def delete_objects(self, keys: Iterable[str]) -> None:
        """Delete objects, ignoring those that do not exist."""
        ...


def open_object_store(url: str, **options: Any) -> ObjectStore:
    """Open the store at a URL: a folder (`file:///srv/fleet`), or any storage that fsspec supports."""
    if url.startswith(_FOLDER_SCHEME):
        return _FolderStore(url.removeprefix(_FOLDER_SCHEME))
    return _RemoteStore(url, options)


class _FolderStore:
    """Objects stored as files in a folder. Others may write to it, so no symlink in it is followed."""

    errors: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, folder: str) -> None:
        self._folder = Path(os.path.abspath(folder))

    def create_object(self, key: str, data: bytes) -> None:
        self._make_folders(key)
        partial = f".{secrets.token_hex(8)}"
        with self._open_parent_folder(key) as (folder, name):
            try:
                with open(folder.create_file(partial, 0o666), "wb") as file:
                    file.write(data)
                # link() is atomic and fails if the name exists, so an object is never partly written.
                os.link(
                    folder.name_for_os(partial),
                    folder.name_for_os(name),
                    src_dir_fd=folder.fd,
                    dst_dir_fd=folder.fd,
                    follow_symlinks=False,
                )
            finally:
                with contextlib.suppress(FileNotFoundError):
                    folder.unlink(partial)

    def read_start(self, key: str, most: int) -> bytes | None:
        try:
            with (
                self._open_parent_folder(key) as (folder, name),
                open(folder.open_file(name), "rb") as file,
            ):
                return file.read(min(os.fstat(file.fileno()).st_size, most))
        except FileNotFoundError:
            return None
        except WrongKind as problem:
            raise OSError(errno.EINVAL, problem.message) from problem

    def has_object(self, key: str) -> bool:
        try:
            with self._open_parent_folder(key) as (folder, name):
                return folder.find(name) is not None
        except FileNotFoundError:
            return False

    def list_names(self, folder: str) -> list[str]:
        try:
            with self._open_parent_folder(f"{folder}/.") as (opened, _):
                return opened.names()
        except FileNotFoundError:
            return []

    def creation_time(self, key: str) -> float:
        with self._open_parent_folder(key) as (folder, name):
            return folder.stat(name).st_mtime

    def delete_objects(self, keys: Iterable[str]) -> None:
        for key in keys:
            with contextlib.suppress(FileNotFoundError), self._open_parent_folder(key) as (folder, name):
                folder.unlink(name)

    @contextmanager
    def _open_parent_folder(self, key: str) -> Iterator[tuple[FolderHandle, str]]:
        """The folder that contains an object, and its name there."""
        above, _, name = key.rpartition("/")
        # Follow symlinks in the path that the operator gave, but not below it, where others can write.
        with (
            FolderHandle.at(os.path.realpath(self._folder)) as top,
            open_inner_folder(top, above) as folder,
        ):
            yield folder, name

    def _make_folders(self, key: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        above = key.split("/")[:-1]
        for end in range(1, len(above) + 1):
            with (
                self._open_parent_folder("/".join(above[:end])) as (folder, name),
                contextlib.suppress(FileExistsError),
            ):
                folder.create_folder(name)


class _RemoteStore:
    """Objects in a store accessed through fsspec."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            import fsspec  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise HostError("Logs need fsspec: pip install 'handtools-slim[fleet]'.") from missing
        if url.startswith("s3:"):
            # Without this option, s3fs makes an extra request for the size of each object that it reads.
            options = {"max_concurrency": 1} | options
        self._files, self._top = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
        self.errors: tuple[type[Exception], ...] = (OSError, TimeoutError, *_client_error_types())

    def create_object(self, key: str, data: bytes) -> None:
        self._files.pipe_file(self._path_of_key(key), data, mode="create")

    def read_start(self, key: str, most: int) -> bytes | None:
        try:
            found: bytes = self._files.cat_file(self._path_of_key(key), start=0, end=most)
        except FileNotFoundError:
            return None
        return found

    def has_object(self, key: str) -> bool:
        return bool(self._files.exists(self._path_of_key(key)))

    def list_names(self, folder: str) -> list[str]:
        try:
            found: list[str] = self._files.ls(self._path_of_key(folder), detail=False)
        except FileNotFoundError:
            return []
        return [each.rstrip("/").rpartition("/")[2] for each in found]

    def creation_time(self, key: str) -> float:
        return float(self._files.modified(self._path_of_key(key)).timestamp())

    def delete_objects(self, keys: Iterable[str]) -> None:
        if paths := [self._path_of_key(key) for key in keys]:
            self._files.rm(paths)

    def _path_of_key(self, key: str) -> str:
        return f"{self._top}/{key}"


def _client_error_types() -> list[type[Exception]]:
    """Exceptions other than `OSError` that object store clients raise if a server is unreachable."""
    found: list[type[Exception]] = []
    for module, name in (("botocore.exceptions", "BotoCoreError"), ("aiohttp", "ClientError")):
        with contextlib.suppress(ImportError):
            found.append(getattr(importlib.import_module(module), name))
    return found
