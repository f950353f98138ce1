"""What is kept by call: the log and results, pending approvals, held commands, grants, once-only marks."""

import base64
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from handtools.core.approval import Approval, approval_to_json
from handtools.core.call import Call, call_from_json, call_to_json, new_id
from handtools.core.changes import BackupRef, Change, Node
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.result import Result, result_to_bytes, result_to_json
from handtools.runtime.journal.blobs import compressed, decompressed
from handtools.runtime.journal.database import Database, path_to_column, rows_of_owner

CALL_COLUMNS = "seq, id, session, turn, agent, parent, tool, args, started, ended, status, code"


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One row of the log."""

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


class ChangeAuthor(NamedTuple):
    """Who made a change: the words that undo takes."""

    call_id: str
    session: str
    turn: str


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for an answer, and the effects it was granted before."""

    call: Call
    approval: Approval
    granted: frozenset[str]


class Calls:
    """The record of calls."""

    def __init__(self, database: Database, owner: str = "") -> None:
        self._database = database
        self._calls, self._entries, self._approvals = (
            rows_of_owner(table, owner) for table in ("calls", "entries", "approvals")
        )

    def record(self, call: Call, result: Result[Any], started: float, ended: float | None = None) -> None:
        """Keep how a call ended; the first ending of an id stays, except that pending gives way."""
        packed = result_to_bytes(result)
        row = (
            call.id, call.session, call.turn, call.agent, call.parent, call.tool,
            json.dumps(dict(call.args)), started, ended or time.time(), result.status,
            result.fault.code if result.fault else "", len(packed).to_bytes(4) + compressed(packed), call.owner,
        )  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(
                f"INSERT INTO calls ({CALL_COLUMNS.removeprefix('seq, ')}, result, owner) "
                f"VALUES ({', '.join('?' * len(row))}) ON CONFLICT (id) DO UPDATE SET "
                "ended = excluded.ended, status = excluded.status, code = excluded.code, "
                "result = excluded.result WHERE status = 'pending' AND owner = excluded.owner",
                row,
            )
            if result.status != "pending":
                connection.execute("DELETE FROM approvals WHERE call_id = ?", (call.id,))

    def recall(self, call_id: str) -> dict[str, Any] | None:
        """The recorded result of an id, as JSON values; None when there is none."""
        if call_id in self._database.behind:
            self._database.catch_up()
        row = self._database.peek(f"SELECT result FROM {self._calls} WHERE id = ?", (call_id,))
        if row is None:
            return None
        if not row[0]:
            return result_to_json(Result("This result was forgotten on request.", None))
        size, packed = int.from_bytes(row[0][:4]), row[0][4:]
        recalled: dict[str, Any] = json.loads(decompressed(packed, size))
        return recalled

    def has(self, call_id: str) -> bool:
        """Whether a call of exactly this id is on record."""
        if call_id in self._database.behind:
            self._database.catch_up()
        return self._database.peek(f"SELECT 1 FROM {self._calls} WHERE id = ?", (call_id,)) is not None

    def find(self, call_id: str) -> LoggedCall | None:
        """One call by its id, or by the start of it when that names one call."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {CALL_COLUMNS} FROM {self._calls} WHERE id >= ? AND id < ? LIMIT 2",
                (call_id, call_id + "\U0010ffff"),
            ).fetchall()
        exact = [row for row in rows if row[1] == call_id] or rows
        return _logged(exact[0]) if len(exact) == 1 else None

    def starting(self, prefix: str, limit: int = 5) -> list[str]:
        """Ids that begin so, the exact one first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT id FROM {self._calls} WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                (prefix, prefix + "\U0010ffff", limit),
            ).fetchall()
        return [str(row[0]) for row in rows]

    def short(self, call_id: str, least: int = 7) -> str:
        """The start of an id that names no other call."""
        with self._database.reading() as connection:
            beside = connection.execute(
                f"SELECT (SELECT max(id) FROM {self._calls} WHERE id < ?1), "
                f"(SELECT min(id) FROM {self._calls} WHERE id > ?1)",
                (call_id,),
            ).fetchone()
        others = [other for other in beside if other is not None]
        lengths = range(least, len(call_id))
        starts = (call_id[:length] for length in lengths)
        return next((s for s in starts if not any(other.startswith(s) for other in others)), call_id)

    def newest_change(self) -> ChangeAuthor | None:
        """Whose change is the newest that stands."""
        return self._author(
            f"FROM {self._entries} e WHERE e.state = 'done' AND e.kind = 'change' AND EXISTS "
            "(SELECT 1 FROM touches t WHERE t.entry = e.id AND t.reverted_by IS NULL) ORDER BY e.id DESC"
        )

    def newest_undone(self) -> ChangeAuthor | None:
        """Whose change was taken back last, and is still."""
        return self._author(
            "FROM reversals r JOIN touches t ON t.id = r.touch AND t.reverted_by = r.entry "
            "JOIN entries u ON u.id = r.entry AND u.kind = 'undo' "
            f"JOIN {self._entries} e ON e.id = t.entry AND e.kind = 'change' ORDER BY r.entry DESC"
        )

    def _author(self, chosen: str) -> ChangeAuthor | None:
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT e.call_id, e.session, e.turn {chosen} LIMIT 1").fetchone()
        return None if row is None else ChangeAuthor(*row)

    def page(
        self, *, session: str | None = None, before: int | None = None, limit: int = 20
    ) -> list[LoggedCall]:
        """The newest calls first; `before` is the seq that the last page ended on."""
        where, values = ["seq < ?"], [before if before is not None else 1 << 62]
        if session is not None:
            where.append("session = ?")
            values.append(session)  # type: ignore[arg-type]
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {CALL_COLUMNS} FROM {self._calls} WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
        return [_logged(row) for row in rows]

    def count_since(self, logged: LoggedCall) -> int:
        """How many calls of the same session were recorded after one."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM {self._calls} WHERE session = ? AND seq > ?",
                (logged.session, logged.seq),
            ).fetchone()
        return int(row[0])

    def suspend(self, call: Call, approval: Approval, granted: Iterable[str] = ()) -> None:
        """Keep a question whose answer is out, with the call that asked it and what it was granted so far."""
        values = (call_to_json(call), approval_to_json(approval), sorted(granted))
        row = (call.id, *(json.dumps(value) for value in values), time.time(), call.owner)
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?, ?, ?)", row)

    def suspended(self, call_id: str) -> PendingCall | None:
        """The call behind a pending approval."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT call, approval, granted FROM {self._approvals} WHERE call_id = ?", (call_id,)
            ).fetchone()
        if row is None:
            return None
        call, approval, granted = (json.loads(value) for value in row)
        return PendingCall(call_from_json(call), Approval(**approval), frozenset(granted))

    def waiting(self) -> list[Approval]:
        """Every question whose answer is out, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT approval FROM {self._approvals} ORDER BY at").fetchall()
        return [Approval(**json.loads(row[0])) for row in rows]

    def grant(self, call: Call, remembered: str, *, lasts: Literal["session", "project"]) -> None:
        """Remember a yes to what a call wanted, for its owner: in this session, or in all of them."""
        key = call.session_key if lasts == "session" else _every_session(call)
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO grants VALUES (?, ?, ?)", (key, remembered, time.time())
            )

    def granted(self, call: Call, remembered: str) -> bool:
        """Whether a remembered yes covers this."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM grants WHERE session IN (?, ?) AND remembered = ?",
                (call.session_key, _every_session(call), remembered),
            ).fetchone()
        return row is not None


def _every_session(call: Call) -> str:
    return replace(call, session="").session_key


def _logged(row: tuple[Any, ...]) -> LoggedCall:
    values: list[Any] = [*row[:7], json.loads(row[7]), *row[8:]]
    return LoggedCall(*values)


UNNAMED_SESSION = "default"
"""The session of callers that name none: each run of the program is one of its own."""


class OnceMarks:
    """Marks that outlive the process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._run = new_id()

    def in_session(self, call: Call, name: str) -> bool:
        """Whether this is the first time for the agent of a call in its session; from now on it is not."""
        run = self._run if call.session == UNNAMED_SESSION else ""
        return self.begin(f"session {call.session_key}\n{call.agent}\n{run}", name)

    def begin(self, scope: str, name: str) -> bool:
        """Whether nobody has begun it; from now on somebody has."""
        with self._database.writing() as connection:
            made = connection.execute(
                "INSERT OR IGNORE INTO once VALUES (?, ?, '', ?)",
                (scope, path_to_column(name), time.time()),
            )
            return made.rowcount > 0

    def end(self, scope: str, name: str, value: str) -> None:
        """Write down what came of it."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)",
                (scope, path_to_column(name), value, time.time()),
            )

    def drop(self, scope: str, name: str) -> None:
        """It did not happen after all."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM once WHERE scope = ? AND name = ?", (scope, path_to_column(name))
            )

    def value(self, scope: str, name: str) -> str | None:
        """What came of it: empty while it is not over, None when nobody has begun."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT value FROM once WHERE scope = ? AND name = ?", (scope, path_to_column(name))
            ).fetchone()
        return None if row is None else str(row[0])


class HeldCommands:
    """By call: what it printed, how it ended, and what is to land when the answer is yes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, call_id: str, ran: FinishedCommand) -> None:
        """Write down a command that has ended."""
        row = (
            call_id,
            json.dumps(_finished_to_json(ran)),
            json.dumps(sorted(_backup_items(ran))),
            time.time(),
        )
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?)", row)

    def find(self, call_id: str) -> FinishedCommand | None:
        """The command that a call ran before it was asked about its changes."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT ran FROM holds WHERE call_id = ?", (call_id,)).fetchone()
        return None if row is None else _finished_from_json(json.loads(row[0]))

    def drop(self, call_id: str) -> list[str]:
        """Forget it; gives back the items of the vault that it held."""
        with self._database.writing() as connection:
            row = connection.execute(
                "DELETE FROM holds WHERE call_id = ? RETURNING items", (call_id,)
            ).fetchone()
        return [] if row is None else list(json.loads(row[0]))

    def items(self) -> set[str]:
        """The items of the vault that are waited with."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT items FROM holds").fetchall()
        return {item for row in rows for item in json.loads(row[0])}


def _backup_items(ran: FinishedCommand) -> set[str]:
    nodes = [node for change in ran.delta or () for node in (change.before, change.after)]
    return {node.held.ref.partition("/")[0] for node in nodes if node and node.held}


def _finished_to_json(ran: FinishedCommand) -> dict[str, Any]:
    end: dict[str, Any] = {**asdict(ran.exit), "changes": None}
    for name in ("head", "tail"):
        end["output"][name] = _bytes_to_text(end["output"][name])
    return {
        "exit": end,
        "delta": None if ran.delta is None else [_change_to_json(change) for change in ran.delta],
        "coverage": ran.coverage,
        "omitted": ran.omitted,
    }


def _finished_from_json(value: dict[str, Any]) -> FinishedCommand:
    end = value["exit"]
    for name in ("head", "tail"):
        end["output"][name] = _bytes_from_text(end["output"][name])
    end["output"], end["notes"] = CommandOutput(**end["output"]), tuple(end["notes"])
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
