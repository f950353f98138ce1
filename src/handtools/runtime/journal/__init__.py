"""The journal: a record of calls, their file changes and the old bytes needed for undo."""

import copy
import hashlib
import logging
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from handtools.core.backups_locks_and_store import Backups, Store
from handtools.core.call import Call
from handtools.core.errors import HostError
from handtools.runtime.journal.approval_answers import ApprovalAnswers
from handtools.runtime.journal.backup_refs import BackupRefs, DeferredDigests
from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.calls import Calls, HeldCommands, LoggedCall, OnceMarks
from handtools.runtime.journal.change_entries import ChangeEntries, ChangeEntry, RecordedTouch
from handtools.runtime.journal.database import CallRecord, Database, JournalCopy, JournalPosition
from handtools.runtime.journal.retention import Retention, RetentionLimits
from handtools.runtime.journal.running_calls import OwnRunningCalls, RunningCalls

__all__ = [
    "CallRecord",
    "ChangeEntry",
    "Journal",
    "LoggedCall",
    "RecordedTouch",
    "RetentionLimits",
]

logger = logging.getLogger("handtools")


class Journal:
    """The journal of a workspace: calls, changes, blobs and grants in one database, as one owner sees them."""

    owner = ""
    """Owner whose records are visible; empty is the local user, who sees all."""

    def __init__(self, path: str, store: Store, vault: Backups | None = None) -> None:
        self._database = Database(path, self._record)
        blobs = Blobs(store)
        self.refs = BackupRefs(self._database, vault)
        self.calls = Calls(self._database)
        self.holds = HeldCommands(self._database)
        self.once = OnceMarks(self._database)
        self.contents = DeferredDigests(self._database)
        self.entries = ChangeEntries(self._database, blobs, self.refs, self.contents)
        self.running = RunningCalls(self._database)
        self.own_running = OwnRunningCalls(path)
        self.answers = ApprovalAnswers(self._database)
        self.retention = Retention(self._database, blobs, self.refs)

    def owned_by(self, owner: str) -> "Journal":
        """Return the same journal restricted to one owner's records."""
        view = copy.copy(self)
        view.owner = owner
        view.calls = Calls(self._database, owner)
        view.entries = self.entries.owned_by(owner)
        view.running = RunningCalls(self._database, owner)
        return view

    def owned(self, call: Call) -> Call:
        """Return the call with its owner set to this journal's owner."""
        return replace(call, owner=self.owner) if self.owner and call.owner != self.owner else call

    def own_id(self, name: str) -> str:
        """Return the stored call id for an id that the owner uses.

        Stored ids are unique. For named owners they are derived from owner and id, so that no owner can reach
        another's calls.
        """
        if not self.owner or self.calls.has(name):
            return name
        return hashlib.sha256(f"{self.owner}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def call_named(self, name: str) -> str:
        """Return the stored call id for an id, the number of a change, or the start of an id that only one has.

        What names no call is returned as it is: a refusal then speaks of what was sent.
        """
        if self.calls.has(name):
            return name
        numbered, own = self.call_of_change(name), self.own_id(name)
        if numbered or self.calls.has(own) or self.entries.selected("call", own):
            return numbered or own
        found = self.calls.find(name) if name else None
        return found.id if found else name

    def call_of_change(self, number: str) -> str:
        """Return the id of the call that made the change with a number, as answers name it; else empty."""
        digits = number.removeprefix("#")
        if not re.fullmatch(r"[0-9]{1,18}", digits) or self.calls.has(number):
            return ""
        return self.entries.own_call_of_entry(int(digits))

    @property
    def path(self) -> str:
        """Path of the database file."""
        return self._database.path

    def data_version(self) -> int:
        """Return a number that is another one after another process, or another connection, has written."""
        return self._database.data_version()

    @property
    def healed(self) -> str:
        """What was repaired when the database was found damaged; empty if nothing."""
        return self._database.healed

    def together(self) -> AbstractContextManager[object]:
        """One transaction for all that is recorded within the block."""
        return self._database.writing()

    def copied_since(self, position: JournalPosition) -> JournalCopy:
        """Copy what was recorded since a position, to keep it elsewhere."""
        return self._database.copied_since(position)

    def later(self, note: CallRecord) -> None:
        """Queue the record of a call that changed nothing, to be written soon; lookups find it at once."""
        self._database.behind.add(note)

    def _record(self, notes: Sequence[CallRecord]) -> None:
        try:
            with self._database.writing():
                for note in notes:
                    self.calls.record(note.call, note.result, note.started, note.ended)
                    self.entries.record_reads(note.call, note.sights)
        except HostError as failure:
            logger.warning("%d calls are not in the log: %s", len(notes), failure)

    def close(self) -> None:
        """Write queued records and close the database; the next use reopens it."""
        self.contents.settle()
        self.own_running.close()
        self._database.close()
