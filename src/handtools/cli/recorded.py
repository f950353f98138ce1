"""What is recorded of calls, as people look at it: paths, whether they are undone, diffs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from handtools.cli.opening import Record
    from handtools.core.changes import Change
    from handtools.runtime.journal import LoggedCall, Touch

SIGNS = {"created": "+", "changed": "~", "deleted": "-"}
LISTED_PATHS = 2

UndoneState = Literal["no", "partly", "yes"]


def touches_of(record: "Record", call_id: str) -> list["Touch"]:
    """What a call changed, oldest first."""
    return record.entries.selected("call", call_id)[::-1]


def undone(touches: Sequence["Touch"]) -> UndoneState:
    """Whether what a call changed was taken back."""
    back = sum(touch.reverted_by is not None for touch in touches)
    if not back:
        return "no"
    return "yes" if back == len(touches) else "partly"


def actions(touches: Iterable["Touch"]) -> dict[str, str]:
    """Each path with what happened to it; folders only where nothing else was touched."""
    from handtools.runtime.journal.entries import action_of

    found: dict[str, tuple[str, bool]] = {}
    for touch in touches:
        folder = "folder" in {side.kind for side in (touch.before, touch.after) if side}
        found[touch.path] = (action_of(touch.before, touch.after), folder)
    things = {path: action for path, (action, folder) in found.items() if not folder}
    return things or {f"{path}/": action for path, (action, _) in found.items()}


def touched(logged: "LoggedCall", touches: Sequence["Touch"]) -> str:
    """What a call was about, in a few words."""
    if touches:
        signed = [f"{SIGNS[action]}{path}" for path, action in actions(touches).items()]
        more = f" and {len(signed) - LISTED_PATHS} more" if len(signed) > LISTED_PATHS else ""
        return ", ".join(signed[:LISTED_PATHS]) + more
    for name in ("path", "name"):
        if isinstance(logged.args.get(name), str):
            return str(logged.args[name])
    return next((value for value in logged.args.values() if isinstance(value, str)), "")


def net_diff(record: "Record", touches: Iterable["Touch"]) -> str:
    """From before the first touch of each path to after its last, as one unified diff."""
    from handtools.core.changes import ChangeSet
    from handtools.runtime.preview import diff

    by_path: dict[str, list[Touch]] = {}
    for touch in touches:
        by_path.setdefault(touch.path, []).append(touch)
    changes: list[Change] = []
    gone: list[str] = []
    for path, group in by_path.items():
        change = _net(record, path, group)
        if change is None:
            gone.append(f"{path}: the bytes are no longer kept\n")
        elif not _is_folder(change) and change.before != change.after:
            changes.append(change)
    return diff(ChangeSet(tuple(changes))) + "".join(gone)


def logged_to_json(logged: "LoggedCall", touches: Sequence["Touch"]) -> dict[str, Any]:
    """A row of the log as JSON values."""
    from dataclasses import asdict

    changes = [{"path": path, "action": action} for path, action in actions(touches).items()]
    return asdict(logged) | {"args": dict(logged.args), "changes": changes, "undone": undone(touches)}


def _net(record: "Record", path: str, group: Sequence["Touch"]) -> "Change | None":
    from handtools.core.changes import Change

    try:
        before, after = record.entries.node(group[0].before), record.entries.node(group[-1].after)
    except KeyError:
        return None
    return Change(path, before, after)


def _is_folder(change: "Change") -> bool:
    return "folder" in {node.kind for node in (change.before, change.after) if node}
