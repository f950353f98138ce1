"""Contents: digests of large things, worked out a moment after the call that moved them.

Only who asks for one waits for it: to hash a file takes half as long as to edit it.
"""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from handtools.core.changes import digest
from handtools.core.errors import HostError
from handtools.core.ports import Step
from handtools.runtime.journal.blobs import kept_in_record
from handtools.runtime.journal.database import Database, storable

SECONDS = 0.2
"""How long the bytes may wait to be hashed: what a crash can lose is that a file was only saved again."""
BYTES = 64 << 20
"""How much may wait; beyond that it is hashed at once."""


@dataclass(slots=True)
class _Waiting:
    """Bytes, and the thread that is to hash them."""

    data: Mapping[str, bytes]
    wanted: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def done(self) -> None:
        """Wait until they are hashed, which is then done at once."""
        self.wanted.set()
        if self.thread is not None:
            self.thread.join()


class Contents:
    """What the vault is to have, by the digest of its bytes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, _Waiting] = {}
        self._lock = threading.Lock()

    def work_out(self, steps: Iterable[Step]) -> None:
        """Have digests noted of the files whose bytes are at hand, and not on record; most changes have none."""
        nodes = [node for step in steps for node in (step.change.before, step.change.after)]
        data = {
            node.held.ref: node.data
            for node in nodes
            if node and node.held and node.kind == "file" and node.data and not kept_in_record(node)
        }
        with self._lock:
            waiting = _Waiting({ref: each for ref, each in data.items() if ref not in self._waiting})
            if not waiting.data:
                return
            self._waiting |= dict.fromkeys(waiting.data, waiting)
            if sum(len(each.data[ref]) for ref, each in self._waiting.items()) > BYTES:
                waiting.wanted.set()
            waiting.thread = threading.Thread(target=self._note, args=(waiting,), name="handtools-contents")
            waiting.thread.start()

    def of(self, ref: str) -> str:
        """The digest of a thing; empty when nobody knows. Not to be asked within a transaction."""
        with self._lock:
            waiting = self._waiting.get(ref)
        if waiting is not None:
            waiting.done()
        return self._noted(ref)

    def settle(self) -> None:
        """Wait until all is noted."""
        with self._lock:
            every = list(self._waiting.values())
        for waiting in every:
            waiting.done()

    def _noted(self, ref: str) -> str:
        row = self._database.peek("SELECT content FROM refs WHERE ref = ?", (storable(ref),))
        return "" if row is None else str(row[0])

    def _note(self, waiting: _Waiting) -> None:
        waiting.wanted.wait(SECONDS)
        # Where it can't be noted, a file that is saved again counts as changed: no reason to stop anyone.
        with suppress(HostError):
            unknown = {ref: data for ref, data in waiting.data.items() if not self._noted(ref)}
            rows = [(digest(data), storable(ref)) for ref, data in unknown.items()]
            with self._database.writing() as connection:
                connection.executemany("UPDATE refs SET content = ? WHERE ref = ?", rows)
        with self._lock:
            for ref in waiting.data:
                del self._waiting[ref]
