"""A copy of a workspace's journal as a tar archive: packed on its host, sent in parts, unpacked elsewhere."""

import os
import tarfile
from pathlib import Path
from typing import IO

JOURNAL_ARCHIVE_NAME = "journal.tar.gz"
JOURNAL_PART_BYTES = 16 << 20
_JOURNAL_PARTS = ("journal.sqlite", "journal.sqlite-wal", "blobs", "outputs")


def pack_journal(state: Path, archive: Path) -> None:
    """Pack the record of calls and what it refers to; scratch folders, locks and caches stay."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for name in _JOURNAL_PARTS:
            if (state / name).exists():
                packed.add(state / name, name)


def read_archive_part(archive: Path, offset: int) -> tuple[bytes, int]:
    """A part of an archive, and the size of all of it."""
    with archive.open("rb") as opened:
        opened.seek(offset)
        return opened.read(JOURNAL_PART_BYTES), os.fstat(opened.fileno()).st_size


def unpack_journal(archive: IO[bytes], folder: Path) -> None:
    """Unpack an archive into a new folder."""
    folder.mkdir(0o700)
    with tarfile.open(fileobj=archive) as packed:
        packed.extractall(folder, filter="data")
