"""Read and write tar archives: tarballs, image layers, stored templates, journals.

This is the only module that imports `tarfile` to unpack archives. The entries of an archive become a tree
in memory (`ImageTree`), which is written once, through directory fds of newly created folders. So no path
or symlink in an archive can redirect a write. `tarfile` itself extracts nothing.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard

from handtools.core.errors import TooLarge, UsageError
from handtools.fleet.image_layers import ImageNode, ImageTree, permissions_in_template, walk_image_nodes
from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder
from handtools.host.files.folder_trees import SubfolderCache, TreeEntry, walk_tree

MAX_ARCHIVE_BYTES = 64 << 30
"""Maximum unpacked size of an archive, or of all layers of an image."""
MAX_ARCHIVE_ENTRIES = 5_000_000
_MAX_READ_BYTES = 4 << 20
"""Maximum size of one read, which also limits the size of extended headers."""
_CHUNK_BYTES = 1 << 20
_MAX_SECONDS = 1 << 34
_MAX_ZSTANDARD_WINDOW_BYTES = 128 << 20
_UNPACKERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda packed: (
        zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTANDARD_WINDOW_BYTES)
        .stream_reader(packed, read_across_frames=True, closefd=False)
    ),
}  # fmt: skip
"""Decompressors by magic number."""
_FAILURES = (
    tarfile.TarError,
    OSError,
    EOFError,
    ValueError,
    RecursionError,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
)


@dataclass(slots=True)
class ArchiveBudget:
    """How many bytes and entries may still be unpacked."""

    bytes: int = MAX_ARCHIVE_BYTES
    entries: int = MAX_ARCHIVE_ENTRIES

    def subtract(self, *, size: int = 0, entries: int = 0) -> None:
        """Subtract from the budget. Raises `TooLarge` if it is exceeded."""
        self.bytes -= size
        self.entries -= entries
        if self.bytes < 0 or self.entries < 0:
            raise TooLarge(
                f"It unpacks to more than {MAX_ARCHIVE_BYTES >> 30} GiB or {MAX_ARCHIVE_ENTRIES:,} files.",
                hint="Use a smaller archive or image.",
            )


@contextmanager
def convert_archive_errors(what: str) -> Iterator[None]:
    """Convert every error about an archive to a `UsageError`; `what` names the kind of archive in it."""
    try:
        yield
    except _FAILURES as problem:
        raise UsageError(f"Can't unpack the {what}: {problem}.") from problem


class TarArchive:
    """A tar archive that is open for reading."""

    def __init__(self, plain: IO[bytes]) -> None:
        self._archive = tarfile.open(fileobj=_BoundedReads(plain), mode="r:")  # noqa: SIM115

    def paths_and_nodes(self, budget: ArchiveBudget) -> Iterator[tuple[str, ImageNode]]:
        """Yield the paths and nodes of the archive; devices and pipes are skipped, owners are ignored."""
        for member in self._archive:
            # Only a sparse file can be larger than the archive that contains it.
            budget.subtract(entries=1, size=member.size if member.issparse() else 0)
            mode = permissions_in_template(member.mode, is_folder=member.isdir())
            if member.isdir():
                yield member.name, ImageNode("folder", mode, mtime=_valid_mtime(member))
            elif member.issym():
                yield member.name, ImageNode("link", target=member.linkname)
            elif member.islnk():
                yield member.name, ImageNode("hard link", target=member.linkname)
            elif member.isfile():
                content = (self._archive, member)
                yield member.name, ImageNode("file", mode, content=content, mtime=_valid_mtime(member))

    def open_file(self, name: str) -> IO[bytes] | None:
        """Open a file of the archive; None if it does not exist. Follows links only inside the archive."""
        try:
            return self._archive.extractfile(name)
        except KeyError:
            return None

    def check_entry_count(self, budget: ArchiveBudget) -> None:
        """Count all entries. Raises `TooLarge` if there are too many."""
        for _ in self._archive:
            budget.subtract(entries=1)


class _BoundedReads(io.BufferedIOBase):
    """A file with limited read sizes, because a forged header can claim to be gigabytes long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the next bytes. Raises `tarfile.ReadError` if `size` is over the limit."""
        if size is None or not 0 <= size <= _MAX_READ_BYTES:
            raise tarfile.ReadError(f"it contains a header of {size or 0:,} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def _valid_mtime(member: tarfile.TarInfo) -> float | None:
    """The modification time of a member; None if it is out of range."""
    return member.mtime if 0 <= member.mtime < _MAX_SECONDS else None


def decompress_and_hash(packed: IO[bytes], target: Path, budget: ArchiveBudget) -> str:
    """Write `packed` to `target`, decompressed if necessary. Returns the SHA-256 of the written data."""
    unpacker = _decompressor_for(packed)
    plain: Any = packed if unpacker is None else unpacker(packed)
    found = hashlib.sha256()
    with target.open("xb") as file:
        while chunk := plain.read(_CHUNK_BYTES):
            budget.subtract(size=len(chunk))
            found.update(chunk)
            file.write(chunk)
    return found.hexdigest()


def _decompressor_for(packed: IO[bytes]) -> Callable[[IO[bytes]], Any] | None:
    magic = packed.read(8)
    packed.seek(0)
    return next((each for start, each in _UNPACKERS.items() if magic.startswith(start)), None)


@contextmanager
def open_archive(packed: IO[bytes], scratch: Path, budget: ArchiveBudget) -> Iterator[TarArchive]:
    """Open an archive. A compressed one is first decompressed to a file in the folder `scratch`."""
    if _decompressor_for(packed) is None:
        yield TarArchive(packed)
        return
    unpacked = scratch / "archive"
    decompress_and_hash(packed, unpacked, budget)
    with unpacked.open("rb") as plain:
        unpacked.unlink()  # the open fd keeps the data
        yield TarArchive(plain)


def unpack_archive(packed: IO[bytes], folder: Path, scratch: Path) -> None:
    """Unpack a tar archive, compressed or not, to the new `folder`. `scratch` is for temporary files.

    Symlinks keep their targets. Raises `UsageError` if the archive is damaged or contains paths outside
    itself.
    """
    budget = ArchiveBudget()
    with convert_archive_errors("archive"), open_archive(packed, scratch, budget) as archive:
        tree = ImageTree()
        tree.apply_layer(archive.paths_and_nodes(budget), has_whiteouts=False)
        write_tree(tree.root, folder)


def write_tree(top_node: ImageNode, folder: Path) -> None:
    """Write a folder of an in-memory tree to a new folder."""
    folder.mkdir(0o700)
    written: dict[int, str] = {}
    folders = [("", top_node)]
    with FolderHandle.at(os.fspath(folder)) as handle, SubfolderCache(handle) as subtree:
        for path, node in walk_image_nodes(top_node):
            above, _, name = path.rpartition("/")
            here = subtree.folder(above)
            if node.kind == "folder":
                here.create_folder(name)
                folders.append((path, node))
            elif (first := written.get(id(node))) is not None:
                _create_hard_link(handle, first, here, name)
            else:
                written[id(node)] = path
                _write_file_or_symlink(here, name, node)
        for path, node in reversed(folders):
            _set_folder_mode_and_mtime(handle, path, node)


def _write_file_or_symlink(folder: FolderHandle, name: str, node: ImageNode) -> None:
    if node.kind == "link":
        folder.create_link(name, os.fsencode(node.target))
        return
    archive, member = node.content
    content = archive.extractfile(member)
    with open(folder.create_file(name, 0o600), "wb") as file:
        if content is not None:
            shutil.copyfileobj(content, file, _CHUNK_BYTES)
        file.flush()
        os.fchmod(file.fileno(), node.mode)
        if node.mtime is not None:
            os.utime(file.fileno(), (node.mtime, node.mtime))


def _create_hard_link(top_handle: FolderHandle, first: str, folder: FolderHandle, name: str) -> None:
    above, _, known = first.rpartition("/")
    with open_inner_folder(top_handle, above) as there:
        os.link(
            there.name_for_os(known),
            folder.name_for_os(name),
            src_dir_fd=there.fd,
            dst_dir_fd=folder.fd,
            follow_symlinks=False,
        )


def _set_folder_mode_and_mtime(top_handle: FolderHandle, path: str, node: ImageNode) -> None:
    """Set the mode and mtime of a folder after its contents are written."""
    above, _, name = path.rpartition("/")
    with open_inner_folder(top_handle, above) as folder:
        if node.mtime is not None:
            place, times = folder.name_for_os(name or "."), (node.mtime, node.mtime)
            os.utime(place, times, dir_fd=folder.fd, follow_symlinks=False)
        folder.set_mode(name or ".", node.mode)


def pack_folder(
    folder: Path, target: IO[bytes] | io.BufferedIOBase, *, names: Collection[str] = ()
) -> None:
    """Write a folder's files, folders and symlinks as a tar archive, optionally only the given `names`."""
    linked: dict[tuple[int, int], str] = {}
    with FolderHandle.at(os.fspath(folder)) as top, tarfile.open(fileobj=target, mode="w|") as archive:
        archive.addfile(_tar_member(".", top.own_stat()))
        for entry in _walk_named_entries(top, names) if names else walk_tree(top):
            found, member = entry.found, _tar_member(entry.path, entry.found)
            if entry.kind == "link":
                member.type = tarfile.SYMTYPE
                member.linkname = os.fsdecode(entry.folder.link_target(entry.name))
            elif entry.kind == "file":
                first = linked.setdefault((found.st_dev, found.st_ino), entry.path)
                if found.st_nlink > 1 and first != entry.path:
                    member.type, member.linkname = tarfile.LNKTYPE, first
                else:
                    with open(entry.folder.open_file(entry.name), "rb") as file:
                        member.size = os.fstat(file.fileno()).st_size
                        archive.addfile(member, file)
                    continue
            elif entry.kind is None:
                continue
            archive.addfile(member)


def _walk_named_entries(top_handle: FolderHandle, names: Collection[str]) -> Iterator[TreeEntry]:
    """Yield the given names, if they exist in the folder, and everything below them."""
    for name in names:
        found = top_handle.find(name)
        if found is None:
            continue
        yield TreeEntry(name, top_handle, name, found)
        if stat.S_ISDIR(found.st_mode):
            with top_handle.child(name) as inside:
                for entry in walk_tree(inside):
                    yield entry._replace(path=join_path(name, entry.path))


def _tar_member(path: str, found: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type = tarfile.DIRTYPE if stat.S_ISDIR(found.st_mode) else tarfile.REGTYPE
    member.mode, member.mtime = stat.S_IMODE(found.st_mode), found.st_mtime
    return member
