"""Container images on disk: an OCI layout (folder or tar archive), or the output of `docker save`.

Every byte is checked against the image's digests, from the index down to the content of each layer.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from handtools.core.errors import UsageError, WrongKind
from handtools.fleet.image_layers import ImageTree
from handtools.fleet.tar_archives import (
    ArchiveBudget,
    TarArchive,
    decompress,
    opened_archive,
    unpacking,
    write_tree,
)
from handtools.host.files.folder_handle import FolderHandle, open_inner_folder

_MAX_DOCUMENT_BYTES = 16 << 20
_MAX_INDEX_DEPTH = 4
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_HINT = "Save it again: `docker save IMAGE -o image.tar`, or `skopeo copy … oci:FOLDER`."


class _ImageFiles(Protocol):
    """The files that an image is stored as."""

    def open(self, name: str) -> IO[bytes] | None: ...


class _FolderFiles:
    def __init__(self, folder: FolderHandle) -> None:
        self._folder = folder

    def open(self, name: str) -> IO[bytes] | None:
        above, _, last = name.rpartition("/")
        try:
            with open_inner_folder(self._folder, above) as folder:
                return open(folder.open_file(last), "rb")
        except (OSError, ValueError, WrongKind):
            return None


def unpack_image(source: str | Path, tree: Path, scratch: Path, *, folder: str = "") -> str:
    """Write an image's file system, or one folder of it, to the new folder `tree`. Returns its digest.

    Devices, pipes, setuid bits and owners are omitted. Raises `UsageError` if it is not an image for a
    single platform, is damaged, or contains paths outside itself.
    """
    budget = ArchiveBudget()
    with (
        unpacking("image"),
        _opened(Path(source), scratch, budget) as files,
        contextlib.ExitStack() as layers,
    ):
        digest, found = _merged(files, scratch, budget, layers)
        write_tree(found.folder(folder), tree)
        return digest


@contextmanager
def _opened(source: Path, scratch: Path, budget: ArchiveBudget) -> Iterator[_ImageFiles]:
    if source.is_dir():
        with FolderHandle.at(os.path.realpath(source)) as folder:
            yield _FolderFiles(folder)
        return
    with source.open("rb") as packed, opened_archive(packed, scratch, budget) as archive:
        archive.check_size(budget)
        yield archive


def _merged(
    files: _ImageFiles, scratch: Path, budget: ArchiveBudget, opened: contextlib.ExitStack
) -> tuple[str, ImageTree]:
    digest, config, names = _described(files)
    diffs = _table(config.get("rootfs")).get("diff_ids")
    if not isinstance(diffs, list) or len(diffs) != len(names):
        raise UsageError(f"The image's configuration does not list its layers. {_HINT}")
    tree = ImageTree()
    for number, (name, diff) in enumerate(zip(names, diffs, strict=True)):
        plain = scratch / f"layer-{number}"
        packed = files.open(name)
        if packed is None:
            raise UsageError(f"The image's layer {name} is missing. {_HINT}")
        with packed:
            if f"sha256:{decompress(packed, plain, budget)}" != diff:
                raise UsageError(f"The layer {name} is damaged: its digest does not match. {_HINT}")
        layer = opened.enter_context(plain.open("rb"))
        plain.unlink()  # the open fd keeps the data
        tree.apply(TarArchive(layer).entries(budget))
    return digest, tree


def _described(files: _ImageFiles) -> tuple[str, dict[str, Any], list[str]]:
    """An image's digest, its configuration, and the files of its layers, lowest first."""
    if (index := _document(files, "index.json")) is not None:
        digest, manifest = _manifest(files, _parsed(index))
        layers = manifest.get("layers")
        if not isinstance(layers, list):
            raise UsageError(f"The image's manifest has no layers. {_HINT}")
        return (
            digest,
            _blob(files, _table(manifest.get("config")).get("digest")),
            [_blob_name(_table(each).get("digest")) for each in layers],
        )
    listed = _document(files, "manifest.json")
    if listed is None:
        raise UsageError(f"This is not an image: it has no index.json or manifest.json. {_HINT}")
    images = _parsed(listed)
    if not isinstance(images, list) or len(images) != 1:
        raise UsageError("The archive does not contain exactly one image. Save only the one you need.")
    image = _table(images[0])
    body = _document(files, str(image.get("Config")))
    if body is None:
        raise UsageError(f"The image's configuration is missing. {_HINT}")
    named = str(image["Config"]).rpartition("/")[2].removesuffix(".json")
    digest = hashlib.sha256(body).hexdigest()
    if named != digest:
        raise UsageError(f"The image's configuration is damaged: its digest does not match. {_HINT}")
    names = image.get("Layers")
    if not isinstance(names, list):
        raise UsageError(f"The image's manifest has no layers. {_HINT}")
    return f"sha256:{digest}", _table(_parsed(body)), [str(each) for each in names]


def _manifest(files: _ImageFiles, index: Any, depth: int = 0) -> tuple[str, dict[str, Any]]:
    """The digest and content of the manifest for this machine, resolved through nested indexes."""
    listed = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(listed, list) or depth > _MAX_INDEX_DEPTH:
        raise UsageError(f"The image's index lists no manifests. {_HINT}")
    wanted = {str(each.get("digest")) for each in map(_table, listed) if _runs_here(each)}
    if len(wanted) != 1:
        raise UsageError(
            f"The index has {len(wanted)} images for this machine instead of one. Save only one."
        )
    (digest,) = wanted
    found = _blob(files, digest)
    return _manifest(files, found, depth + 1) if "manifests" in found else (digest, found)


def _runs_here(described: dict[str, Any]) -> bool:
    if not described.get("platform"):
        return True
    given = _table(described["platform"])
    here = _ARCHITECTURES.get(platform.machine(), platform.machine())
    return (given.get("os"), given.get("architecture")) == ("linux", here)


def _table(value: Any) -> dict[str, Any]:
    """Check that a part of a document is an object. Raises `UsageError` otherwise."""
    if not isinstance(value, dict):
        raise UsageError(
            f"The image's metadata has {str(value)[:80]!r} where an object is expected. {_HINT}"
        )
    return value


def _blob_name(digest: Any) -> str:
    matched = _DIGEST.fullmatch(str(digest))
    if matched is None:
        raise UsageError(f"{str(digest)[:100]!r} is not a SHA-256 digest. Other digests are not supported.")
    return f"blobs/sha256/{matched[1]}"


def _blob(files: _ImageFiles, digest: Any) -> dict[str, Any]:
    name = _blob_name(digest)
    body = _document(files, name)
    if body is None:
        raise UsageError(f"The image's file {name} is missing. {_HINT}")
    if hashlib.sha256(body).hexdigest() != name.rpartition("/")[2]:
        raise UsageError(f"{name} is damaged: its digest does not match. {_HINT}")
    return _table(_parsed(body))


def _document(files: _ImageFiles, name: str) -> bytes | None:
    file = files.open(name)
    if file is None:
        return None
    with file:
        return file.read(_MAX_DOCUMENT_BYTES)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"Part of the image's metadata is not valid JSON: {problem}.") from problem
