"""Replies to approval requests from any process. The first one counts; a process waiting for it runs the call."""

import json
import time
from dataclasses import asdict
from typing import Literal, NamedTuple

from handtools.core.approval import Reply
from handtools.core.call import new_call_id
from handtools.runtime.journal.database import Database
from handtools.runtime.journal.running_calls import STALE_SECONDS

ClaimKind = Literal["run", "awaited", "taken"]
"""Process that runs the call after a reply: with `run` this one, with `awaited` one that waits for the reply.

With `taken`, an earlier reply counts, and its process runs the call.
"""


class AnswerClaim(NamedTuple):
    """Which process runs the call after a reply, and the reply that counts."""

    kind: ClaimKind
    reply: Reply


class ApprovalAnswers:
    """Journal tables of replies, of processes that show the workspace to a user, and of those awaiting a reply."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.process = new_call_id()
        """Id of this process in the tables."""

    def claim(self, call_id: str, reply: Reply) -> AnswerClaim:
        """Reply to a pending call, unless it already has a reply; return which process runs the call.

        A reply expires if the process that should run the call dies first.
        """
        now = time.time()
        with self._database.writing() as connection:
            given = connection.execute(
                "SELECT reply, process FROM claimed_replies WHERE call_id = ?1 AND (at > ?2 OR EXISTS "
                "(SELECT 1 FROM running_calls WHERE call_id = ?1 AND seen > ?2))",
                (call_id, now - STALE_SECONDS),
            ).fetchone()
            if given is not None:
                kind: ClaimKind = "run" if given[1] == self.process else "taken"
                return AnswerClaim(kind, Reply(**json.loads(given[0])))
            waiting = connection.execute(
                "SELECT process FROM reply_waiters WHERE call_id = ? AND seen > ? ORDER BY seen DESC",
                (call_id, now - STALE_SECONDS),
            ).fetchone()
            process = self.process if waiting is None else waiting[0]
            connection.execute(
                "INSERT OR REPLACE INTO claimed_replies VALUES (?, ?, ?, ?)",
                (call_id, json.dumps(asdict(reply)), process, now),
            )
        return AnswerClaim("run" if process == self.process else "awaited", reply)

    def given(self, call_id: str) -> Reply | None:
        """Return the reply to a pending call that this process must run, or None."""
        row = self._database.peek(
            "SELECT reply FROM claimed_replies WHERE call_id = ? AND process = ?", (call_id, self.process)
        )
        return None if row is None else Reply(**json.loads(row[0]))

    def answered(self) -> set[str]:
        """Return the ids of pending calls that have a reply and are running or about to run."""
        since = time.time() - STALE_SECONDS
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT call_id FROM claimed_replies a WHERE at > ?1 OR EXISTS "
                "(SELECT 1 FROM running_calls r WHERE r.call_id = a.call_id AND seen > ?1)",
                (since,),
            ).fetchall()
        return {str(row[0]) for row in rows}

    def watch(self) -> None:
        """Record that a user watches the workspace in this process; valid for `STALE_SECONDS`."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO watchers VALUES (?, ?)", (self.process, now))
            connection.execute("DELETE FROM watchers WHERE seen < ?", (now - 10 * STALE_SECONDS,))

    def stop_watching(self) -> None:
        """Record that no user watches the workspace in this process any more."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM watchers WHERE process = ?", (self.process,))

    def is_watched(self) -> bool:
        """Whether a user watches this workspace in another process."""
        row = self._database.peek(
            "SELECT 1 FROM watchers WHERE process != ? AND seen > ?",
            (self.process, time.time() - STALE_SECONDS),
        )
        return row is not None

    def wait(self, call_id: str) -> None:
        """Record that this process waits for the reply to a call; to be called every second."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO reply_waiters VALUES (?, ?, ?)", (call_id, self.process, now)
            )
            connection.execute("DELETE FROM reply_waiters WHERE seen < ?", (now - 10 * STALE_SECONDS,))

    def stop_waiting(self, call_id: str) -> None:
        """Record that this process no longer waits for the reply to a call."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM reply_waiters WHERE call_id = ? AND process = ?", (call_id, self.process)
            )

    def calls_with_waiting_process(self) -> set[str]:
        """Return the ids of pending calls that a process waits to run as soon as there is a reply."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT call_id FROM reply_waiters WHERE seen > ?", (time.time() - STALE_SECONDS,)
            ).fetchall()
        return {str(row[0]) for row in rows}
