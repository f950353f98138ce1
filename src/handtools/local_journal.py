"""Open the journal of a local folder with its files and backups, for commands that need no tools."""

from dataclasses import dataclass
from pathlib import Path

from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.files.local_files import LocalFiles
from handtools.host.workspace_folders import backups_folder, state_folder
from handtools.runtime.journal import Journal


@dataclass(frozen=True, slots=True)
class LocalJournal:
    """The open journal of a local folder, with its state folder, backups and files."""

    state: Path
    backups: FolderBackups
    files: LocalFiles
    journal: Journal


def open_local_journal(root: str | Path, state: str | Path | None = None) -> LocalJournal:
    """Open the journal of the folder `root`, stored in `state` or by default in the user's state folder."""
    folder = Path(state) if state is not None else state_folder(root)
    backups = FolderBackups(backups_folder(root, folder))
    journal = Journal(str(folder / "journal.sqlite"), FolderBlobStore(folder / "blobs"), backups)
    return LocalJournal(folder, backups, LocalFiles(root, backups=backups), journal)
