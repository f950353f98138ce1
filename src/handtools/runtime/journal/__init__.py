"""The journal: what was called, what it changed, and the bytes to take it back."""

import copy
import hashlib
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from handtools.core.call import Call
from handtools.core.errors import HostError
from handtools.core.files import Backups, Store
from handtools.runtime.journal.backup_refs import BackupRefs, DeferredDigests
from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.calls import Calls, HeldCommands, LoggedCall, OnceMarks
from handtools.runtime.journal.change_entries import ChangeEntries, ChangeEntry, RecordedTouch
from handtools.runtime.journal.database import CallRecord, Database
from handtools.runtime.journal.retention import Retention, RetentionLimits

__all__ = [
    "CallRecord",
    "ChangeEntry",
    "Journal",
    "LoggedCall",
    "RecordedTouch",
    "RetentionLimits",
]

log = logging.getLogger("handtools")


class Journal:
    """The parts of the record, over one database, as one owner sees them."""

    owner = ""
    """Of others nothing is there; the local user, who has no name, sees everything."""

    def __init__(self, path: str, store: Store, vault: Backups | None = None) -> None:
        self._database = Database(path, self._record)
        blobs = Blobs(store)
        self.refs = BackupRefs(self._database, vault)
        self.calls = Calls(self._database)
        self.holds = HeldCommands(self._database)
        self.once = OnceMarks(self._database)
        self.contents = DeferredDigests(self._database)
        self.entries = ChangeEntries(self._database, blobs, self.refs, self.contents)
        self.retention = Retention(self._database, blobs, self.refs)

    def owned_by(self, owner: str) -> "Journal":
        """The same record for an owner of calls."""
        view = copy.copy(self)
        view.owner = owner
        view.calls = Calls(self._database, owner)
        view.entries = self.entries.owned_by(owner)
        return view

    def owned(self, call: Call) -> Call:
        """A call as its owner's, whatever it says itself."""
        return replace(call, owner=self.owner) if self.owner and call.owner != self.owner else call

    def own_id(self, name: str) -> str:
        """The id of the call that the owner names so, whether there is one or not.

        Ids are unique in the record, because people answer by them. So what an owner calls `a` is kept under an
        id that no other owner can come to, and naming another's finds nothing.
        """
        if not self.owner or self.calls.has(name):
            return name
        return hashlib.sha256(f"{self.owner}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def path(self) -> str:
        """Where the record is."""
        return self._database.path

    @property
    def healed(self) -> str:
        """Says what was done when the record was found damaged; empty otherwise."""
        return self._database.healed

    def together(self) -> AbstractContextManager[object]:
        """One transaction for all that is recorded within the block."""
        return self._database.writing()

    def later(self, note: CallRecord) -> None:
        """Record a call that changed nothing, a moment from now; whoever asks for it before finds it."""
        self._database.behind.add(note)

    def _record(self, notes: Sequence[CallRecord]) -> None:
        try:
            with self._database.writing():
                for note in notes:
                    self.calls.record(note.call, note.result, note.started, note.ended)
                    self.entries.saw_all(note.call, note.sights)
        except HostError as failure:
            log.warning("%d calls are not in the log: %s", len(notes), failure)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        self.contents.settle()
        self._database.close()
