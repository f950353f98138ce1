"""Copy a workspace's journal as a tar archive: packed on its host, sent in parts, unpacked elsewhere."""

import gzip
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from handtools.fleet.tar_archives import pack_folder, unpack_archive

JOURNAL_ARCHIVE_NAME = "journal.tar.gz"
JOURNAL_PART_BYTES = 16 << 20
_JOURNAL_PARTS = ("journal.sqlite", "journal.sqlite-wal", "blobs", "outputs")


def pack_journal(state: Path, archive: Path) -> None:
    """Pack the journal and the files it refers to, without scratch folders, locks and caches."""
    with gzip.open(archive, "wb", compresslevel=1) as packed:
        pack_folder(state, packed, names=_JOURNAL_PARTS)


def read_archive_part(archive: Path, offset: int) -> tuple[bytes, int]:
    """A part of an archive, and the total size of the archive."""
    with archive.open("rb") as opened:
        opened.seek(offset)
        return opened.read(JOURNAL_PART_BYTES), os.fstat(opened.fileno()).st_size


def unpack_journal(archive: IO[bytes], folder: Path) -> None:
    """Unpack an archive into a new folder."""
    with TemporaryDirectory(dir=folder.parent) as scratch:
        unpack_archive(archive, folder, Path(scratch))
    folder.chmod(0o700)
