"""The record of a folder: its files and its journal, without the tools; for looking back, and for the toolbox."""

from dataclasses import dataclass
from pathlib import Path

from handtools.host.local_files import LocalFiles
from handtools.host.state import state_folder, vault_folder
from handtools.host.store import FolderStore
from handtools.host.vault import Vault
from handtools.runtime.journal import Journal


@dataclass(frozen=True, slots=True)
class LocalRecord:
    """What is kept of a folder of this machine."""

    state: Path
    vault: Vault
    files: LocalFiles
    journal: Journal


def open_record(root: str | Path, state: str | Path | None = None) -> LocalRecord:
    """The record in the user's state folder, or in another."""
    folder = Path(state) if state is not None else state_folder(root)
    vault = Vault(vault_folder(root, folder))
    journal = Journal(str(folder / "journal.sqlite"), FolderStore(folder / "blobs"), vault)
    return LocalRecord(folder, vault, LocalFiles(root, vault=vault), journal)
