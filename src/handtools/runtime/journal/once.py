"""Once: what is to happen one time in a session, or for a call, however often it is tried."""

import time

from handtools.core.call import Call, new_id
from handtools.runtime.journal.database import Database, storable

UNNAMED = "default"
"""The session of callers that name none: each run of the program is one of its own."""


class Once:
    """Marks that outlive the process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._run = new_id()

    def in_session(self, call: Call, name: str) -> bool:
        """Whether this is the first time for the agent of a call in its session; from now on it is not."""
        run = self._run if call.session == UNNAMED else ""
        return self.begin(f"session {call.session_key}\n{call.agent}\n{run}", name)

    def begin(self, scope: str, name: str) -> bool:
        """Whether nobody has begun it; from now on somebody has."""
        with self._database.writing() as connection:
            made = connection.execute(
                "INSERT OR IGNORE INTO once VALUES (?, ?, '', ?)", (scope, storable(name), time.time())
            )
            return made.rowcount > 0

    def end(self, scope: str, name: str, value: str) -> None:
        """Write down what came of it."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)",
                (scope, storable(name), value, time.time()),
            )

    def drop(self, scope: str, name: str) -> None:
        """It did not happen after all."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM once WHERE scope = ? AND name = ?", (scope, storable(name)))

    def value(self, scope: str, name: str) -> str | None:
        """What came of it: empty while it is not over, None when nobody has begun."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT value FROM once WHERE scope = ? AND name = ?", (scope, storable(name))
            ).fetchone()
        return None if row is None else str(row[0])
