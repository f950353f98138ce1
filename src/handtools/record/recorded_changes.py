"""File changes of recorded calls, for display: paths and actions, net diff, and whether they were undone.

This module imports quickly, because the command line needs it even for its help.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from handtools.core.changes import Change
    from handtools.runtime.journal import LoggedCall, RecordedTouch
    from handtools.runtime.journal.change_entries import ChangeEntries


class RecordOfChanges(Protocol):
    """An object with recorded file changes, such as a journal."""

    @property
    def entries(self) -> "ChangeEntries":
        """The recorded file changes."""
        ...


ACTION_SIGNS = {"created": "+", "changed": "~", "deleted": "-"}
MAX_PATHS_PER_LOG_ROW = 2

UndoneState = Literal["no", "partly", "yes"]


def file_changes_of_call(record: "RecordOfChanges", call_id: str) -> list["RecordedTouch"]:
    """Return the file changes recorded for one call, oldest first."""
    return record.entries.selected("call", call_id)[::-1]


def change_name(record: "RecordOfChanges", call_id: str) -> str:
    """Return the number that names a call's change everywhere; the id of a call that changed nothing."""
    return next((str(entry.id) for entry in record.entries.of_call(call_id)), call_id)


def undone_state(touches: Sequence["RecordedTouch"]) -> UndoneState:
    """Return whether a call's file changes were undone: `no`, `partly` or `yes`."""
    back = sum(touch.reverted_by is not None for touch in touches)
    if not back:
        return "no"
    return "yes" if back == len(touches) else "partly"


def change_actions_by_path(touches: Iterable["RecordedTouch"]) -> dict[str, str]:
    """Map each changed path to `created`, `changed` or `deleted`.

    Folders appear, with a trailing slash, only when no file changed.
    """
    from handtools.runtime.journal.change_entries import action_of

    found: dict[str, tuple[str, bool]] = {}
    for touch in touches:
        folder = "folder" in {side.kind for side in (touch.before, touch.after) if side}
        found[touch.path] = (action_of(touch.before, touch.after), folder)
    things = {path: action for path, (action, folder) in found.items() if not folder}
    return things or {f"{path}/": action for path, (action, _) in found.items()}


def call_target_summary(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> str:
    """Return a short text for the log's TOUCHED column: the first paths that the call changed.

    For a call without changes, return its path or its first string argument.
    """
    if touches:
        signed = [
            f"{ACTION_SIGNS[action]}{path}" for path, action in change_actions_by_path(touches).items()
        ]
        more = (
            f" and {len(signed) - MAX_PATHS_PER_LOG_ROW} more"
            if len(signed) > MAX_PATHS_PER_LOG_ROW
            else ""
        )
        return ", ".join(signed[:MAX_PATHS_PER_LOG_ROW]) + more
    for name in ("path", "name"):
        if isinstance(logged.args.get(name), str):
            return str(logged.args[name])
    return next((value for value in logged.args.values() if isinstance(value, str)), "")


def net_diff_text(record: "RecordOfChanges", touches: Iterable["RecordedTouch"]) -> str:
    """Return one text with a unified diff for each path, from before its first change to after its last one.

    Paths whose old content is no longer stored are only named.
    """
    return unified_diff_of_changes(*net_changes_and_lost_paths(record, touches))


def unified_diff_of_changes(changes: Sequence["Change"], gone: Iterable[str]) -> str:
    """Return the unified diffs of changes as one text, with a line for each path whose old content is gone."""
    from handtools.core.changes import ChangeSet
    from handtools.runtime.approval.preview import changes_diff

    return changes_diff(ChangeSet(tuple(changes))) + "".join(
        f"{path}: the old content is no longer stored\n" for path in gone
    )


def net_changes_and_lost_paths(
    record: "RecordOfChanges", touches: Iterable["RecordedTouch"]
) -> tuple[list["Change"], list[str]]:
    """Return one net change per path, and the paths whose old content is no longer stored."""
    touches_by_path: dict[str, list[RecordedTouch]] = {}
    for touch in touches:
        touches_by_path.setdefault(touch.path, []).append(touch)
    changes: list[Change] = []
    gone: list[str] = []
    for path, group in touches_by_path.items():
        change = _net_change_of_path(record, path, group)
        if change is None:
            gone.append(path)
        elif not _is_folder(change) and change.before != change.after:
            changes.append(change)
    return changes, gone


def _net_change_of_path(
    record: "RecordOfChanges", path: str, recorded_touches: Sequence["RecordedTouch"]
) -> "Change | None":
    from handtools.core.changes import Change

    try:
        before, after = (
            record.entries.node(recorded_touches[0].before),
            record.entries.node(recorded_touches[-1].after),
        )
    except KeyError:
        return None
    return Change(path, before, after)


def _is_folder(change: "Change") -> bool:
    return "folder" in {node.kind for node in (change.before, change.after) if node}
