"""Journal tables about calls: log and results, approvals, grants, pending commands, callback runs, guidance."""

import base64
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from handtools.core.approval import Approval, Reply, approval_to_json
from handtools.core.call import Call, call_from_json, call_to_json, new_call_id
from handtools.core.changes import BackupRef, Change, Node
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.result import Result, logged_status, result_to_bytes, result_to_json
from handtools.core.undo import PERSON_AGENT_NAME
from handtools.runtime.journal.blobs import compress_blob, decompress_blob
from handtools.runtime.journal.database import Database, path_to_column, rows_of_owner
from handtools.text.encoding import without_surrogates

CALL_COLUMNS = "seq, id, session, turn, agent, parent, tool, args, started, ended, status, code"
RECORDED_COLUMNS = f"{CALL_COLUMNS.removeprefix('seq, ')}, result, owner, meta, verdict, rule"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Usage of a tool: number of calls, how many did not succeed, and total run time."""

    tool: str
    calls: int
    not_ok: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One recorded call in the log: tool, arguments, times, status."""

    seq: int
    id: str
    session: str
    turn: str
    agent: str
    parent: str
    tool: str
    args: Mapping[str, Any]
    started: float
    ended: float
    status: str
    code: str


@dataclass(frozen=True, slots=True)
class LoggedSession:
    """One session in the log: number of calls, times, agents, and number of changed paths."""

    name: str
    calls: int
    started: float
    ended: float
    agents: str
    standing: int
    """Number of paths with changes by this session that were not undone."""


class ChangeAuthor(NamedTuple):
    """Call id, session and turn that made a change; undo accepts any of them."""

    call_id: str
    session: str
    turn: str


class StandingChange(NamedTuple):
    """A change that was not undone: its number, the call that made it, and how it was detected."""

    number: int
    call_id: str
    coverage: str


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call waiting for approval, its approval request, and the fingerprints of the effects approved so far."""

    call: Call
    approval: Approval
    granted: frozenset[str]


class WaitingCall(NamedTuple):
    """A call waiting for approval, its approval request, and when that was made."""

    call: Call
    approval: Approval
    at: float


_MATCHING_CALLS = (
    "(c.tool LIKE :plain ESCAPE '!' OR c.args LIKE :json ESCAPE '!' OR c.status LIKE :plain ESCAPE '!' "
    "OR c.code LIKE :plain ESCAPE '!' OR c.agent LIKE :plain ESCAPE '!' OR c.id LIKE :plain ESCAPE '!' OR EXISTS "
    "(SELECT 1 FROM entries e JOIN touches t ON t.entry = e.id WHERE e.call_id = c.id "
    "AND t.path LIKE :plain ESCAPE '!'))"
)


def _like_pattern(text: str) -> str:
    """Return the SQL LIKE pattern that matches any text containing this one."""
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"%{text}%"


class AnsweredQuestion(NamedTuple):
    """An answered approval request of a call: its title, the rule that required it, and the reply."""

    title: str
    rule: str
    reply: Reply


class Calls:
    """Journal tables of calls with their results, approvals and grants."""

    def __init__(self, database: Database, owner: str = "") -> None:
        self._database = database
        self._calls, self._entries, self._approvals = (
            rows_of_owner(table, owner) for table in ("calls", "entries", "pending_approvals")
        )

    def record(
        self,
        call: Call,
        result: Result[Any],
        started: float,
        ended: float | None = None,
        *,
        verdict: str = "",
        rule: str = "",
    ) -> None:
        """Record a call's result and the strictest policy decision on it.

        A later result for the same call id is ignored, unless the recorded call was pending or cancelled.
        """
        status, code = logged_status(result)
        row = (
            call.id, call.session, call.turn, call.agent, call.parent, call.tool,
            json.dumps(dict(call.args)), started, ended or time.time(), status, code,
            compress_blob(result_to_bytes(result)), call.owner, json.dumps(dict(call.metadata)),
            verdict, without_surrogates(rule),
        )  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(
                f"INSERT INTO calls ({RECORDED_COLUMNS}) VALUES ({', '.join('?' * len(row))}) "
                "ON CONFLICT (id) DO UPDATE SET "
                "ended = excluded.ended, status = excluded.status, code = excluded.code, "
                "result = excluded.result, verdict = coalesce(nullif(excluded.verdict, ''), verdict), "
                "rule = coalesce(nullif(excluded.rule, ''), rule) "
                "WHERE status IN ('pending', 'cancelled') AND owner = excluded.owner",
                row,
            )
            if result.status != "pending":
                for table in ("pending_approvals", "claimed_replies"):
                    connection.execute(f"DELETE FROM {table} WHERE call_id = ?", (call.id,))

    def recall(self, call_id: str) -> dict[str, Any] | None:
        """Return the recorded result of a call id as JSON values, or None."""
        if call_id in self._database.behind:
            self._database.catch_up()
        row = self._database.peek(f"SELECT result FROM {self._calls} WHERE id = ?", (call_id,))
        if row is None:
            return None
        if not row[0]:
            return result_to_json(Result("This result was forgotten on request.", None))
        recalled: dict[str, Any] = json.loads(decompress_blob(row[0]))
        return recalled

    def has(self, call_id: str) -> bool:
        """Whether a call with exactly this id is recorded."""
        if call_id in self._database.behind:
            self._database.catch_up()
        return self._database.peek(f"SELECT 1 FROM {self._calls} WHERE id = ?", (call_id,)) is not None

    def find(self, call_id: str) -> LoggedCall | None:
        """Return the recorded call with this id, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {CALL_COLUMNS} FROM {self._calls} WHERE id = ?", (call_id,)
            ).fetchone()
        return None if row is None else _logged_call(row)

    def ids_with_prefix(self, prefix: str, limit: int = 5) -> list[str]:
        """List recorded call ids that start with a prefix, an exact match first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT id FROM {self._calls} WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                (prefix, prefix + "\U0010ffff", limit),
            ).fetchall()
        return [str(row[0]) for row in rows]

    def short(self, call_id: str, least: int = 7) -> str:
        """Return the shortest unique prefix of a call id, at least `least` characters and not only digits."""
        with self._database.reading() as connection:
            neighbours = connection.execute(
                f"SELECT (SELECT max(id) FROM {self._calls} WHERE id < ?1), "
                f"(SELECT min(id) FROM {self._calls} WHERE id > ?1)",
                (call_id,),
            ).fetchone()
        others = [other for other in neighbours if other is not None]
        lengths = range(least, len(call_id))
        starts = (call_id[:length] for length in lengths if not call_id[:length].isdecimal())
        return next((s for s in starts if not any(other.startswith(s) for other in others)), call_id)

    def newest_change(self, session: str | None = None) -> ChangeAuthor | None:
        """Return the author of the newest change (of a session, if given) that was not undone, or None."""
        return self._change_author(
            f"FROM {self._entries} e WHERE e.state = 'done' AND e.kind = 'change' AND EXISTS "
            "(SELECT 1 FROM touches t WHERE t.entry = e.id AND t.reverted_by IS NULL) "
            "AND coalesce(?, e.session) = e.session ORDER BY e.id DESC",
            session,
        )

    def newest_changes(self, session: str | None = None, limit: int = 50) -> "list[StandingChange]":
        """List the newest changes (of a session, if given) that were not undone, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT e.id, e.call_id, e.coverage FROM {self._entries} e WHERE e.state = 'done' "
                "AND e.kind = 'change' AND EXISTS "
                "(SELECT 1 FROM touches t WHERE t.entry = e.id AND t.reverted_by IS NULL) "
                "AND coalesce(?, e.session) = e.session ORDER BY e.id DESC LIMIT ?",
                (session, limit),
            ).fetchall()
        return [StandingChange(*row) for row in rows]

    def last_agent_session(self) -> str:
        """Return the session of the newest change by an agent that was not undone, or else of the newest call.

        Calls in the user's name, such as a review, don't count. Empty if there is no session.
        """
        by_agent = "NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = e.call_id AND c.agent = ?1)"
        with self._database.reading() as connection:
            row = (
                connection.execute(
                    f"SELECT e.session FROM {self._entries} e WHERE e.state = 'done' AND e.kind = 'change' "
                    "AND EXISTS (SELECT 1 FROM touches t WHERE t.entry = e.id AND t.reverted_by IS NULL) "
                    f"AND {by_agent} ORDER BY e.id DESC LIMIT 1",
                    (PERSON_AGENT_NAME,),
                ).fetchone()
                or connection.execute(
                    f"SELECT session FROM {self._calls} WHERE agent != ? ORDER BY seq DESC LIMIT 1",
                    (PERSON_AGENT_NAME,),
                ).fetchone()
            )
        return str(row[0]) if row else ""

    def newest_undone(self, session: str | None = None) -> ChangeAuthor | None:
        """Return the author of the last undone change (of a session, if given) that was not redone, or None."""
        return self._change_author(
            "FROM reversals r JOIN touches t ON t.id = r.touch AND t.reverted_by = r.entry "
            "JOIN entries u ON u.id = r.entry AND u.kind = 'undo' "
            f"JOIN {self._entries} e ON e.id = t.entry AND e.kind = 'change' "
            "WHERE coalesce(?, e.session) = e.session ORDER BY r.entry DESC",
            session,
        )

    def _change_author(self, chosen: str, session: str | None) -> ChangeAuthor | None:
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT e.call_id, e.session, e.turn {chosen} LIMIT 1", (session,)
            ).fetchone()
        return None if row is None else ChangeAuthor(*row)

    def page(
        self,
        *,
        session: str | None = None,
        before: int | None = None,
        after: int | None = None,
        matching: str = "",
        limit: int = 20,
    ) -> list[LoggedCall]:
        """List recorded calls, newest first; `before` is the `seq` of the previous page's last call.

        `matching` selects calls with this text in the tool's name, id, arguments, status, agent or a changed path;
        ASCII letters are compared case-insensitively.
        """
        conditions = {
            "seq < :before": before,
            "seq > :after": after,
            "session = :session": session,
            _MATCHING_CALLS: matching or None,
        }
        where = [condition for condition, value in conditions.items() if value is not None] or ["1"]
        values = {
            "before": before,
            "after": after,
            "session": session,
            "limit": limit,
            "plain": _like_pattern(matching),
            "json": _like_pattern(json.dumps(matching)[1:-1]),
        }
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {CALL_COLUMNS} FROM {self._calls} AS c WHERE {' AND '.join(where)} "
                "ORDER BY seq DESC LIMIT :limit",
                values,
            ).fetchall()
        return [_logged_call(row) for row in rows]

    def listed(self, call_ids: Iterable[str]) -> list[LoggedCall]:
        """List the recorded calls with these ids, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {CALL_COLUMNS} FROM {self._calls} "
                "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq DESC",
                (json.dumps(list(call_ids)),),
            ).fetchall()
        return [_logged_call(row) for row in rows]

    def newest_seq(self) -> int:
        """Return the number of the newest recorded call; 0 if there is none."""
        return self._database.peek_number("SELECT coalesce(max(seq), 0) FROM calls")

    def session_names(self, limit: int = 100) -> list[str]:
        """List the names of sessions with recorded calls, the most recently active first.

        Reads only the index, so it is fast even in a large journal.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "WITH RECURSIVE names (name) AS (SELECT min(session) FROM calls UNION ALL "
                "SELECT (SELECT min(session) FROM calls WHERE session > name) FROM names WHERE name IS NOT NULL) "
                "SELECT name FROM names WHERE name IS NOT NULL "
                "ORDER BY (SELECT max(seq) FROM calls WHERE session = name) DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [str(row[0]) for row in rows]

    def use_of_tools(self) -> "list[ToolUse]":
        """Return the usage of each tool in the log, the most used first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT tool, count(*), sum(status != 'ok'), sum(max(ended - started, 0)) "
                f"FROM {self._calls} GROUP BY tool ORDER BY count(*) DESC, tool"
            ).fetchall()
        return [ToolUse(*row) for row in rows]

    def sessions(self, limit: int = 20) -> list[LoggedSession]:
        """List the sessions with recorded calls, the most recently active first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT session, count(*), min(started), max(ended), "
                f"coalesce(group_concat(DISTINCT nullif(agent, '')), '') FROM {self._calls} "
                "GROUP BY session ORDER BY max(seq) DESC LIMIT ?",
                (limit,),
            ).fetchall()
            standing: dict[str, int] = dict(
                connection.execute(
                    f"SELECT e.session, count(DISTINCT t.path) FROM {self._entries} e "
                    "JOIN touches t ON t.entry = e.id WHERE e.state = 'done' AND e.kind = 'change' "
                    "AND t.reverted_by IS NULL GROUP BY e.session"
                ).fetchall()
            )
        return [
            LoggedSession(
                name=name,
                calls=calls,
                started=started,
                ended=ended,
                agents=agents,
                standing=standing.get(name, 0),
            )
            for name, calls, started, ended, agents in rows
        ]

    def count_since(self, logged: LoggedCall) -> int:
        """Count the calls of the same session recorded after the given one."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM {self._calls} WHERE session = ? AND seq > ?",
                (logged.session, logged.seq),
            ).fetchone()
        return int(row[0])

    def suspend(self, call: Call, approval: Approval, granted: Iterable[str] = ()) -> None:
        """Store a pending approval request with its call and the effects approved so far."""
        values = (call_to_json(call), approval_to_json(approval), sorted(granted))
        row = (call.id, *(json.dumps(value) for value in values), time.time(), call.owner)
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO pending_approvals VALUES (?, ?, ?, ?, ?, ?)", row)
            # A claimed reply belongs to the previous request of this call.
            connection.execute("DELETE FROM claimed_replies WHERE call_id = ?", (call.id,))

    def suspended(self, call_id: str) -> PendingCall | None:
        """Return the pending call with its approval request, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT call, approval, granted FROM {self._approvals} WHERE call_id = ?", (call_id,)
            ).fetchone()
        if row is None:
            return None
        call, approval, granted = (json.loads(value) for value in row)
        return PendingCall(call_from_json(call), Approval(**approval), frozenset(granted))

    def waiting_calls(self) -> list[WaitingCall]:
        """List all calls that wait for approval with their requests, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT call, approval, at FROM {self._approvals} ORDER BY at"
            ).fetchall()
        return [
            WaitingCall(call_from_json(json.loads(call)), Approval(**json.loads(approval)), at)
            for call, approval, at in rows
        ]

    def waiting(self) -> list[Approval]:
        """List all pending approval requests, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT approval FROM {self._approvals} ORDER BY at").fetchall()
        return [Approval(**json.loads(row[0])) for row in rows]

    def note_answer(self, approval: Approval, reply: Reply) -> None:
        """Record the reply to an approval request, for reports; this grants nothing."""
        texts = (without_surrogates(approval.title), without_surrogates(approval.rule))
        row = (approval.call_id, approval.fingerprint, *texts, json.dumps(asdict(reply)), time.time())
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO answered_approvals VALUES (?, ?, ?, ?, ?, ?)", row)

    def answered_questions(self, call_id: str) -> list[AnsweredQuestion]:
        """List the answered approval requests of a call, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT title, rule, reply FROM answered_approvals WHERE call_id = ? ORDER BY at",
                (call_id,),
            ).fetchall()
        return [AnsweredQuestion(title, rule, Reply(**json.loads(reply))) for title, rule, reply in rows]

    def grant(self, call: Call, remembered: str, *, lasts: Literal["session", "project"]) -> None:
        """Store a grant for a call's owner, for its session or for the whole project."""
        session = call.session if lasts == "session" else ""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO grants (owner, session, line, call_id, at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (line, owner, session) WHERE revoked_at IS NULL "
                "DO UPDATE SET call_id = excluded.call_id, at = excluded.at, ends = excluded.ends",
                (call.owner, session, remembered, call.id, time.time()),
            )

    def granted(self, call: Call, remembered: str) -> bool:
        """Whether a stored grant covers the grant line `remembered` for the call's owner and session."""
        row = self._database.peek(
            "SELECT 1 FROM grants WHERE owner = ? AND session IN (?, '') AND line = ? "
            "AND revoked_at IS NULL AND (ends IS NULL OR ends > ?)",
            (call.owner, call.session, remembered, time.time()),
        )
        return row is not None


def _logged_call(row: tuple[Any, ...]) -> LoggedCall:
    values: list[Any] = [*row[:7], json.loads(row[7]), *row[8:]]
    return LoggedCall(*values)


UNNAMED_SESSION = "default"
"""Session name of callers that give none. In it, guidance is shown once per process."""


class ShownGuidance:
    """Journal table of guides and skills that an agent was already shown in its session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = new_call_id()

    def mark_shown(self, call: Call, path: str) -> bool:
        """Mark a guide or skill as shown to the call's agent in its session; return False if it already was."""
        process = self._process if call.session == UNNAMED_SESSION else ""
        with self._database.writing() as connection:
            made = connection.execute(
                "INSERT OR IGNORE INTO shown_guidance VALUES (?, ?, ?, ?, ?)",
                (call.session_key, call.agent, process, path_to_column(path), time.time()),
            )
            return made.rowcount > 0


class CallbackRuns:
    """Journal tables of the callbacks that calls have run, so that rerunning a call does not repeat them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, call_id: str, name: str) -> bool:
        """Record that a call starts a callback; return False if the call has started it before."""
        with self._database.writing() as connection:
            made = connection.execute(
                "INSERT OR IGNORE INTO callback_runs VALUES (?, ?, NULL, ?)",
                (call_id, path_to_column(name), time.time()),
            )
            return made.rowcount > 0

    def finish(self, call_id: str, name: str, result: str) -> None:
        """Record the result of a callback that was started."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE callback_runs SET result = ? WHERE call_id = ? AND name = ?",
                (result, call_id, path_to_column(name)),
            )

    def result(self, call_id: str, name: str) -> str | None:
        """Return the result of a callback; None if it has not finished."""
        row = self._database.peek(
            "SELECT result FROM callback_runs WHERE call_id = ? AND name = ?",
            (call_id, path_to_column(name)),
        )
        return None if row is None else row[0]

    def note_delegation(self, call_id: str, depth: int) -> None:
        """Record how deeply nested the delegation of a call is."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO delegations VALUES (?, ?, ?)", (call_id, depth, time.time())
            )

    def delegation_depth(self, call_id: str) -> int:
        """Return how deeply nested the delegation of a call is; 0 if it has not delegated."""
        row = self._database.peek("SELECT depth FROM delegations WHERE call_id = ?", (call_id,))
        return 0 if row is None else int(row[0])


class PendingCommands:
    """Journal table of finished commands whose file changes wait for approval."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, call_id: str, finished: FinishedCommand) -> None:
        """Store a finished command until its changes are approved."""
        row = (
            call_id,
            json.dumps(_finished_to_json(finished)),
            json.dumps(sorted(_backup_items(finished))),
            time.time(),
        )
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO pending_commands VALUES (?, ?, ?, ?)", row)

    def find(self, call_id: str) -> FinishedCommand | None:
        """Return the stored finished command of a call, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT ran FROM pending_commands WHERE call_id = ?", (call_id,)
            ).fetchone()
        return None if row is None else _finished_from_json(json.loads(row[0]))

    def drop(self, call_id: str) -> list[str]:
        """Delete a call's stored command; return the backup items that it used."""
        with self._database.writing() as connection:
            row = connection.execute(
                "DELETE FROM pending_commands WHERE call_id = ? RETURNING items", (call_id,)
            ).fetchone()
        return [] if row is None else list(json.loads(row[0]))

    def backup_items(self) -> set[str]:
        """Return the backup items used by stored commands."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT items FROM pending_commands").fetchall()
        return {item for row in rows for item in json.loads(row[0])}


def _backup_items(finished: FinishedCommand) -> set[str]:
    nodes = [node for change in finished.delta or () for node in (change.before, change.after)]
    return {node.held.ref.partition("/")[0] for node in nodes if node and node.held}


def _finished_to_json(finished: FinishedCommand) -> dict[str, Any]:
    end: dict[str, Any] = {**asdict(finished.exit), "changes": None}
    for output in (end["output"], *end["streams"]):
        output.update({name: _bytes_to_text(output[name]) for name in ("head", "tail")})
    return {
        "exit": end,
        "delta": None if finished.delta is None else [_change_to_json(change) for change in finished.delta],
        "coverage": finished.coverage,
        "omitted": finished.omitted,
    }


def _finished_from_json(value: dict[str, Any]) -> FinishedCommand:
    end = value["exit"]
    for output in (end["output"], *end["streams"]):
        output.update({name: _bytes_from_text(output[name]) for name in ("head", "tail")})
    end["output"], end["notes"] = CommandOutput(**end["output"]), tuple(end["notes"])
    end["streams"] = tuple(CommandOutput(**stream) for stream in end["streams"])
    delta = value["delta"]
    return FinishedCommand(
        exit=CommandExit(**end),
        delta=None if delta is None else tuple(_change_from_json(change) for change in delta),
        coverage=value["coverage"],
        omitted=tuple(value["omitted"]),
    )


def _change_to_json(change: Change) -> list[Any]:
    return [change.path, _node_to_json(change.before), _node_to_json(change.after)]


def _change_from_json(value: list[Any]) -> Change:
    path, before, after = value
    return Change(path, _node_from_json(before), _node_from_json(after))


def _node_to_json(node: Node | None) -> list[Any] | None:
    if node is None:
        return None
    held = node.held and [node.held.ref, node.held.mark, node.held.bytes]
    return [node.kind, _bytes_to_text(node.data), node.mode, held]


def _node_from_json(value: list[Any] | None) -> Node | None:
    if value is None:
        return None
    kind, data, mode, held = value
    return Node(kind, _bytes_from_text(data), mode, held and BackupRef(*held))


def _bytes_to_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes_from_text(text: str) -> bytes:
    return base64.b64decode(text)
