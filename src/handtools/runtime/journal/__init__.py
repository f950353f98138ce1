"""The journal: what was called, what it changed, and the bytes to take it back."""

from contextlib import AbstractContextManager

from handtools.core.ports import Store
from handtools.core.vault import Vault
from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.calls import Calls, LoggedCall
from handtools.runtime.journal.database import Database, Occupied
from handtools.runtime.journal.entries import Entries, Entry, Touch
from handtools.runtime.journal.holds import Holds
from handtools.runtime.journal.refs import Refs
from handtools.runtime.journal.retention import Limits, Retention

__all__ = ["Entry", "Journal", "Limits", "LoggedCall", "Occupied", "Touch"]


class Journal:
    """The parts of the record, over one database."""

    def __init__(self, path: str, store: Store, vault: Vault | None = None) -> None:
        self._database = Database(path)
        blobs = Blobs(store)
        self.refs = Refs(self._database, vault)
        self.calls = Calls(self._database)
        self.holds = Holds(self._database)
        self.entries = Entries(self._database, blobs, self.refs)
        self.retention = Retention(self._database, blobs, self.refs)

    @property
    def path(self) -> str:
        """Where the record is."""
        return self._database.path

    @property
    def healed(self) -> str:
        """Says what was done when the record was found damaged; empty otherwise."""
        return self._database.healed

    def together(self, *, wait: bool = True) -> AbstractContextManager[object]:
        """One transaction for all that is recorded within the block; `Occupied` rather than a `wait`."""
        return self._database.writing(wait=wait)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        self._database.close()
