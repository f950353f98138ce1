"""Templates of workspaces: read-only folders, made from folders, archives, commits or OCI images.

They are stored by the digest of their content.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from handtools.core.errors import NotFound, StorageFault, UsageError, WrongKind
from handtools.fleet.image_layers import ImageTree, permissions_in_template
from handtools.fleet.tar_archives import (
    ArchiveBudget,
    TarArchive,
    convert_archive_errors,
    decompress_and_hash,
    open_archive,
    unpack_archive,
    write_tree,
)
from handtools.host.files.folder_handle import FolderHandle, open_inner_folder
from handtools.host.files.folder_trees import copy_tree, remove_tree, walk_tree
from handtools.host.files.git_repository import head_commit, write_commit

TEMPLATE_TREE_NAME = "tree"
TEMPLATE_FACTS_NAME = "facts.json"
TEMPLATE_DIGEST = re.compile("[0-9a-f]{64}")
_HASHED_CHUNK_BYTES = 1 << 20
_REPOSITORY_NAME = ".git"


@dataclass(frozen=True, slots=True)
class Template:
    """A read-only folder and its metadata."""

    digest: str
    """SHA-256 over the paths, modes and bytes of everything in it."""
    tree: Path
    files: int
    bytes: int
    source: str


class TemplateStore:
    """The templates of one machine, each unpacked only once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add_folder(self, source: str | Path) -> Template:
        """Create a template from a copy of a folder. The same content gives the same template.

        Setuid and setgid bits are dropped.
        """
        with self._temporary_folder() as place, FolderHandle.at(os.path.realpath(source)) as top:
            os.mkdir(place / TEMPLATE_TREE_NAME)
            with FolderHandle.at(os.fspath(place / TEMPLATE_TREE_NAME)) as tree:
                for name in top.names():
                    copy_tree(top, name, tree, name)
                _set_template_modes(tree)
            return self._store_template(place, f"folder {source}")

    def add_tarball(self, source: str | Path | IO[bytes]) -> Template:
        """Create a template from a tar archive, compressed or not.

        Symlinks keep their targets; owners and devices are dropped. Raises `UsageError` for a path outside
        the archive.
        """
        if isinstance(source, (str, Path)):
            with convert_archive_errors("archive"), open(source, "rb") as file:
                return self._unpack_and_store_tarball(file, f"tarball {source}")
        return self._unpack_and_store_tarball(source, "tarball")

    def _unpack_and_store_tarball(self, packed: IO[bytes], source: str) -> Template:
        with self._temporary_folder() as place:
            unpack_archive(packed, place / TEMPLATE_TREE_NAME, place)
            return self._store_template(place, source)

    def add_image(self, source: str | Path, *, folder: str = "") -> Template:
        """Create a template from a container image on disk, or from one folder of it such as `/app`.

        The image is an OCI layout (folder or tar archive) or the output of `docker save`. Paths outside the
        image are refused.
        """
        with self._temporary_folder() as place:
            digest = unpack_image(source, place / TEMPLATE_TREE_NAME, place, folder=folder)
            return self._store_template(place, f"image {digest} {folder}".strip())

    def add_git_commit(
        self, repository: str | Path, commit: str = "HEAD", *, with_repository: bool = True
    ) -> Template:
        """Create a template from a commit, by default with a checked-out repository of only that commit.

        Only objects are read: no filter, hook, remote or other setting of the repository is used. Git LFS
        files stay pointers, and missing objects are an error.
        """
        with self._temporary_folder() as place:
            tree = place / TEMPLATE_TREE_NAME
            found = write_commit(repository, commit, tree, with_repository=with_repository)
            return self._store_template(place, f"commit {found}", commit=found if with_repository else "")

    def restore_template(self, digest: str, packed: IO[bytes]) -> Template:
        """Recreate a template from a tar archive of its tree that was stored under its digest.

        Raises `StorageFault` if the content does not match the digest.
        """
        with self._temporary_folder() as place:
            stored, tree = place / "stored", place / TEMPLATE_TREE_NAME
            try:
                unpack_archive(packed, stored, place)
                commit = head_commit(stored)
                if commit and _digest_and_counts_of_folder(stored, commit)[0] == digest:
                    # The digest covers the commit id, but not .git. So don't trust the stored .git: make a
                    # new one from its objects, whose hashes are checked.
                    write_commit(stored, commit, tree, with_repository=True)
                    shutil.rmtree(stored)
                else:
                    commit = ""
                    stored.rename(tree)
                return self._store_template(place, "store", commit=commit, digest=digest)
            except UsageError as problem:
                raise _damaged_template_fault(digest, str(problem)) from problem

    def get_template(self, digest: str) -> Template:
        """Return a template by digest. Raises `NotFound`."""
        place = self._template_folder(digest)
        try:
            facts = json.loads((place / TEMPLATE_FACTS_NAME).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise NotFound(
                f"Template {digest[:12]} not found.", hint="Create it again from its source."
            ) from None
        return Template(digest, place / TEMPLATE_TREE_NAME, facts["files"], facts["bytes"], facts["source"])

    def files_folder(self, digest: str) -> Path:
        """The folder with a template's files, whether or not it exists."""
        return self._template_folder(digest) / TEMPLATE_TREE_NAME

    def has_template(self, digest: str) -> bool:
        """Whether a template exists in the store."""
        return (self._template_folder(digest) / TEMPLATE_FACTS_NAME).is_file()

    def digests(self) -> list[str]:
        """The digests of all templates in the store."""
        if not self.folder.is_dir():
            return []
        return sorted(
            name for name in os.listdir(self.folder) if _is_digest(name) and self.has_template(name)
        )

    def mark_as_used(self, digest: str) -> None:
        """Mark a template as used now."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._template_folder(digest) / TEMPLATE_FACTS_NAME)

    def unused_seconds(self, digest: str) -> float:
        """Seconds since a template was last used."""
        return time.time() - (self._template_folder(digest) / TEMPLATE_FACTS_NAME).stat().st_mtime

    def remove(self, digest: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            # Delete the metadata first: without them, a partly deleted template is not found any more.
            (self._template_folder(digest) / TEMPLATE_FACTS_NAME).unlink()
        if self.folder.is_dir():
            with FolderHandle.at(os.fspath(self.folder)) as top:
                remove_tree(top, digest)

    def remove_leftovers(self, *, older_seconds: float = 3600.0) -> int:
        """Delete what interrupted operations left in the folder. Returns the number of deleted entries."""
        left = [
            name
            for name in (os.listdir(self.folder) if self.folder.is_dir() else ())
            if not (_is_digest(name) and self.has_template(name))
            and time.time() - (self.folder / name).stat().st_mtime > older_seconds
        ]
        for name in left:
            with FolderHandle.at(os.fspath(self.folder)) as top:
                remove_tree(top, name)
        return len(left)

    @contextmanager
    def _temporary_folder(self) -> Iterator[Path]:
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        place = self.folder / f".{secrets.token_hex(8)}"
        place.mkdir(0o700)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _template_folder(self, digest: str) -> Path:
        """The folder of a template and its metadata, whether or not it exists."""
        if not _is_digest(digest):
            raise NotFound(f"{digest[:80]!r} is not a template digest.", hint="Use 64 hexadecimal digits.")
        return self.folder / digest

    def _store_template(self, place: Path, source: str, *, commit: str = "", digest: str = "") -> Template:
        found, files, size = _digest_and_counts_of_folder(place / TEMPLATE_TREE_NAME, commit)
        if digest and found != digest:
            raise _damaged_template_fault(digest, "The digest of its content does not match.")
        if not self.has_template(found):
            facts = {"files": files, "bytes": size, "source": source, "made": time.time()}
            (place / TEMPLATE_FACTS_NAME).write_text(json.dumps(facts))
            try:
                os.rename(place, self._template_folder(found))
            except OSError:  # race: another process created the same template
                if not self.has_template(found):
                    raise
        return self.get_template(found)


def _is_digest(name: str) -> bool:
    return TEMPLATE_DIGEST.fullmatch(name) is not None


def _damaged_template_fault(digest: str, problem: str) -> StorageFault:
    return StorageFault(
        f"The stored template {digest[:12]} is damaged or was replaced: {problem}",
        hint="Check who can write to the object store, and add the template to the fleet again.",
    )


def _set_template_modes(tree_handle: FolderHandle) -> None:
    for entry in walk_tree(tree_handle):
        if entry.kind != "link":
            entry.set_mode(permissions_in_template(entry.mode, is_folder=entry.is_folder))


def digest_of_folder(tree: str | Path) -> str:
    """SHA-256 over the paths, modes and bytes of everything in a folder."""
    return _digest_and_counts_of_folder(Path(tree), "")[0]


def _digest_and_counts_of_folder(tree: Path, commit: str) -> tuple[str, int, int]:
    """The digest of a folder, and its number of files and bytes.

    If `commit` is given, the digest covers it instead of `.git`, whose index contains varying timestamps.
    """
    total = hashlib.sha256()
    files = size = 0
    with FolderHandle.at(os.fspath(tree)) as top:
        for entry in walk_tree(top):
            if commit and entry.path.split("/", 1)[0] == _REPOSITORY_NAME:
                continue
            if entry.kind == "file":
                with open(entry.folder.open_file(entry.name), "rb") as file:
                    content = _sha256_of_stream(file)
                files, size = files + 1, size + entry.found.st_size
            else:
                content = entry.folder.link_target(entry.name).hex() if entry.kind == "link" else ""
            # Not in the digest: modes of symlinks, which mean nothing, and times and owners, which vary.
            mode = 0 if entry.kind == "link" else entry.mode
            line = [os.fsencode(entry.path).hex(), stat.S_IFMT(entry.found.st_mode), mode, content]
            total.update(json.dumps(line).encode() + b"\n")
    total.update(commit.encode())
    return total.hexdigest(), files, size


def _sha256_of_stream(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_HASHED_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


_MAX_IMAGE_DOCUMENT_BYTES = 16 << 20
_MAX_IMAGE_INDEX_DEPTH = 4
_IMAGE_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_IMAGE_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_SAVE_IMAGE_HINT = "Save it again: `docker save IMAGE -o image.tar`, or `skopeo copy … oci:FOLDER`."


class _ImageFiles(Protocol):
    """Access to the files that an image is stored in: a folder or an archive."""

    def open_file(self, name: str) -> IO[bytes] | None: ...


class _FolderFiles:
    def __init__(self, folder: FolderHandle) -> None:
        self._folder = folder

    def open_file(self, name: str) -> IO[bytes] | None:
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
        convert_archive_errors("image"),
        _open_image_files(Path(source), scratch, budget) as files,
        contextlib.ExitStack() as layers,
    ):
        digest, found = _image_digest_and_tree(files, scratch, budget, layers)
        write_tree(found.folder_node(folder), tree)
        return digest


@contextmanager
def _open_image_files(source: Path, scratch: Path, budget: ArchiveBudget) -> Iterator[_ImageFiles]:
    if source.is_dir():
        with FolderHandle.at(os.path.realpath(source)) as folder:
            yield _FolderFiles(folder)
        return
    with source.open("rb") as packed, open_archive(packed, scratch, budget) as archive:
        archive.check_entry_count(budget)
        yield archive


def _image_digest_and_tree(
    files: _ImageFiles, scratch: Path, budget: ArchiveBudget, open_layers: contextlib.ExitStack
) -> tuple[str, ImageTree]:
    digest, config, names = _image_digest_config_and_layers(files)
    diff_ids = _require_json_object(config.get("rootfs")).get("diff_ids")
    if not isinstance(diff_ids, list) or len(diff_ids) != len(names):
        raise UsageError(f"The image's configuration does not list its layers. {_SAVE_IMAGE_HINT}")
    tree = ImageTree()
    for number, (name, diff) in enumerate(zip(names, diff_ids, strict=True)):
        plain = scratch / f"layer-{number}"
        packed = files.open_file(name)
        if packed is None:
            raise UsageError(f"The image's layer {name} is missing. {_SAVE_IMAGE_HINT}")
        with packed:
            if f"sha256:{decompress_and_hash(packed, plain, budget)}" != diff:
                raise UsageError(
                    f"The layer {name} is damaged: its digest does not match. {_SAVE_IMAGE_HINT}"
                )
        layer = open_layers.enter_context(plain.open("rb"))
        plain.unlink()  # the open fd keeps the data
        tree.apply_layer(TarArchive(layer).paths_and_nodes(budget))
    return digest, tree


def _image_digest_config_and_layers(files: _ImageFiles) -> tuple[str, dict[str, Any], list[str]]:
    """An image's digest, its configuration, and the files of its layers, lowest first."""
    if (index := _read_image_file(files, "index.json")) is not None:
        digest, manifest = _manifest_digest_and_content(files, _parse_image_json(index))
        layers = manifest.get("layers")
        if not isinstance(layers, list):
            raise UsageError(f"The image's manifest has no layers. {_SAVE_IMAGE_HINT}")
        return (
            digest,
            _image_json_blob(files, _require_json_object(manifest.get("config")).get("digest")),
            [_image_blob_name(_require_json_object(each).get("digest")) for each in layers],
        )
    listed = _read_image_file(files, "manifest.json")
    if listed is None:
        raise UsageError(f"This is not an image: it has no index.json or manifest.json. {_SAVE_IMAGE_HINT}")
    images = _parse_image_json(listed)
    if not isinstance(images, list) or len(images) != 1:
        raise UsageError("The archive does not contain exactly one image. Save only the one you need.")
    image = _require_json_object(images[0])
    body = _read_image_file(files, str(image.get("Config")))
    if body is None:
        raise UsageError(f"The image's configuration is missing. {_SAVE_IMAGE_HINT}")
    named = str(image["Config"]).rpartition("/")[2].removesuffix(".json")
    digest = hashlib.sha256(body).hexdigest()
    if named != digest:
        raise UsageError(
            f"The image's configuration is damaged: its digest does not match. {_SAVE_IMAGE_HINT}"
        )
    names = image.get("Layers")
    if not isinstance(names, list):
        raise UsageError(f"The image's manifest has no layers. {_SAVE_IMAGE_HINT}")
    return f"sha256:{digest}", _require_json_object(_parse_image_json(body)), [str(each) for each in names]


def _manifest_digest_and_content(
    files: _ImageFiles, index: Any, depth: int = 0
) -> tuple[str, dict[str, Any]]:
    """The digest and content of the manifest for this machine's platform, even if in a nested index."""
    listed = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(listed, list) or depth > _MAX_IMAGE_INDEX_DEPTH:
        raise UsageError(f"The image's index lists no manifests. {_SAVE_IMAGE_HINT}")
    wanted = {
        str(each.get("digest")) for each in map(_require_json_object, listed) if _image_runs_here(each)
    }
    if len(wanted) != 1:
        raise UsageError(
            f"The index has {len(wanted)} images for this machine instead of one. Save only one."
        )
    (digest,) = wanted
    found = _image_json_blob(files, digest)
    return (
        _manifest_digest_and_content(files, found, depth + 1) if "manifests" in found else (digest, found)
    )


def _image_runs_here(described: dict[str, Any]) -> bool:
    if not described.get("platform"):
        return True
    given = _require_json_object(described["platform"])
    here = _IMAGE_ARCHITECTURES.get(platform.machine(), platform.machine())
    return (given.get("os"), given.get("architecture")) == ("linux", here)


def _require_json_object(value: Any) -> dict[str, Any]:
    """Check that a part of a document is an object. Raises `UsageError` otherwise."""
    if not isinstance(value, dict):
        raise UsageError(
            f"The image's metadata has {str(value)[:80]!r} where an object is expected. {_SAVE_IMAGE_HINT}"
        )
    return value


def _image_blob_name(digest: Any) -> str:
    matched = _IMAGE_DIGEST.fullmatch(str(digest))
    if matched is None:
        raise UsageError(f"{str(digest)[:100]!r} is not a SHA-256 digest. Other digests are not supported.")
    return f"blobs/sha256/{matched[1]}"


def _image_json_blob(files: _ImageFiles, digest: Any) -> dict[str, Any]:
    name = _image_blob_name(digest)
    body = _read_image_file(files, name)
    if body is None:
        raise UsageError(f"The image's file {name} is missing. {_SAVE_IMAGE_HINT}")
    if hashlib.sha256(body).hexdigest() != name.rpartition("/")[2]:
        raise UsageError(f"{name} is damaged: its digest does not match. {_SAVE_IMAGE_HINT}")
    return _require_json_object(_parse_image_json(body))


def _read_image_file(files: _ImageFiles, name: str) -> bytes | None:
    file = files.open_file(name)
    if file is None:
        return None
    with file:
        return file.read(_MAX_IMAGE_DOCUMENT_BYTES)


def _parse_image_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"Part of the image's metadata is not valid JSON: {problem}.") from problem
