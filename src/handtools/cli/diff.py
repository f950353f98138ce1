"""CLI command `handtools diff`: print the changes of a call, of a session, or of all calls on a path."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.terminal import CliCommandError, print_diff, print_json, print_remark, stdout_console
from handtools.core.errors import ToolError
from handtools.core.undo import LAST_NAME, is_change_number
from handtools.record.recorded_changes import (
    change_actions_by_path,
    file_changes_of_call,
    net_changes_and_lost_paths,
    net_diff_text,
)
from handtools.text.changed_files import ChangedFile, changed_files_text
from handtools.text.plurals import number_with_noun
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.core.changes import Change
    from handtools.runtime.journal import RecordedTouch

MAX_STAT_ROWS = 60


class FileDiffStat(NamedTuple):
    """How many lines of one file were added and removed; None if the file is not text."""

    path: str
    added: int | None
    removed: int | None


def diff(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|CHANGE|PATH",
            help="Call id or prefix, the number of a change, or a path.",
            autocompletion=completed_values.complete_ids_and_paths,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="All changes of this session.", autocompletion=completed_values.complete_sessions
        ),
    ] = None,
    stat: Annotated[
        bool, typer.Option("--stat", help="Show only added and removed line counts per file.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Show the changes of a call, a path or a session.

    Without an argument, shows the changes of the last session that made any, except those that were undone.

    Example: handtools diff --stat
    """
    with open_journal_at(workspace) as record:
        subject, touches = _label_and_chosen_touches(record, name, session)
        if stat:
            _print_stat(record, subject, touches, as_json=as_json)
            return
        text = net_diff_text(record, touches)
        if as_json:
            changed = [
                {"path": path, "action": action} for path, action in change_actions_by_path(touches).items()
            ]
            print_json({"of": subject, "changes": changed, "diff": text})
        elif text:
            print_diff(text, to_apply=True)
        else:
            print_remark(_no_changes_text(record, subject))


def _print_stat(
    journal: WorkspaceJournal, subject: str, touches: list["RecordedTouch"], *, as_json: bool
) -> None:
    changes, gone = net_changes_and_lost_paths(journal, touches)
    rows = [FileDiffStat(change.path, *line_counts(change)) for change in changes]
    rows += [FileDiffStat(path, None, None) for path in gone]
    added, removed = sum(row.added or 0 for row in rows), sum(row.removed or 0 for row in rows)
    if as_json:
        print_json(
            {"of": subject, "added": added, "removed": removed, "files": [r._asdict() for r in rows]}
        )
        return
    if not rows:
        print_remark(_no_changes_text(journal, subject))
        return
    from rich.text import Text

    console = stdout_console()
    for row in rows[:MAX_STAT_ROWS]:
        told = Text(f"{with_visible_characters(row.path)}  ")
        if row.added is None:
            told.append("not text, or no longer kept", "dim")
        else:
            told.append(f"+{row.added:,} ", "green").append(f"-{row.removed:,}", "red")
        console.print(told, soft_wrap=True)
    if len(rows) > MAX_STAT_ROWS:
        folded = [ChangedFile("changed", row.path) for row in rows[MAX_STAT_ROWS:]]
        console.print(f"{len(folded):,} more: {changed_files_text(folded)}", soft_wrap=True)
    lines = f"{number_with_noun(added, 'line')} added, {number_with_noun(removed, 'line')} removed"
    console.print(f"{number_with_noun(len(rows), 'file')}, {lines}")


def _no_changes_text(journal: WorkspaceJournal, subject: str) -> str:
    return f"No changes by {subject}, or all were undone. Next: {journal.suggested_command('log')}"


def line_counts(change: "Change") -> tuple[int, int] | tuple[None, None]:
    """How many lines a change to one file adds and removes; None if the file is not text."""
    from handtools.core.changes import ChangeSet
    from handtools.runtime.approval.preview import changes_diff

    text = changes_diff(ChangeSet((change,)))
    if not text.startswith(("--- ", "diff --git ")):
        return None, None
    # Headers can start with + or - too, but they all come before the first hunk.
    lines = text.partition("\n@@")[2].split("\n")
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _label_and_chosen_touches(
    journal: WorkspaceJournal, name: str | None, session: str | None
) -> tuple[str, list["RecordedTouch"]]:
    """Find the recorded file changes to show, oldest first; return a label for them and the changes.

    `name` is a path or a call id; without it, the changes of a session are shown. Raises `CliCommandError`
    if nothing matches.
    """
    if name is None:
        if session in (None, LAST_NAME):
            session = journal.calls.last_agent_session()
        if not session:
            raise CliCommandError(
                "No changes are recorded.", f"`{journal.suggested_command('log')}` lists the calls."
            )
        return f"session {session}", _touches_not_undone(journal.entries.selected("session", session))
    path = _recorded_path_or_none(journal, name)
    if path is not None:
        return f"the calls on {path}", _touches_not_undone(journal.entries.selected("path", path))
    if not journal.journal.calls_named(name) and not is_change_number(name):
        step = f"`{journal.suggested_command('log')}` lists the calls."
        raise CliCommandError(f"`{name}` is neither a recorded call nor a path that one changed.", step)
    call_id = journal.find_call_id(name)
    return f"call {journal.calls.short(call_id)}", file_changes_of_call(journal, call_id)


def _touches_not_undone(touches: list["RecordedTouch"]) -> list["RecordedTouch"]:
    """The changes that were not undone, oldest first, from a list that is newest first."""
    return [t for t in touches[::-1] if t.kind == "change" and t.reverted_by is None]


def _recorded_path_or_none(journal: WorkspaceJournal, name: str) -> str | None:
    """The workspace-relative path that the argument names, or None if no recorded call changed it."""
    try:
        path = journal.files.locate(name)
    except ToolError:
        return None
    return path if journal.entries.first(path) else None
