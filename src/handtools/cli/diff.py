"""CLI command `handtools diff`: print the diff of what one call, a session or all calls on a path changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.log import actions_by_path, file_changes_of_call, net_diff
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.terminal import CommandStopped, print_diff, print_json, print_remark
from handtools.core.errors import ToolError

if TYPE_CHECKING:
    from handtools.runtime.journal import RecordedTouch


def diff(
    name: Annotated[
        str | None, typer.Argument(metavar="ID|PATH", help="A call id or the start of one, or a path.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Everything this session changed.")] = None,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Show what a call, a path's calls or a session changed.

    Without a name: all that still stands of the last session that changed anything.
    """
    with open_journal_at(workspace) as record:
        subject, touches = _chosen_touches(record, name, session)
        text = net_diff(record, touches)
        if as_json:
            changed = [
                {"path": path, "action": action} for path, action in actions_by_path(touches).items()
            ]
            print_json({"of": subject, "changes": changed, "diff": text})
        elif text:
            print_diff(text)
        else:
            print_remark(f"Nothing that {subject} changed still stands.")


def _chosen_touches(
    record: WorkspaceJournal, name: str | None, session: str | None
) -> tuple[str, list["RecordedTouch"]]:
    """Resolve the argument (a path, a call id or none) to recorded file changes, oldest first, and a label.

    Raises `CommandStopped` when it matches nothing.
    """
    if name is None:
        newest = record.calls.newest_change()
        if session is None and newest is None:
            raise CommandStopped("No change stands.", f"`{record.step('log')}` lists the calls.")
        session = session if session is not None else newest.session if newest else ""
        return f"session {session}", _standing_touches(record.entries.selected("session", session))
    path = _recorded_path(record, name)
    if path is not None:
        return f"the calls on {path}", _standing_touches(record.entries.selected("path", path))
    if not record.calls.starting(name):
        step = f"`{record.step('log')}` lists the calls."
        raise CommandStopped(f"`{name}` is neither a recorded call nor a path that one changed.", step)
    call_id = record.named(name)
    return f"call {record.calls.short(call_id)}", file_changes_of_call(record, call_id)


def _standing_touches(newest_first: list["RecordedTouch"]) -> list["RecordedTouch"]:
    """The recorded changes that were not undone, oldest first, from a list with the newest first."""
    return [t for t in newest_first[::-1] if t.kind == "change" and t.reverted_by is None]


def _recorded_path(record: WorkspaceJournal, name: str) -> str | None:
    """The workspace-relative path that the argument names, or None when no recorded call changed that path."""
    try:
        path = record.files.locate(name)
    except ToolError:
        return None
    return path if record.entries.first(path) else None
