"""The journal: calls, their file changes, and the previous content of files for undo."""

import copy
import hashlib
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from handtools.core.backups_locks_and_store import Backups, Store
from handtools.core.call import Call
from handtools.core.errors import HostError
from handtools.core.undo import is_change_number
from handtools.runtime.journal.approval_answers import ApprovalAnswers
from handtools.runtime.journal.backup_refs import BackupRefs, DeferredDigests
from handtools.runtime.journal.blobs import Blobs
from handtools.runtime.journal.calls import CallbackRuns, Calls, LoggedCall, PendingCommands, ShownGuidance
from handtools.runtime.journal.change_entries import ChangeEntries, ChangeEntry, RecordedTouch
from handtools.runtime.journal.database import CallRecord, Database, JournalCopy, JournalPosition
from handtools.runtime.journal.file_syncs import FileSyncs
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

MIN_ID_PREFIX_CHARS = 4


class Journal:
    """The journal of a workspace in one database, restricted to the records that one owner may see."""

    owner = ""
    """Owner whose records are visible; empty for the local user, to whom all records are visible."""

    def __init__(self, path: str, store: Store, backups: Backups | None = None) -> None:
        self._database = Database(path, self._write_queued)
        blobs = Blobs(store)
        self.refs = BackupRefs(self._database, backups)
        self.calls = Calls(self._database)
        self.pending_commands = PendingCommands(self._database)
        self.callback_runs = CallbackRuns(self._database)
        self.shown_guidance = ShownGuidance(self._database)
        self.contents = DeferredDigests(self._database)
        self.entries = ChangeEntries(self._database, blobs, self.refs, self.contents)
        self.file_syncs = FileSyncs(self._database, self.entries)
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
        """Return the id under which a call is stored, given the id that its owner uses.

        For a named owner, the stored id is derived from the owner and the id, so that owners can't reach each
        other's calls.
        """
        if not self.owner or self.calls.has(name):
            return name
        return hashlib.sha256(f"{self.owner}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def calls_named(self, name: str) -> list[str]:
        """List the stored ids of the calls that a name fits: none if it is unknown, several if it is ambiguous.

        A number, with or without `#`, is the number of a change, never the start of an id. Any other name is an
        id, or the first characters of one, at least `MIN_ID_PREFIX_CHARS`.
        """
        own = self.own_id(name)
        if is_change_number(name) and (made := self.entries.own_call_of_entry(int(name.lstrip("#")))):
            return [made]
        if self.calls.has(own) or self.entries.selected("call", own):
            return [own]
        if is_change_number(name) or len(name) < MIN_ID_PREFIX_CHARS:
            return []
        return self.calls.ids_with_prefix(name)

    @property
    def path(self) -> str:
        """Path of the database file."""
        return self._database.path

    def data_version(self) -> int:
        """Return a number that changes when another process or connection writes."""
        return self._database.data_version()

    @property
    def healed(self) -> str:
        """Message about a damaged database that was set aside; empty if there was none."""
        return self._database.healed

    def together(self) -> AbstractContextManager[object]:
        """Provide one transaction for everything recorded in the `with` block."""
        return self._database.writing()

    def copied_since(self, position: JournalPosition) -> JournalCopy:
        """Return a copy of what was recorded since a position, for storing elsewhere."""
        return self._database.copied_since(position)

    def record(self, record: CallRecord) -> None:
        """Record a finished call, its result and the files that the agent read in it, in one transaction."""
        with self._database.writing():
            self.calls.record(
                record.call,
                record.result,
                record.started,
                record.ended,
                verdict=record.verdict,
                rule=record.rule,
            )
            self.entries.record_reads(record.call, record.read_nodes)

    def record_later(self, record: CallRecord) -> None:
        """Queue the record of a call without changes, to be written soon; lookups find it at once."""
        self._database.behind.add(record)

    def _write_queued(self, records: Sequence[CallRecord]) -> None:
        try:
            with self._database.writing():
                for record in records:
                    self.record(record)
        except HostError as failure:
            logger.warning("%d calls could not be logged: %s", len(records), failure)

    def close(self) -> None:
        """Write queued records and close the database; the next use reopens it."""
        self.file_syncs.close()
        self.contents.settle()
        self.own_running.close()
        self._database.close()
