"""Running calls with the end of their output, so that other processes can show and cancel them.

Calls that end almost at once are never written.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handtools.core.call import Call
from handtools.core.errors import HostError
from handtools.runtime.journal.database import Database, rows_of_owner

NOTICED_AFTER_SECONDS = 0.25
"""Seconds after which a running call is written to the journal, and between updates of its output."""
HEARTBEAT_SECONDS = 1.0
STALE_SECONDS = 6.0
"""Seconds without a heartbeat after which a process counts as dead."""
FORGOTTEN_SECONDS = 3600.0
_COLUMNS = (
    "call_id, session, turn, agent, tool, args, started, seen, output, output_bytes, kept, cancelled_by"
)


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that runs in any process, as recorded in the journal."""

    id: str
    session: str
    turn: str
    agent: str
    tool: str
    args: Mapping[str, Any]
    started: float
    seen: float
    """Time of the last heartbeat of the process that runs it."""
    output: str
    """The end of its output so far."""
    output_bytes: int
    """Total size of its output so far."""
    kept: str
    """Name of the stored output; empty while the output is short."""
    cancelled_by: str
    """Name of whoever asked to cancel the call; empty if it was not cancelled."""


@dataclass(slots=True, eq=False)
class _OwnCall:
    call: Call
    cancel: Callable[[], None]
    started: float
    output: str = ""
    output_bytes: int = 0
    kept: str = ""
    written: float = 0.0
    """Time of the last write; 0 if it was never written."""
    has_news: bool = False

    def is_due(self, now: float) -> bool:
        if not self.written:
            return now - self.started >= NOTICED_AFTER_SECONDS
        return self.has_news or now - self.written >= HEARTBEAT_SECONDS

    def row(self, now: float) -> tuple[Any, ...]:
        call = self.call
        facts = (call.id, call.session, call.turn, call.agent, call.tool, json.dumps(dict(call.args)))
        return (*facts, self.started, now, self.output, self.output_bytes, self.kept, "", call.owner)


class RunningCalls:
    """Journal table of the running calls of all processes."""

    def __init__(self, database: Database, owner: str = "") -> None:
        self._database = database
        self._rows = rows_of_owner("running_calls", owner)

    def listed(self) -> list[RunningCall]:
        """List the running calls of all processes, the newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM {self._rows} WHERE seen > ? ORDER BY started DESC",
                (time.time() - STALE_SECONDS,),
            ).fetchall()
        values: list[list[Any]] = [[*row[:5], json.loads(row[5]), *row[6:]] for row in rows]
        return [RunningCall(*each) for each in values]

    def request_cancel(self, call_id: str, by: str) -> bool:
        """Ask the process that runs a call to cancel it; return False if no process runs it."""
        with self._database.writing() as connection:
            asked = connection.execute(
                "UPDATE running_calls SET cancelled_by = ? WHERE call_id IN "
                f"(SELECT call_id FROM {self._rows} WHERE call_id = ? AND seen > ?)",
                (by, call_id, time.time() - STALE_SECONDS),
            )
            return asked.rowcount > 0


class OwnRunningCalls:
    """The running calls of this process, which a thread writes to the journal.

    The thread has a separate connection, so that calls don't wait for it. It ends with the last call.
    """

    def __init__(self, path: str) -> None:
        self._database = Database(path, lambda _: None)
        self._own: dict[str, _OwnCall] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, call: Call, cancel: Callable[[], None]) -> None:
        """Add a running call; `cancel` is called from another thread when another process asks to cancel it."""
        if self._database.path == ":memory:":
            return
        with self._lock:
            self._own[call.id] = _OwnCall(call, cancel, time.time())
            # A forked process does not inherit the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._write_while_running, name="handtools-running-calls", daemon=True
                )
                self._thread.start()

    def progress(self, call_id: str, text: str, size: int, kept: str) -> None:
        """Set the end of a running call's output, its total size, and the name it is stored under."""
        if own := self._own.get(call_id):
            own.output, own.output_bytes, own.kept, own.has_news = text, size, kept, True

    def end(self, call_id: str) -> None:
        """Remove a call that has ended."""
        with self._lock:
            own = self._own.pop(call_id, None)
            if own is not None and own.written:
                self._ended.add(call_id)

    def close(self) -> None:
        """Delete the ended calls of this process from the table and close the thread's connection."""
        try:
            self._write()
        except HostError:
            return  # without heartbeats the calls soon count as dead
        finally:
            self._database.close()

    def _write_while_running(self) -> None:
        while True:
            time.sleep(NOTICED_AFTER_SECONDS)
            try:
                self._write()
            except HostError:
                continue  # for example a full disk or a locked journal: try again in the next round
            with self._lock:
                if not self._own and not self._ended:
                    self._thread = None
                    self._database.close()
                    return

    def _write(self) -> None:
        now = time.time()
        with self._lock:
            due = [own for own in self._own.values() if own.is_due(now)]
            ended = list(self._ended)
            for own in due:
                own.written, own.has_news = now, False
        if due or ended:
            with self._database.writing() as connection:
                connection.executemany(
                    "DELETE FROM running_calls WHERE call_id = ?", [(each,) for each in ended]
                )
                connection.executemany(
                    f"INSERT INTO running_calls ({_COLUMNS}, owner) VALUES ({', '.join('?' * 13)}) "
                    "ON CONFLICT (call_id) DO UPDATE SET seen = excluded.seen, output = excluded.output, "
                    "output_bytes = excluded.output_bytes, kept = excluded.kept",
                    [own.row(now) for own in due],
                )
                connection.execute("DELETE FROM running_calls WHERE seen < ?", (now - FORGOTTEN_SECONDS,))
        with self._lock:
            self._ended.difference_update(ended)
        self._cancel_requested()

    def _cancel_requested(self) -> None:
        if not any(own.written for own in tuple(self._own.values())):
            return
        with self._database.peeking() as connection:
            asked = connection.execute(
                "SELECT call_id FROM running_calls WHERE cancelled_by != ''"
            ).fetchall()
        for (call_id,) in asked:
            if own := self._own.get(call_id):
                own.cancel()
