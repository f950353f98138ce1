"""Previews of zip and tar archives: their entries, without unpacking anything."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import MediaPreview
from handtools.text.search.hit_rendering import path_on_one_line

MAX_ARCHIVE_ENTRIES = 2_000
MAX_UNPACKED_TAR_BYTES = 256 << 20
"""Maximum size of a decompressed tar, in bytes; larger ones are zip bombs or backups."""
_FAILURES = (
    zipfile.BadZipFile,
    tarfile.TarError,
    NotImplementedError,  # a newer zip version
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    ValueError,
)


def preview(path: str, data: bytes) -> MediaPreview:
    """List the names and sizes of an archive's entries."""
    try:
        shape, entries = (
            ("zip", _zip_entries(data)) if data.startswith(b"PK") else _tar_format_and_entries(data)
        )
    except _FAILURES as error:
        packed = isinstance(error, tarfile.TarError)
        hint = "If it is a single compressed file, decompress it with a command." if packed else ""
        raise WrongKind(f"`{path}` looks like an archive but can't be read: {error}.", hint=hint) from error
    total = sum(size for _, size in entries)
    rows = [f"{size:>12,}  {path_on_one_line(name)}" for name, size in entries[:MAX_ARCHIVE_ENTRIES]]
    more = len(entries) > MAX_ARCHIVE_ENTRIES
    return MediaPreview(
        kind="archive",
        title=f"{shape} archive, {len(rows):,}{'+' * more} entries, {total:,} bytes",
        text="\n".join(rows),
        left_out=f"entries after the first {MAX_ARCHIVE_ENTRIES:,}" if more else "",
    )


def _zip_entries(data: bytes) -> list[tuple[str, int]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [
            (entry.filename, entry.file_size) for entry in archive.infolist()[: MAX_ARCHIVE_ENTRIES + 1]
        ]


def _tar_format_and_entries(data: bytes) -> tuple[str, list[tuple[str, int]]]:
    shape, stream = _tar_format_and_stream(data)
    entries = []
    with tarfile.open(fileobj=_Bounded(stream), mode="r|") as archive:
        for member in archive:
            entries.append((member.name + "/" * member.isdir(), member.size))
            if len(entries) > MAX_ARCHIVE_ENTRIES:
                break
    return shape, entries


def _tar_format_and_stream(data: bytes) -> tuple[str, io.BufferedIOBase]:
    source = io.BytesIO(data)
    if data.startswith(b"\x1f\x8b"):
        return "tar.gz", gzip.open(source)
    if data.startswith(b"BZh"):
        return "tar.bz2", bz2.open(source)
    if data.startswith(b"\xfd7zXZ"):
        return "tar.xz", lzma.open(source)
    return "tar", source


class _Bounded(io.BufferedIOBase):
    """A stream that raises an error once more than `MAX_UNPACKED_TAR_BYTES` have been read from it."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self._left = MAX_UNPACKED_TAR_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the next bytes; raises if the limit is exceeded."""
        found = self._stream.read(size)
        self._left -= len(found)
        if self._left < 0:
            message = f"The archive decompresses to more than {MAX_UNPACKED_TAR_BYTES >> 20} MB."
            raise TooLarge(message, hint="List it with a command.")
        return found
