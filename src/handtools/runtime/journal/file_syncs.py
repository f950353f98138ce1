"""Which changed files are known to be on disk, so that a start after a power failure checks only the others."""

import logging
import threading
from collections.abc import Callable, Collection

from handtools.core.errors import HandtoolsError
from handtools.runtime.journal.change_entries import ChangeEntries
from handtools.runtime.journal.database import Database

SYNC_DELAY_SECONDS = 5.0
"""Seconds from a change until its files are synced in the background, together with later changes."""
MAX_UNSYNCED_ENTRIES = 512
"""Most entries to check after a power failure. Short-lived processes sync when there are more."""

logger = logging.getLogger("handtools")
Sync = Callable[[Collection[str]], None]


class FileSyncs:
    """The boot in which files are written without a sync, and the last entry whose files were synced since.

    A process that ends before its sync leaves it to the next change, of any process.
    """

    def __init__(self, database: Database, entries: ChangeEntries) -> None:
        self._database = database
        self._entries = entries
        self._boot: str | None = None
        self._synced = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_wanted = False
        self._stop = threading.Event()

    def is_in_boot(self, boot: str) -> bool:
        """Whether the files of earlier boots were checked; False for an unknown boot, the empty string."""
        if boot and self._boot != boot:
            self._boot, self._synced = self.recorded()
        return bool(boot) and self._boot == boot

    def recorded(self) -> tuple[str | None, int]:
        """Return the recorded boot, None in a new journal, and the last entry whose files were synced."""
        row = self._database.peek("SELECT boot, entry FROM file_syncs", ())
        return (None, 0) if row is None else (str(row[0]), int(row[1]))

    def record(self, boot: str, entry: int) -> None:
        """Record that the files of all entries up to this one were synced, or checked, in this boot."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO file_syncs VALUES (1, ?, ?)", (boot, entry))
        self._boot, self._synced = boot, entry

    def sync_later(self, entry: int, sync: Sync) -> None:
        """Sync the files of an entry, and of those before it, in a few seconds; at once if they are too many."""
        if entry - self._synced > MAX_UNSYNCED_ENTRIES:
            self.sync_now(sync)
            return
        with self._lock:
            self._is_wanted = True
            # A forked process inherits this object but not the thread.
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(
                    target=self._sync_while_wanted, args=(sync,), name="handtools-file-syncs", daemon=True
                )
                self._thread.start()

    def sync_now(self, sync: Sync) -> None:
        """Sync the files of all finished entries that were not synced. Logs an error; a later sync retries."""
        boot, synced = self.recorded()
        newest = self._entries.newest_finished()
        if not boot or newest <= synced:
            return
        try:
            sync(self._entries.paths_since(synced)[1])
        except OSError as failure:
            logger.warning("Changed files could not be synced to disk: %s", failure)
            return
        self.record(boot, newest)

    def close(self) -> None:
        """End the thread without waiting for its delay."""
        with self._lock:
            thread = self._thread
        if thread is not None and thread.is_alive():
            self._stop.set()
            thread.join()

    def _sync_while_wanted(self, sync: Sync) -> None:
        while not self._stop.wait(SYNC_DELAY_SECONDS):
            with self._lock:
                self._is_wanted = False
            try:
                self.sync_now(sync)
            except HandtoolsError as failure:
                logger.warning("Changed files could not be synced to disk: %s", failure)
            with self._lock:
                if not self._is_wanted:
                    self._thread = None
                    return
