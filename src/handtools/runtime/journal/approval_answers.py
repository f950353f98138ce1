"""Answers to approval requests from any process: the first one counts, and who waits for it runs the call.

ADR 226.
"""

import json
import time
from dataclasses import asdict
from typing import Literal, NamedTuple

from handtools.core.approval import Reply
from handtools.core.call import new_call_id
from handtools.runtime.journal.database import Database
from handtools.runtime.journal.running_calls import STALE_SECONDS

ClaimKind = Literal["run", "awaited", "taken"]
"""Who runs the call after an answer: who gave it, a process that waits for it, or it was answered before."""


class AnswerClaim(NamedTuple):
    """What became of an answer, and the answer that counts."""

    kind: ClaimKind
    reply: Reply


class ApprovalAnswers:
    """Journal tables of answers that were given and of processes that watch or wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.holder = new_call_id()
        """Name of this process among those that answer, wait and watch."""

    def claim(self, call_id: str, reply: Reply) -> AnswerClaim:
        """Give an answer to a pending call, unless another one was given before.

        An answer whose process died before the call ran counts no more.
        """
        now = time.time()
        with self._database.writing() as connection:
            given = connection.execute(
                "SELECT reply, holder FROM answers WHERE call_id = ?1 AND (at > ?2 OR EXISTS "
                "(SELECT 1 FROM running WHERE call_id = ?1 AND seen > ?2))",
                (call_id, now - STALE_SECONDS),
            ).fetchone()
            if given is not None:
                kind: ClaimKind = "run" if given[1] == self.holder else "taken"
                return AnswerClaim(kind, Reply(**json.loads(given[0])))
            waiting = connection.execute(
                "SELECT holder FROM attendance WHERE call_id = ? AND seen > ? ORDER BY seen DESC",
                (call_id, now - STALE_SECONDS),
            ).fetchone()
            holder = self.holder if waiting is None else waiting[0]
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                (call_id, json.dumps(asdict(reply)), holder, now),
            )
        return AnswerClaim("run" if holder == self.holder else "awaited", reply)

    def given(self, call_id: str) -> Reply | None:
        """Return the answer that was given to a pending call and left to this process to act on, or None."""
        row = self._database.peek(
            "SELECT reply FROM answers WHERE call_id = ? AND holder = ?", (call_id, self.holder)
        )
        return None if row is None else Reply(**json.loads(row[0]))

    def answered(self) -> set[str]:
        """Return the ids of pending calls that have an answer, and now run or are about to."""
        since = time.time() - STALE_SECONDS
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT call_id FROM answers a WHERE at > ?1 OR EXISTS "
                "(SELECT 1 FROM running r WHERE r.call_id = a.call_id AND seen > ?1)",
                (since,),
            ).fetchall()
        return {str(row[0]) for row in rows}

    def attend(self, call_id: str = "") -> None:
        """Say that this process watches, or waits for the answer to a call; to be said again every second."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO attendance VALUES (?, ?, ?)", (call_id, self.holder, now)
            )
            connection.execute("DELETE FROM attendance WHERE seen < ?", (now - 10 * STALE_SECONDS,))

    def leave(self, call_id: str = "") -> None:
        """Say that this process watches, or waits for an answer, no longer."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM attendance WHERE call_id = ? AND holder = ?", (call_id, self.holder)
            )

    def calls_with_waiting_process(self) -> set[str]:
        """Return the ids of pending calls for whose answer a process waits, to go on at once."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT call_id FROM attendance WHERE call_id != '' AND seen > ?",
                (time.time() - STALE_SECONDS,),
            ).fetchall()
        return {str(row[0]) for row in rows}

    def is_watched(self) -> bool:
        """Whether a person watches this workspace now, in another process."""
        row = self._database.peek(
            "SELECT 1 FROM attendance WHERE call_id = '' AND holder != ? AND seen > ?",
            (self.holder, time.time() - STALE_SECONDS),
        )
        return row is not None
