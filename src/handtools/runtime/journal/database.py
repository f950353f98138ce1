"""The journal's SQLite database: WAL mode, shared by processes, with write-behind for calls without changes.

ADR 35, 120, 270, 295.
"""

import atexit
import errno
import math
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
"""Seconds that a queued record may wait; a crash can lose it meanwhile."""
MAX_WAITING_RECORDS, MAX_WAITING_BYTES = 256, 8 << 20
"""Most queued records, and most bytes that they may hold."""


class CallRecord(NamedTuple):
    """Record of a finished call and the files that the agent read in it."""

    call: Call
    result: Result[Any]
    started: float
    ended: float
    sights: Mapping[str, Node]


class WriteBehind:
    """Queue of call records to be written by a background thread; lookups find queued records too.

    The thread and an exit handler exist only while records wait, so that a normal exit loses nothing.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._notes: dict[str, CallRecord] = {}
        self._sights: dict[tuple[str, str, str], Node] = {}
        self._held = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._notes)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._notes

    def add(self, note: CallRecord) -> None:
        """Queue a record; the first one of a call id stays."""
        call = note.call
        with self._lock:
            self._notes.setdefault(call.id, note)
            for path, node in note.sights.items():
                self._sights[call.session_key, call.agent, path] = node
                self._held += len(node.data)
            full = len(self._notes) >= MAX_WAITING_RECORDS or self._held >= MAX_WAITING_BYTES
            self._start_thread()
        if full:
            self._write()

    def queued_read(self, call: Call, path: str) -> Node | None:
        """Return what an agent last read of a path if that is still queued, or None."""
        return self._sights.get((call.session_key, call.agent, path))

    def take(self) -> list[CallRecord]:
        """Empty the queue and return its records, for writing."""
        with self._lock:
            taken = list(self._notes.values())
            self._notes, self._sights, self._held = {}, {}, 0
        return taken

    def _start_thread(self) -> None:
        # A process that was forked has the notes and not the thread.
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
    """How far a journal was copied: which write-ahead log, and how many bytes of it."""

    salts: bytes = b""
    offset: int = 0


class JournalCopy(NamedTuple):
    """What a journal has gained since a position."""

    position: JournalPosition
    """How far the copy goes."""
    database: bytes | None
    """The whole file where a log has begun anew since; then `log` is that log from its beginning."""
    log: bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing was gained."""
        return self.database is None and not self.log


SCHEMA_VERSION = 6
SQLITE_BUSY_SECONDS = 30.0
PRIVATE_FILE_MODE = 0o600
WAL_SUFFIXES = ("-wal", "-shm")
CHECKPOINT_WRITES = 400
"""Number of transactions after which the write-ahead log is checkpointed."""

ONCE_SCHEMA = """CREATE TABLE once (
  scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (scope, name)
) WITHOUT ROWID;"""
LIVE_SCHEMA = """CREATE TABLE running (
  call_id TEXT PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
  args TEXT NOT NULL, started REAL NOT NULL, seen REAL NOT NULL,
  output TEXT NOT NULL, output_bytes INTEGER NOT NULL, kept TEXT NOT NULL, cancelled_by TEXT NOT NULL,
  owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE answers (
  call_id TEXT PRIMARY KEY, reply TEXT NOT NULL, holder TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE attendance (
  call_id TEXT NOT NULL, holder TEXT NOT NULL, seen REAL NOT NULL, PRIMARY KEY (call_id, holder)
) WITHOUT ROWID;"""
"""Tables of what is going on now; nothing in them is needed when every process has ended."""
JOURNAL_SCHEMA = f"""
CREATE TABLE calls (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, turn TEXT NOT NULL,
  agent TEXT NOT NULL, parent TEXT NOT NULL, tool TEXT NOT NULL, args TEXT NOT NULL,
  started REAL NOT NULL, ended REAL NOT NULL, status TEXT NOT NULL, code TEXT NOT NULL, result BLOB NOT NULL,
  owner TEXT NOT NULL DEFAULT ''
);
CREATE INDEX calls_by_session ON calls (session, seq);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, ordinal INTEGER NOT NULL, session TEXT NOT NULL,
  turn TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, coverage TEXT NOT NULL,
  fingerprint TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, owner TEXT NOT NULL DEFAULT '',
  UNIQUE (call_id, ordinal)
);
CREATE INDEX entries_by_session ON entries (session, turn, id);
CREATE INDEX entries_open ON entries (id) WHERE state = 'intent';
CREATE TABLE touches (
  id INTEGER PRIMARY KEY, entry INTEGER NOT NULL, path TEXT NOT NULL, temporary TEXT NOT NULL,
  before_kind TEXT, before_digest TEXT, before_mode INTEGER, before_ref TEXT, before_bytes INTEGER,
  after_kind TEXT, after_digest TEXT, after_mode INTEGER, after_ref TEXT, after_bytes INTEGER, reverted_by INTEGER
);
CREATE INDEX touches_by_entry ON touches (entry);
CREATE INDEX touches_by_path ON touches (path, id);
CREATE TABLE reversals (entry INTEGER NOT NULL, touch INTEGER NOT NULL, PRIMARY KEY (entry, touch)) WITHOUT ROWID;
CREATE TABLE blobs (
  digest TEXT PRIMARY KEY, uses INTEGER NOT NULL, bytes INTEGER NOT NULL, kept INTEGER NOT NULL, data BLOB
);
CREATE TABLE refs (
  ref TEXT PRIMARY KEY, uses INTEGER NOT NULL, bytes INTEGER NOT NULL, present INTEGER NOT NULL,
  content TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE holds (call_id TEXT PRIMARY KEY, ran TEXT NOT NULL, items TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE seen (
  session TEXT, agent TEXT, path TEXT, digest TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (session, agent, path)
) WITHOUT ROWID;
CREATE TABLE grants (
  session TEXT NOT NULL, remembered TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, remembered)
);
CREATE TABLE approvals (
  call_id TEXT PRIMARY KEY, call TEXT NOT NULL, approval TEXT NOT NULL, granted TEXT NOT NULL, at REAL NOT NULL,
  owner TEXT NOT NULL DEFAULT ''
);
{ONCE_SCHEMA}
{LIVE_SCHEMA}
"""
ADD_CONTENT_COLUMN = "ALTER TABLE refs ADD COLUMN content TEXT NOT NULL DEFAULT ''"
ADD_OWNER_COLUMNS = ";\n".join(
    f"ALTER TABLE {table} ADD COLUMN owner TEXT NOT NULL DEFAULT ''"
    for table in ("calls", "entries", "approvals")
)
SCHEMA_UPGRADES = {1: ONCE_SCHEMA, 2: ADD_CONTENT_COLUMN, 3: "", 4: ADD_OWNER_COLUMNS, 5: LIVE_SCHEMA}
"""SQL to upgrade from each older schema version; from 4 on, blobs may be deltas.

Calls recorded before version 5 belong to the local user.
"""


def rows_of_owner(table: str, owner: str) -> str:
    """Return the SQL for a table restricted to an owner's rows; all rows for the local user."""
    return (
        f"(SELECT * FROM {table} WHERE owner = CAST(x'{owner.encode().hex()}' AS TEXT))" if owner else table
    )


_NUMBERS_GIVEN = "numbers given"
"""Scope in the table `once` of the highest number that each table had given when rows were last deleted."""


def next_number(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of a table's next row, which no row had before, also none that was deleted."""
    numbers = connection.execute(
        f"SELECT coalesce(max(rowid), 0), coalesce((SELECT value FROM once WHERE scope = ? AND name = ?), 0) "
        f"FROM {table}",
        (_NUMBERS_GIVEN, table),
    ).fetchone()
    return max(map(int, numbers)) + 1


def keep_numbers_given(connection: sqlite3.Connection, *tables: str) -> None:
    """Note the highest numbers given, before rows of these tables are deleted; no age ends such a note."""
    for table in tables:
        row = (_NUMBERS_GIVEN, table, str(next_number(connection, table) - 1), math.inf)
        connection.execute("INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)", row)


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


# Closing any descriptor of a file takes all locks on it from the process, SQLite's too: another process then
# deletes the log that this one goes on to write. So the file is opened by itself only while no connection is.
_connecting = threading.Lock()
_connections: Counter[str] = Counter()


class Database:
    """The SQLite connection of the journal: opened on first use, shared by threads under a lock."""

    def __init__(self, path: str, write: Callable[[Sequence[CallRecord]], None]) -> None:
        self.path = path
        self.behind = WriteBehind(self.catch_up)
        self._write = write
        self.healed: str = ""
        """What was repaired when the file was found damaged; empty if nothing."""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: FileIO | None = None
        self._writes = 0
        self._reads_only = False

    def catch_up(self) -> None:
        """Write the queued records, unless a transaction is open."""
        if self.behind:
            with self._lock:
                if self._connection is None or not self._connection.in_transaction:
                    self._write(self.behind.take())

    def peek(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Query one row without writing queued records first."""
        with self._lock:
            with self._explained():
                row: tuple[Any, ...] | None = self._open().execute(query, values).fetchone()
            return row

    def peek_number(self, query: str) -> int:
        """Query one number, which there always is, without writing queued records first."""
        with self.peeking() as connection:
            return int(connection.execute(query).fetchone()[0])

    def data_version(self) -> int:
        """Return a number that is another one after another connection has written."""
        return self.peek_number("PRAGMA data_version")

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Connection for queries without writing queued records first."""
        with self._lock, self._explained():
            yield self._open()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Connection for queries, after writing queued records; takes no write lock."""
        self.catch_up()
        return self.peeking()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with self._lock:
            self.catch_up()
            with self._explained():
                if self._reads_only:
                    self._disconnect()  # opened so while the disk refused; it may be well again
                connection = self._open()
                if connection.in_transaction:
                    yield connection
                    return
                self._begin(connection)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    self._roll_back(connection)
                    raise

    def copied_since(self, position: JournalPosition) -> JournalCopy:
        """Copy what was committed since a position; all of it, where the log has begun anew since."""
        with self.writing():  # nobody writes meanwhile
            log = Path(self.path + WAL_SUFFIXES[0])
            if not log.exists():
                return JournalCopy(JournalPosition(), self._whole_file(), b"")
            with log.open("rb") as file:
                header = file.read(_WAL_HEADER_BYTES)
                is_same = bool(header) and header[_WAL_SALTS] == position.salts
                start = position.offset if is_same else 0
                file.seek(start)
                frames = _committed(header, file.read(), 0 if start else _WAL_HEADER_BYTES)
            whole = None if is_same else self._whole_file()
            return JournalCopy(JournalPosition(header[_WAL_SALTS], start + len(frames)), whole, frames)

    def _whole_file(self) -> bytes:
        """Read the file through a descriptor that is closed with the connection, and not before."""
        if self._file is None:
            self._file = FileIO(self.path)
        self._file.seek(0)
        return self._file.readall()

    def _begin(self, connection: sqlite3.Connection) -> None:
        self._writes += 1
        if self._writes >= CHECKPOINT_WRITES:
            with suppress(
                sqlite3.OperationalError
            ):  # it can wait; whether this can be written is said below
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._writes = 0
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
    def _explained(self) -> Iterator[None]:
        """Context manager that converts SQLite errors to `HostError`."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as failure:
            if self._connection is not None and not self._connection.in_transaction:
                # What failed may have left locks that SQLite no longer knows of: they go with the connection.
                self._disconnect()
            raise _explanation(self.path, failure) from failure

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """End a transaction that failed; one left open would swallow all that follows."""
        if not connection.in_transaction:
            return  # a full or failing disk has ended it already
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
            except OSError as failure:
                raise _explanation(self.path, failure) from failure
            self._reads_only = _reads_only(self._connection)
        return self._connection

    def _connect_or_heal(self) -> sqlite3.Connection:
        # A read that the disk refuses is damage to SQLite, too; a damaged file is so the second time as well.
        for is_second in (False, True):
            try:
                return _connect(self.path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as damage:
                if is_second:
                    self.healed = _set_aside(self.path, str(damage))
        return _connect(self.path)


def _explanation(path: str, failure: sqlite3.DatabaseError | OSError) -> HostError:
    if isinstance(failure, OSError):
        return _unusable(path, failure.strerror or str(failure), failure.errno)
    if isinstance(failure, sqlite3.OperationalError):
        name = getattr(failure, "sqlite_errorname", "")
        if name == "SQLITE_CANTOPEN" and (why := _lack_of_handles()):
            return _unusable(path, str(why.strerror), why.errno)
        return _unusable(path, str(failure), errno.ENOSPC if name == "SQLITE_FULL" else None)
    return JournalDamaged(
        f"The journal {path} is damaged, or its disk could not read it: {failure}. "
        "The next start sets it aside if calls can't be recorded in it; "
        "`handtools doctor --deep` looks at all of it."
    )


_NEXT_STEPS: dict[int | None, str] = {
    errno.ENOSPC: "Make room there, or set HANDTOOLS_STATE to a folder elsewhere.",
    errno.EDQUOT: "Make room there, or set HANDTOOLS_STATE to a folder elsewhere.",
    errno.EROFS: "Set HANDTOOLS_STATE to a folder that can be written to.",
    errno.EACCES: "Set HANDTOOLS_STATE to a folder that can be written to.",
    errno.EMFILE: "Raise the limit of open files (`ulimit -n`), or end what has them open.",
    errno.ENFILE: "Raise the limit of open files (`ulimit -n`), or end what has them open.",
}


def _unusable(path: str, why: str, number: int | None) -> HostError:
    step = _NEXT_STEPS.get(number, "")
    return HostError(f"The journal {path} can't be used: {why}. {step}".rstrip())


def _lack_of_handles() -> OSError | None:
    """Why the journal's files can't all be opened now; SQLite does not tell that from a missing folder."""
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
    """Whether SQLite has opened the file for reading alone, as it does without a word when it can't otherwise."""
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("UPDATE once SET at = at WHERE 0")
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
        connection.execute(
            "PRAGMA wal_autocheckpoint = 0"
        )  # when, and on whose time, is for `writing` to say
        # A power cut may cost the newest records, never a file's bytes: those are synced by the host.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -8192")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < SCHEMA_VERSION:
            _create(connection)
        elif version > SCHEMA_VERSION:
            raise HostError(f"The journal {path} was written by a newer handtools. Update handtools.")
        # Where the next call is recorded: the end of each table, which no index stands for.
        for table in ("calls", "entries", "touches", "blobs"):
            connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _committed(header: bytes, data: bytes, first: int) -> bytes:
    """The part of a write-ahead log, with frames from `first` on, that was committed."""
    size = _WAL_FRAME_HEADER_BYTES + int.from_bytes(header[8:12])
    end = at = first
    # Behind the newest frame there may be some of an earlier log, with other salts.
    while len(data) >= at + size and data[at : at + size][_FRAME_SALTS] == header[_WAL_SALTS]:
        is_commit = any(data[at : at + _WAL_FRAME_HEADER_BYTES][_FRAME_COMMIT])
        at += size
        end = at if is_commit else end
    return data[:end]


def write_copied_journal(path: str, copies: Sequence[tuple[bytes | None, bytes]]) -> None:
    """Put a journal together from copies in order: the newest whole database, and the logs from it on."""
    newest = max(number for number, (database, _) in enumerate(copies) if database is not None)
    database = copies[newest][0]
    assert database is not None, "the first copy of a journal is a whole one"
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file, data in (
        (path, database),
        (path + WAL_SUFFIXES[0], b"".join(log for _, log in copies[newest:])),
    ):
        Path(file).touch(PRIVATE_FILE_MODE)
        Path(file).write_bytes(data)


def _make_private(path: str) -> None:
    """Set the file's mode to 0600, whatever the umask; SQLite copies it to its WAL files."""
    with suppress(PermissionError):  # another user's: then it is theirs to close
        Path(path).touch(PRIVATE_FILE_MODE)
        for file in (Path(path), *(Path(path + suffix) for suffix in WAL_SUFFIXES)):
            with suppress(FileNotFoundError):  # whoever closes it last deletes its WAL files
                if file.stat().st_mode & 0o077:
                    file.chmod(PRIVATE_FILE_MODE)


def _create(connection: sqlite3.Connection) -> None:
    """Create missing tables; safe when other processes do the same."""
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    scripts = (
        [SCHEMA_UPGRADES[each] for each in range(version, SCHEMA_VERSION)] if version else [JOURNAL_SCHEMA]
    )
    for statement in (each for script in scripts for each in script.split(";\n")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {max(version, SCHEMA_VERSION)}")
    connection.execute("COMMIT")


def _check_length(path: str) -> None:
    """Raise if the file is shorter than its SQLite header says."""
    file = Path(path)
    if not file.exists() or not (length := file.stat().st_size):
        return
    with file.open("rb") as opened:
        header = opened.read(100)
    if len(header) < 100:  # SQLite would take it for an empty file
        raise sqlite3.DatabaseError("it has no whole header")
    # 1 stands for 65,536, a size that no journal has: SQLite looks at such a file by itself.
    page = int.from_bytes(header[16:18]) or 1
    # The page count in the header is only current when its change counter agrees (bytes 24 and 92).
    if header[24:28] != header[92:96]:
        return
    missing = range(length // page + 1, int.from_bytes(header[28:32]) + 1)
    # A checkpoint that was interrupted has them in the log still, and the next one brings them.
    if missing and not _pages_in_log(path, page).issuperset(missing):
        raise sqlite3.DatabaseError("it is shorter than it should be")


def _pages_in_log(path: str, page: int) -> set[int]:
    """The numbers of the pages that the write-ahead log has."""
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
    """Rename the damaged file so that a new one can be made; return a sentence about it."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    kept = f"{path}.damaged-{stamp}"
    for suffix in ("", *WAL_SUFFIXES):
        part = Path(path + suffix)
        if part.exists():
            part.rename(kept + suffix)
    return (
        f"The journal was damaged ({damage}); it is kept as {kept} and a new one was begun. "
        "No file of the workspace was touched; calls recorded before can't be undone any more."
    )
