"""The journal's SQLite database, in WAL mode and shared by processes. Calls without changes are written later."""

import atexit
import errno
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import SEEK_CUR, FileIO
from pathlib import Path
from typing import Any, NamedTuple

from handtools.core.call import Call
from handtools.core.changes import Node
from handtools.core.errors import HostError, JournalDamaged
from handtools.core.result import Result

WRITE_DELAY_SECONDS = 0.2
"""Seconds until a queued record is written; a crash in that time loses it."""
MAX_WAITING_RECORDS, MAX_WAITING_BYTES = 256, 8 << 20
"""Limits of the queue: number of records, and total bytes of the files read in these calls."""


class CallRecord(NamedTuple):
    """Record of a finished call, the files that the agent read in it, and the strictest policy decision."""

    call: Call
    result: Result[Any]
    started: float
    ended: float
    read_nodes: Mapping[str, Node]
    verdict: str = ""
    """Verdict of the strictest decision; empty if no effect was judged."""
    rule: str = ""
    """Name of the rule that gave the verdict."""


class WriteBehind:
    """Queue of call records that a background thread writes; lookups find queued records too.

    The thread and an `atexit` handler exist only while the queue is not empty; a normal exit loses nothing.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._notes: dict[str, CallRecord] = {}
        self._read_nodes: dict[tuple[str, str, str], Node] = {}
        self._held = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._notes)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._notes

    def add(self, record: CallRecord) -> None:
        """Queue a record, unless one with the same call id is queued."""
        call = record.call
        with self._lock:
            self._notes.setdefault(call.id, record)
            for path, node in record.read_nodes.items():
                self._read_nodes[call.session_key, call.agent, path] = node
                self._held += len(node.data)
            full = len(self._notes) >= MAX_WAITING_RECORDS or self._held >= MAX_WAITING_BYTES
            self._start_thread()
        if full:
            self._write()

    def queued_read(self, call: Call, path: str) -> Node | None:
        """Return the content of a path as the agent last read it if that is still queued, or None."""
        return self._read_nodes.get((call.session_key, call.agent, path))

    def take(self) -> list[CallRecord]:
        """Empty the queue and return its records."""
        with self._lock:
            taken = list(self._notes.values())
            self._notes, self._read_nodes, self._held = {}, {}, 0
        return taken

    def _start_thread(self) -> None:
        # A forked process inherits the queue but not the thread.
        if self._thread is None or not self._thread.is_alive():
            atexit.register(self._write)
            self._thread = threading.Thread(
                target=self._write_until_empty, name="handtools-journal", daemon=True
            )
            self._thread.start()

    def _write_until_empty(self) -> None:
        while True:
            time.sleep(WRITE_DELAY_SECONDS)
            self._write()
            with self._lock:
                if not self._notes:
                    self._thread = None
                    atexit.unregister(self._write)
                    return


_WAL_HEADER_BYTES, _WAL_FRAME_HEADER_BYTES = 32, 24
_WAL_SALTS = slice(16, 24)
_FRAME_SALTS, _FRAME_COMMIT = slice(8, 16), slice(4, 8)


class JournalPosition(NamedTuple):
    """How far a journal was copied: the salts that identify its write-ahead log, and an offset in the log."""

    salts: bytes = b""
    offset: int = 0


class JournalCopy(NamedTuple):
    """The data written to a journal since a position."""

    position: JournalPosition
    """Position at the end of the copy."""
    database: bytes | None
    """The database file if the write-ahead log was restarted since (`log` is then complete), otherwise None."""
    log: bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return self.database is None and not self.log


SCHEMA_VERSION = 1
SQLITE_BUSY_SECONDS = 30.0
PRIVATE_FILE_MODE = 0o600
WAL_SUFFIXES = ("-wal", "-shm")
# A power failure can lose records of calls since the last durable transaction. Changes are recorded durably.
_SYNC_SOME_COMMITS, _SYNC_EVERY_COMMIT = "PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"
CHECKPOINT_WRITES = 400
"""Number of transactions after which the write-ahead log is checkpointed."""

# Users see the ids of calls, changes, versions and grants; AUTOINCREMENT never reuses the id of a deleted row.
JOURNAL_SCHEMA = """
CREATE TABLE calls (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, turn TEXT NOT NULL,
  agent TEXT NOT NULL, parent TEXT NOT NULL, tool TEXT NOT NULL, args TEXT NOT NULL,
  started REAL NOT NULL, ended REAL NOT NULL, status TEXT NOT NULL, code TEXT NOT NULL, result BLOB NOT NULL,
  owner TEXT NOT NULL DEFAULT '',
  meta TEXT NOT NULL DEFAULT '{}', -- the caller's metadata, as JSON
  verdict TEXT NOT NULL DEFAULT '', rule TEXT NOT NULL DEFAULT '' -- the strictest policy decision
);
CREATE INDEX calls_by_session ON calls (session, seq);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, call_id TEXT NOT NULL, ordinal INTEGER NOT NULL, session TEXT NOT NULL,
  turn TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, coverage TEXT NOT NULL,
  fingerprint TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, owner TEXT NOT NULL DEFAULT '',
  UNIQUE (call_id, ordinal)
);
CREATE INDEX entries_by_session ON entries (session, turn, id);
CREATE INDEX entries_open ON entries (id) WHERE state = 'intent';
CREATE TABLE touches (
  id INTEGER PRIMARY KEY AUTOINCREMENT, entry INTEGER NOT NULL, path TEXT NOT NULL, temporary TEXT NOT NULL,
  before_kind TEXT, before_digest TEXT, before_mode INTEGER, before_ref TEXT, before_bytes INTEGER,
  before_mtime REAL, -- NULL if nothing was there or the time is not known
  after_kind TEXT, after_digest TEXT, after_mode INTEGER, after_ref TEXT, after_bytes INTEGER, reverted_by INTEGER
);
CREATE INDEX touches_by_entry ON touches (entry);
CREATE INDEX touches_by_path ON touches (path, id);
CREATE TABLE file_syncs ( -- one row
  id INTEGER PRIMARY KEY CHECK (id = 1),
  boot TEXT NOT NULL, -- in which files are written without a sync; empty if each is synced
  entry INTEGER NOT NULL -- the files of this entry and all before it are on disk
);
CREATE TABLE reversals (entry INTEGER NOT NULL, touch INTEGER NOT NULL, PRIMARY KEY (entry, touch)) WITHOUT ROWID;
CREATE TABLE accepted_hunks (
  path TEXT NOT NULL, hunk TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (path, hunk)
) WITHOUT ROWID;
CREATE TABLE blobs (
  digest TEXT PRIMARY KEY, uses INTEGER NOT NULL, bytes INTEGER NOT NULL, kept INTEGER NOT NULL, data BLOB
);
CREATE TABLE backups (
  ref TEXT PRIMARY KEY, uses INTEGER NOT NULL, bytes INTEGER NOT NULL, present INTEGER NOT NULL,
  content TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE read_files (
  session TEXT, agent TEXT, path TEXT, digest TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (session, agent, path)
) WITHOUT ROWID;
CREATE TABLE shown_guidance (
  session TEXT, agent TEXT, process TEXT, path TEXT, at REAL NOT NULL,
  PRIMARY KEY (session, agent, process, path)
) WITHOUT ROWID;
CREATE TABLE callback_runs (
  call_id TEXT NOT NULL, name TEXT NOT NULL, result TEXT, -- NULL until the callback has returned
  at REAL NOT NULL, PRIMARY KEY (call_id, name)
) WITHOUT ROWID;
CREATE TABLE delegations (call_id TEXT PRIMARY KEY, depth INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE pending_commands (call_id TEXT PRIMARY KEY, ran TEXT NOT NULL, items TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE pending_approvals (
  call_id TEXT PRIMARY KEY, call TEXT NOT NULL, approval TEXT NOT NULL, granted TEXT NOT NULL, at REAL NOT NULL,
  owner TEXT NOT NULL DEFAULT ''
);
CREATE TABLE answered_approvals (
  call_id TEXT NOT NULL, fingerprint TEXT NOT NULL, title TEXT NOT NULL, rule TEXT NOT NULL, reply TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (call_id, fingerprint)
) WITHOUT ROWID;
CREATE TABLE grants (
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL,
  session TEXT NOT NULL, -- empty for the whole project
  line TEXT NOT NULL, call_id TEXT NOT NULL, granted_by TEXT NOT NULL DEFAULT '', at REAL NOT NULL,
  ends REAL, used_day INTEGER, revoked_at REAL
);
CREATE UNIQUE INDEX grants_in_effect ON grants (line, owner, session) WHERE revoked_at IS NULL;
CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
  header TEXT NOT NULL, salt BLOB NOT NULL, parts BLOB NOT NULL,
  digest BLOB NOT NULL -- SHA-256 of the previous digest and this row without its salt
);
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL, at REAL NOT NULL,
  role TEXT NOT NULL, body BLOB NOT NULL
);
CREATE TABLE audit_cursors (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE running_calls (
  call_id TEXT PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
  args TEXT NOT NULL, started REAL NOT NULL, seen REAL NOT NULL,
  output TEXT NOT NULL, output_bytes INTEGER NOT NULL, kept TEXT NOT NULL, cancelled_by TEXT NOT NULL,
  owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE claimed_replies (
  call_id TEXT PRIMARY KEY, reply TEXT NOT NULL, process TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE watchers (process TEXT PRIMARY KEY, seen REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE reply_waiters (
  call_id TEXT NOT NULL, process TEXT NOT NULL, seen REAL NOT NULL, PRIMARY KEY (call_id, process)
) WITHOUT ROWID;
"""
"""All tables. The last four describe running processes and are not needed after those have ended."""


def rows_of_owner(table: str, owner: str) -> str:
    """Return SQL that selects the rows of a table that belong to an owner; for the local user, all rows."""
    return (
        f"(SELECT * FROM {table} WHERE owner = CAST(x'{owner.encode().hex()}' AS TEXT))" if owner else table
    )


def path_to_column(name: str) -> str | bytes:
    """Convert a path to a column value: text, or bytes if it is not valid Unicode."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape")
    return name


def path_from_column(value: str | bytes) -> str:
    """Convert a column value back to a path."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


# Closing any descriptor of a file drops all POSIX locks that the process has on it, including SQLite's. Another
# process could then delete the write-ahead log that this one still writes. So the file is opened directly only
# while the process has no SQLite connection to it.
_connecting = threading.Lock()
_connections: Counter[str] = Counter()


class Database:
    """The SQLite connection of the journal: opened on first use, shared by threads under a lock."""

    def __init__(self, path: str, write: Callable[[Sequence[CallRecord]], None]) -> None:
        self.path = path
        self.behind = WriteBehind(self.catch_up)
        self._write = write
        self.healed: str = ""
        """Message about a damaged file that was set aside; empty if there was none."""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: FileIO | None = None
        self._writes = 0
        self._reads_only = False
        self._syncs_commits = False

    def catch_up(self) -> None:
        """Write the queued records, unless a transaction is open."""
        if self.behind:
            with self._lock:
                if self._connection is None or not self._connection.in_transaction:
                    self._write(self.behind.take())

    def peek(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Query one row without writing queued records first."""
        with self._lock:
            with self._convert_sqlite_errors():
                row: tuple[Any, ...] | None = self._open().execute(query, values).fetchone()
            return row

    def peek_number(self, query: str) -> int:
        """Query one number without writing queued records first; the query must return a row."""
        with self.peeking() as connection:
            return int(connection.execute(query).fetchone()[0])

    def data_version(self) -> int:
        """Return a number that changes when another connection writes."""
        return self.peek_number("PRAGMA data_version")

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection for queries without writing queued records first."""
        with self._lock, self._convert_sqlite_errors():
            yield self._open()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Write queued records, then provide a connection for queries; takes no write lock."""
        self.catch_up()
        return self.peeking()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Provide a connection in a transaction, which is committed at the end or rolled back on an exception.

        A `durable` transaction and all before it are on disk when it is committed. One inside another is not.
        """
        with self._lock:
            self.catch_up()
            with self._convert_sqlite_errors():
                if self._reads_only:
                    self._disconnect()  # reconnect: the file may have become writable since it was opened
                connection = self._open()
                if connection.in_transaction:
                    yield connection
                    return
                self._begin(connection, durable=durable)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    self._roll_back(connection)
                    raise

    def copied_since(self, position: JournalPosition) -> JournalCopy:
        """Return a copy of what was committed since a position; everything if the log was restarted since."""
        with self.writing():  # keeps other processes from writing
            log = Path(self.path + WAL_SUFFIXES[0])
            if not log.exists():
                return JournalCopy(JournalPosition(), self._whole_file(), b"")
            with log.open("rb") as file:
                header = file.read(_WAL_HEADER_BYTES)
                is_same = bool(header) and header[_WAL_SALTS] == position.salts
                start = position.offset if is_same else 0
                file.seek(start)
                frames = _committed_frames(header, file.read(), 0 if start else _WAL_HEADER_BYTES)
            whole = None if is_same else self._whole_file()
            return JournalCopy(JournalPosition(header[_WAL_SALTS], start + len(frames)), whole, frames)

    def _whole_file(self) -> bytes:
        """Read the database file through a descriptor that stays open as long as the connection."""
        if self._file is None:
            self._file = FileIO(self.path)
        self._file.seek(0)
        return self._file.readall()

    def _begin(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        self._writes += 1
        if self._writes >= CHECKPOINT_WRITES:
            # A failed checkpoint is tried again later; if the disk fails, BEGIN below reports it.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._writes = 0
        if durable != self._syncs_commits:
            connection.execute(_SYNC_EVERY_COMMIT if durable else _SYNC_SOME_COMMITS)
            self._syncs_commits = durable
        connection.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Write queued records and close the file; the next use reopens it."""
        self.catch_up()
        with self._lock:
            self._disconnect()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _convert_sqlite_errors(self) -> Iterator[None]:
        """Convert SQLite errors to `HostError`."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as failure:
            if self._connection is not None and not self._connection.in_transaction:
                # A failed operation can leave file locks that SQLite has lost track of; closing releases them.
                self._disconnect()
            raise _as_host_error(self.path, failure) from failure

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Roll back a failed transaction; if it stayed open, later writes would join it."""
        if not connection.in_transaction:
            return  # on a full or failing disk SQLite rolls back by itself
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        if self.path == ":memory:":
            return
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            _count_closed(self.path)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect_or_heal()
                self._syncs_commits = False
            except OSError as failure:
                raise _as_host_error(self.path, failure) from failure
            self._reads_only = _reads_only(self._connection)
        return self._connection

    def _connect_or_heal(self) -> sqlite3.Connection:
        # SQLite also reports a failed disk read as damage. A file that is really damaged fails twice.
        for is_second in (False, True):
            try:
                return _connect(self.path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as damage:
                if is_second:
                    self.healed = _set_aside(self.path, str(damage))
        return _connect(self.path)


def _as_host_error(path: str, failure: sqlite3.DatabaseError | OSError) -> HostError:
    if isinstance(failure, OSError):
        return _unusable_error(path, failure.strerror or str(failure), failure.errno)
    if isinstance(failure, sqlite3.OperationalError):
        name = getattr(failure, "sqlite_errorname", "")
        if name == "SQLITE_CANTOPEN" and (why := _lack_of_handles()):
            return _unusable_error(path, str(why.strerror), why.errno)
        return _unusable_error(path, str(failure), errno.ENOSPC if name == "SQLITE_FULL" else None)
    return JournalDamaged(
        f"The journal {path} is damaged, or its disk could not read it: {failure}. "
        "If calls can't be recorded in it, the next start sets it aside. "
        "`handtools doctor --deep` checks the whole file."
    )


_NEXT_STEPS: dict[int | None, str] = {
    errno.ENOSPC: "Free up space there, or set HANDTOOLS_STATE to a folder on another disk.",
    errno.EDQUOT: "Free up space there, or set HANDTOOLS_STATE to a folder on another disk.",
    errno.EROFS: "Set HANDTOOLS_STATE to a writable folder.",
    errno.EACCES: "Set HANDTOOLS_STATE to a writable folder.",
    errno.EMFILE: "Raise the limit of open files (`ulimit -n`), or stop programs that have many open.",
    errno.ENFILE: "Raise the limit of open files (`ulimit -n`), or stop programs that have many open.",
}


def _unusable_error(path: str, why: str, number: int | None) -> HostError:
    step = _NEXT_STEPS.get(number, "")
    return HostError(f"The journal {path} can't be used: {why}. {step}".rstrip())


def _lack_of_handles() -> OSError | None:
    """Return an error if too few file descriptors are free, which SQLite reports only as "can't open"; or None."""
    with ExitStack() as opened:
        try:
            for _ in ("", *WAL_SUFFIXES):
                opened.enter_context(FileIO(__file__))
        except OSError as refused:
            return refused
    return None


def _connect(path: str) -> sqlite3.Connection:
    with _connecting:
        if path != ":memory:":
            Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _connections[path]:
                _check_length(path)
            _make_private(path)
        _connections[path] += 1
    try:
        return _prepared_connection(path)
    except BaseException:
        _count_closed(path)
        raise


def _reads_only(connection: sqlite3.Connection) -> bool:
    """Whether SQLite has opened the file read-only, as it silently does if the file is not writable."""
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("UPDATE calls SET ended = ended WHERE 0")
    except sqlite3.OperationalError as refused:
        return refused.sqlite_errorname.startswith("SQLITE_READONLY")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_SECONDS * 1000:.0f}")
    return False


def _count_closed(path: str) -> None:
    with _connecting:
        _connections[path] -= 1


def _prepared_connection(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, SQLITE_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # `_begin` runs checkpoints
        connection.execute(_SYNC_SOME_COMMITS)
        connection.execute("PRAGMA cache_size = -8192")
        version = _schema_version(connection) or _create_tables(connection)
        if version != SCHEMA_VERSION:
            raise HostError(
                f"The journal {path} has schema version {version}, but this handtools uses version "
                f"{SCHEMA_VERSION}. Use the handtools that wrote it, or move the file away to start a new one."
            )
        # Read the pages that the next record is written to (the end of each table), to find damage now.
        for table in ("calls", "entries", "touches", "blobs", "sqlite_sequence"):
            connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _committed_frames(header: bytes, data: bytes, first: int) -> bytes:
    """Return the committed part of a write-ahead log whose frames start at `first`."""
    size = _WAL_FRAME_HEADER_BYTES + int.from_bytes(header[8:12])
    end = at = first
    # The newest frame may be followed by frames of an earlier log, which have other salts.
    while len(data) >= at + size and data[at : at + size][_FRAME_SALTS] == header[_WAL_SALTS]:
        is_commit = any(data[at : at + _WAL_FRAME_HEADER_BYTES][_FRAME_COMMIT])
        at += size
        end = at if is_commit else end
    return data[:end]


def write_copied_journal(path: str, copies: Sequence[tuple[bytes | None, bytes]]) -> None:
    """Rebuild a journal file from its copies, oldest first: the newest database file plus all later log parts."""
    newest = max(number for number, (database, _) in enumerate(copies) if database is not None)
    database = copies[newest][0]
    assert database is not None, "the first copy of a journal has the database file"
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file, data in (
        (path, database),
        (path + WAL_SUFFIXES[0], b"".join(log for _, log in copies[newest:])),
    ):
        Path(file).touch(PRIVATE_FILE_MODE)
        Path(file).write_bytes(data)


def _make_private(path: str) -> None:
    """Set the file's mode to 0600, whatever the umask; SQLite copies it to its WAL files."""
    with suppress(PermissionError):  # the file belongs to another user
        Path(path).touch(PRIVATE_FILE_MODE)
        for file in (Path(path), *(Path(path + suffix) for suffix in WAL_SUFFIXES)):
            with suppress(FileNotFoundError):  # the last process to close the journal deletes its WAL files
                if file.stat().st_mode & 0o077:
                    file.chmod(PRIVATE_FILE_MODE)


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _create_tables(connection: sqlite3.Connection) -> int:
    """Create the tables, unless another process has just done so; return the schema version."""
    connection.execute("BEGIN IMMEDIATE")
    if not _schema_version(connection):
        for statement in JOURNAL_SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
    return _schema_version(connection)


def _check_length(path: str) -> None:
    """Raise if the file is shorter than its SQLite header says."""
    file = Path(path)
    if not file.exists() or not (length := file.stat().st_size):
        return
    with file.open("rb") as opened:
        header = opened.read(100)
    if len(header) < 100:  # SQLite would take it for an empty database
        raise sqlite3.DatabaseError("its header is incomplete")
    # A page size stored as 1 means 65,536 bytes. No journal has it, so such a file is left to SQLite's own checks.
    page = int.from_bytes(header[16:18]) or 1
    # The page count in the header is only current when its change counter agrees (bytes 24 and 92).
    if header[24:28] != header[92:96]:
        return
    missing = range(length // page + 1, int.from_bytes(header[28:32]) + 1)
    # After an interrupted checkpoint the log still has the missing pages, and the next checkpoint writes them.
    if missing and not _pages_in_log(path, page).issuperset(missing):
        raise sqlite3.DatabaseError("it is shorter than it should be")


def _pages_in_log(path: str, page: int) -> set[int]:
    """Return the numbers of the pages in the write-ahead log."""
    log = Path(path + WAL_SUFFIXES[0])
    if not log.exists():
        return set()
    found = set()
    with log.open("rb") as file:
        header = file.read(_WAL_HEADER_BYTES)
        while len(frame := file.read(_WAL_FRAME_HEADER_BYTES)) == _WAL_FRAME_HEADER_BYTES:
            if frame[_FRAME_SALTS] != header[_WAL_SALTS]:
                break
            found.add(int.from_bytes(frame[:4]))
            file.seek(page, SEEK_CUR)
    return found


def _set_aside(path: str, damage: str) -> str:
    """Rename the damaged file so that a new one can be created; return a message about it."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    kept = f"{path}.damaged-{stamp}"
    for suffix in ("", *WAL_SUFFIXES):
        part = Path(path + suffix)
        if part.exists():
            part.rename(kept + suffix)
    return (
        f"The journal was damaged ({damage}). It was renamed to {kept} and a new one was created. "
        "No file in the workspace was changed, but calls recorded before can't be undone any more."
    )
