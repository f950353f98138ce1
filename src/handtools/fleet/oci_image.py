"""Container images from disk: an OCI layout, as a folder or a tar archive, or what `docker save` writes. ADR 254.

Every byte is checked against the image's own digests, from the index down to the content of each layer.
"""

import contextlib
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import zstandard

from handtools.core.errors import TooLarge, UsageError
from handtools.fleet.image_layers import ImageNode, ImageTree, LayerEntry, walk_image
from handtools.host.files import syscalls

MOST_IMAGE_BYTES = 64 << 30
"""Most bytes of all layers of an image, unpacked."""
MOST_IMAGE_ENTRIES = 5_000_000
_MOST_DOCUMENT_BYTES = 16 << 20
_MOST_INDEX_DEPTH = 4
_CHUNK_BYTES = 1 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_GZIP_MAGIC, _ZSTANDARD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_HINT = "Save it again: `docker save IMAGE -o image.tar`, or `skopeo copy … oci:FOLDER`."


class _ImageFiles(Protocol):
    """The files that an image is stored as."""

    def open(self, name: str) -> IO[bytes] | None: ...


class _FolderFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str) -> IO[bytes] | None:
        try:
            fd = os.open(self._folder / name, os.O_RDONLY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        return os.fdopen(fd, "rb")


class _ArchiveFiles:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def open(self, name: str) -> IO[bytes] | None:
        try:
            return self._archive.extractfile(name)  # links are followed inside of the archive alone
        except KeyError:
            return None


def unpack_image(source: str | Path, tree: Path, scratch: Path, *, folder: str = "") -> str:
    """Write an image's file system, or one folder of it, to `tree`, a new folder; returns the image's digest.

    Devices and pipes are left out; set-user-id bits and owners, too. Raises `UsageError` for what is no image of
    one platform, is damaged, or leads out of itself.
    """
    try:
        with _opened(Path(source)) as files, contextlib.ExitStack() as layers:
            digest, found = _merged(files, scratch, layers)
            _write(found.folder(folder), tree)
            return digest
    except (tarfile.TarError, OSError, EOFError, zlib.error, zstandard.ZstdError) as problem:
        raise UsageError(f"The image can't be unpacked: {problem}.") from problem


@contextmanager
def _opened(source: Path) -> Iterator[_ImageFiles]:
    if source.is_dir():
        yield _FolderFiles(source)
        return
    with tarfile.open(source) as archive:
        yield _ArchiveFiles(archive)


def _merged(files: _ImageFiles, scratch: Path, opened: contextlib.ExitStack) -> tuple[str, ImageTree]:
    digest, config, names = _described(files)
    diffs = config.get("rootfs", {}).get("diff_ids")
    if not isinstance(diffs, list) or len(diffs) != len(names):
        raise UsageError(f"The image does not say what its layers are. {_HINT}")
    tree, left, entries = ImageTree(), MOST_IMAGE_BYTES, MOST_IMAGE_ENTRIES
    for number, (name, diff) in enumerate(zip(names, diffs, strict=True)):
        plain = scratch / f"layer-{number}"
        left -= _decompress(files, name, plain, left, str(diff))
        archive = opened.enter_context(tarfile.open(plain))  # noqa: SIM115
        plain.unlink()  # the open file is enough
        members = archive.getmembers()
        entries -= len(members)
        if entries < 0:
            raise TooLarge(
                f"The image has more than {MOST_IMAGE_ENTRIES:,} files.", hint="Use a smaller one."
            )
        tree.apply(_entries(archive, members))
    return digest, tree


def _described(files: _ImageFiles) -> tuple[str, dict[str, Any], list[str]]:
    """An image's digest, its configuration, and the files of its layers from the lowest on."""
    if (index := _document(files, "index.json")) is not None:
        digest, manifest = _manifest(files, _parsed(index))
        layers = manifest.get("layers")
        if not isinstance(layers, list) or not isinstance(manifest.get("config"), dict):
            raise UsageError(f"The image's manifest has no layers. {_HINT}")
        return (
            digest,
            _blob(files, manifest["config"].get("digest")),
            [_blob_name(each.get("digest")) for each in layers],
        )
    listed = _document(files, "manifest.json")
    if listed is None:
        raise UsageError(f"This is no image: it has neither index.json nor manifest.json. {_HINT}")
    images = _parsed(listed)
    if not isinstance(images, list) or len(images) != 1:
        raise UsageError("The archive has several images: save the one that is meant.")
    body = _document(files, str(images[0].get("Config")))
    if body is None:
        raise UsageError(f"The image's configuration is missing. {_HINT}")
    named = str(images[0]["Config"]).rpartition("/")[2].removesuffix(".json")
    digest = hashlib.sha256(body).hexdigest()
    if named != digest:
        raise UsageError(f"The image's configuration is not what its name says. {_HINT}")
    return f"sha256:{digest}", _parsed(body), [str(each) for each in images[0].get("Layers", [])]


def _manifest(files: _ImageFiles, index: Any, depth: int = 0) -> tuple[str, dict[str, Any]]:
    """The digest and content of the manifest for this machine, through as many indexes as there are."""
    listed = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(listed, list) or depth > _MOST_INDEX_DEPTH:
        raise UsageError(f"The image's index lists no manifests. {_HINT}")
    wanted = {str(each.get("digest")): each for each in listed if _runs_here(each)}
    if len(wanted) != 1:
        raise UsageError(
            f"The index has {len(wanted)} images for this machine, and one is needed: save the one that is meant."
        )
    (digest,) = wanted
    found = _blob(files, digest)
    return _manifest(files, found, depth + 1) if "manifests" in found else (digest, found)


def _runs_here(described: dict[str, Any]) -> bool:
    given = described.get("platform")
    if not given:
        return True
    here = _ARCHITECTURES.get(platform.machine(), platform.machine())
    return (given.get("os"), given.get("architecture")) == ("linux", here)


def _blob_name(digest: Any) -> str:
    matched = _DIGEST.fullmatch(str(digest))
    if matched is None:
        raise UsageError(f"{str(digest)[:100]!r} is no SHA-256 digest, which images here need.")
    return f"blobs/sha256/{matched[1]}"


def _blob(files: _ImageFiles, digest: Any) -> dict[str, Any]:
    name = _blob_name(digest)
    body = _document(files, name)
    if body is None:
        raise UsageError(f"The image lacks {name}. {_HINT}")
    if hashlib.sha256(body).hexdigest() != name.rpartition("/")[2]:
        raise UsageError(f"{name} is damaged: its content has another digest. {_HINT}")
    found = _parsed(body)
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not what it should be. {_HINT}")
    return found


def _document(files: _ImageFiles, name: str) -> bytes | None:
    file = files.open(name)
    if file is None:
        return None
    with file:
        return file.read(_MOST_DOCUMENT_BYTES)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as problem:
        raise UsageError(f"A part of the image is no JSON: {problem}.") from problem


def _decompress(files: _ImageFiles, name: str, target: Path, most: int, diff: str) -> int:
    """Write a layer as a plain tar archive; returns its size. It must have the digest `diff` then."""
    packed = files.open(name)
    if packed is None:
        raise UsageError(f"The image lacks its layer {name}. {_HINT}")
    found, size = hashlib.sha256(), 0
    with packed, target.open("xb") as file:
        magic = packed.read(4)
        packed.seek(0)
        plain: Any = packed
        if magic.startswith(_GZIP_MAGIC):
            plain = gzip.GzipFile(fileobj=packed)
        elif magic == _ZSTANDARD_MAGIC:
            plain = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        while chunk := plain.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > most:
                raise TooLarge(
                    f"The image is larger than {MOST_IMAGE_BYTES >> 30} GiB when unpacked.",
                    hint="Use a smaller one.",
                )
            found.update(chunk)
            file.write(chunk)
    if f"sha256:{found.hexdigest()}" != diff:
        raise UsageError(f"The layer {name} is damaged: its content has another digest. {_HINT}")
    return size


def _entries(archive: tarfile.TarFile, members: list[tarfile.TarInfo]) -> Iterator[LayerEntry]:
    for member in members:
        mode = member.mode & 0o777
        if member.isdir():
            # The sticky bit of a shared folder means the same here; who unpacks must be able to enter.
            yield LayerEntry(member.name, "folder", (member.mode & 0o1777) | 0o700)
        elif member.issym():
            yield LayerEntry(member.name, "link", target=member.linkname)
        elif member.islnk():
            yield LayerEntry(member.name, "hard link", target=member.linkname)
        elif member.isfile():
            yield LayerEntry(member.name, "file", mode | 0o400, content=(archive, member))


def _write(top: ImageNode, tree: Path) -> None:
    """Write a folder of the merged tree; parents come before children, and none of them is a link."""
    tree.mkdir(0o700)
    written: dict[int, Path] = {}
    folders = [(tree, top.mode)]
    for path, node in walk_image(top):
        place = tree / path
        if node.kind == "folder":
            place.mkdir(0o700)
            folders.append((place, node.mode))
        elif (first := written.get(id(node))) is not None:
            os.link(first, place, follow_symlinks=False)
        elif node.kind == "link":
            written[id(node)] = place
            os.symlink(node.target, place)
        else:
            written[id(node)] = place
            archive, member = node.content
            content = archive.extractfile(member)
            with place.open("xb") as file:
                if content is not None:
                    shutil.copyfileobj(content, file, _CHUNK_BYTES)
                os.fchmod(file.fileno(), node.mode)
    for place, mode in folders:
        place.chmod(mode | 0o700)
