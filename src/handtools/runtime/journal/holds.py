"""Holds: commands that have ended, and whose changes wait for a person's word."""

import base64
import json
import time
from dataclasses import asdict
from typing import Any

from handtools.core.changes import Change, Held, Node
from handtools.core.command import Exit, Output, Ran
from handtools.runtime.journal.database import Database


class Holds:
    """By call: what it printed, how it ended, and what is to land when the answer is yes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, call_id: str, ran: Ran) -> None:
        """Write down a command that has ended."""
        row = (call_id, json.dumps(_to_json(ran)), json.dumps(sorted(_items(ran))), time.time())
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?)", row)

    def find(self, call_id: str) -> Ran | None:
        """The command that a call ran before it was asked about its changes."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT ran FROM holds WHERE call_id = ?", (call_id,)).fetchone()
        return None if row is None else _from_json(json.loads(row[0]))

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


def _items(ran: Ran) -> set[str]:
    nodes = [node for change in ran.delta or () for node in (change.before, change.after)]
    return {node.held.ref.partition("/")[0] for node in nodes if node and node.held}


def _to_json(ran: Ran) -> dict[str, Any]:
    end: dict[str, Any] = {**asdict(ran.exit), "changes": None}
    for name in ("head", "tail"):
        end["output"][name] = _text(end["output"][name])
    return {
        "exit": end,
        "delta": None if ran.delta is None else [_change_to_json(change) for change in ran.delta],
        "coverage": ran.coverage,
        "omitted": ran.omitted,
    }


def _from_json(value: dict[str, Any]) -> Ran:
    end = value["exit"]
    for name in ("head", "tail"):
        end["output"][name] = _bytes(end["output"][name])
    end["output"], end["notes"] = Output(**end["output"]), tuple(end["notes"])
    delta = value["delta"]
    return Ran(
        exit=Exit(**end),
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
    return [node.kind, _text(node.data), node.mode, held]


def _node_from_json(value: list[Any] | None) -> Node | None:
    if value is None:
        return None
    kind, data, mode, held = value
    return Node(kind, _bytes(data), mode, held and Held(*held))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
