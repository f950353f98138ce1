"""The journal of a folder on this machine, with its files and backups but without tools."""

from dataclasses import dataclass
from pathlib import Path

from handtools.host.files.backups import FolderBackups
from handtools.host.files.blob_store import FolderStore
from handtools.host.files.local_files import LocalFiles
from handtools.host.files.user_folders import backups_folder, state_folder
from handtools.runtime.journal import Journal


@dataclass(frozen=True, slots=True)
class LocalJournal:
    """What is kept of a folder of this machine."""

    state: Path
    vault: FolderBackups
    files: LocalFiles
    journal: Journal


def open_local_journal(root: str | Path, state: str | Path | None = None) -> LocalJournal:
    """The record in the user's state folder, or in another."""
    folder = Path(state) if state is not None else state_folder(root)
    vault = FolderBackups(backups_folder(root, folder))
    journal = Journal(str(folder / "journal.sqlite"), FolderStore(folder / "blobs"), vault)
    return LocalJournal(folder, vault, LocalFiles(root, vault=vault), journal)
