"""Writing behind: records of calls that changed nothing wait for each other, and no caller waits for them."""

import atexit
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from handtools.core.call import Call
from handtools.core.changes import Node
from handtools.core.result import Result

SECONDS = 0.2
"""How long a record may wait: what a crash can lose."""
NOTES, BYTES = 256, 8 << 20
"""How many records may wait, and how much they may hold on to."""


class Note(NamedTuple):
    """How a call ended, and what the agent saw in it."""

    call: Call
    result: Result[Any]
    started: float
    ended: float
    sights: Mapping[str, Node]


class Behind:
    """What is still to be written, found by the same keys as what is.

    The thread lives only while something waits. So does the promise to write at exit: a process that ends in
    order loses nothing.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._notes: dict[str, Note] = {}
        self._sights: dict[tuple[str, str, str], Node] = {}
        self._held = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._notes)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._notes

    def add(self, note: Note) -> None:
        """Let a record wait; the first ending of an id stays."""
        call = note.call
        with self._lock:
            self._notes.setdefault(call.id, note)
            for path, node in note.sights.items():
                self._sights[call.session_key, call.agent, path] = node
                self._held += len(node.data)
            full = len(self._notes) >= NOTES or self._held >= BYTES
            self._see_to_it()
        if full:
            self._write()

    def sight(self, call: Call, path: str) -> Node | None:
        """What an agent last saw of a path, if that is still to be written."""
        return self._sights.get((call.session_key, call.agent, path))

    def take(self) -> list[Note]:
        """Give what waits, to be written now; whoever looks for it meanwhile waits for the database."""
        with self._lock:
            taken = list(self._notes.values())
            self._notes, self._sights, self._held = {}, {}, 0
        return taken

    def _see_to_it(self) -> None:
        # A process that was forked has the notes and not the thread.
        if self._thread is None or not self._thread.is_alive():
            atexit.register(self._write)
            self._thread = threading.Thread(target=self._tend, name="handtools-journal", daemon=True)
            self._thread.start()

    def _tend(self) -> None:
        while True:
            time.sleep(SECONDS)
            self._write()
            with self._lock:
                if not self._notes:
                    self._thread = None
                    atexit.unregister(self._write)
                    return
