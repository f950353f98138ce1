"""CLI command `handtools log`: list recorded tool calls, newest first.

Also helpers that `show` and `diff` share: a call's file changes, net diff, undone state.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from handtools.cli import completion, options
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.terminal import make_plain_table, print_json, print_remark, stdout_console, table_cell

if TYPE_CHECKING:
    from rich.text import Text

    from handtools.core.changes import Change
    from handtools.runtime.journal import LoggedCall, RecordedTouch

    Row = tuple[LoggedCall, list[RecordedTouch]]


ACTION_SIGNS = {"created": "+", "changed": "~", "deleted": "-"}
MOST_PATHS_PER_LOG_ROW = 2

UndoneState = Literal["no", "partly", "yes"]


def file_changes_of_call(record: "WorkspaceJournal", call_id: str) -> list["RecordedTouch"]:
    """The file changes recorded for one call, oldest first."""
    return record.entries.selected("call", call_id)[::-1]


def undone_state(touches: Sequence["RecordedTouch"]) -> UndoneState:
    """Whether a call's file changes were undone: `no`, `partly` or `yes`."""
    back = sum(touch.reverted_by is not None for touch in touches)
    if not back:
        return "no"
    return "yes" if back == len(touches) else "partly"


def actions_by_path(touches: Iterable["RecordedTouch"]) -> dict[str, str]:
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
    """A short text for the log's TOUCHED column: the first paths that the call changed.

    For a call without changes it is the path or first text among its arguments.
    """
    if touches:
        signed = [f"{ACTION_SIGNS[action]}{path}" for path, action in actions_by_path(touches).items()]
        more = (
            f" and {len(signed) - MOST_PATHS_PER_LOG_ROW} more"
            if len(signed) > MOST_PATHS_PER_LOG_ROW
            else ""
        )
        return ", ".join(signed[:MOST_PATHS_PER_LOG_ROW]) + more
    for name in ("path", "name"):
        if isinstance(logged.args.get(name), str):
            return str(logged.args[name])
    return next((value for value in logged.args.values() if isinstance(value, str)), "")


def net_diff(record: "WorkspaceJournal", touches: Iterable["RecordedTouch"]) -> str:
    """One unified diff per path from before its first change to after its last, joined.

    Paths whose old content is no longer kept are named instead.
    """
    return diff_of_changes(*net_changes(record, touches))


def diff_of_changes(changes: Sequence["Change"], gone: Iterable[str]) -> str:
    """The unified diffs of changes, joined, and the paths whose old content is no longer kept."""
    from handtools.core.changes import ChangeSet
    from handtools.runtime.approval.preview import changes_diff

    return changes_diff(ChangeSet(tuple(changes))) + "".join(
        f"{path}: the bytes are no longer kept\n" for path in gone
    )


def net_changes(
    record: "WorkspaceJournal", touches: Iterable["RecordedTouch"]
) -> tuple[list["Change"], list[str]]:
    """One change per path from before its first change to after its last; and paths without kept content."""
    by_path: dict[str, list[RecordedTouch]] = {}
    for touch in touches:
        by_path.setdefault(touch.path, []).append(touch)
    changes: list[Change] = []
    gone: list[str] = []
    for path, group in by_path.items():
        change = _net_change(record, path, group)
        if change is None:
            gone.append(path)
        elif not _is_folder(change) and change.before != change.after:
            changes.append(change)
    return changes, gone


def logged_to_json(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> dict[str, Any]:
    """A logged call as a JSON object, with its changed paths and whether it was undone."""
    from dataclasses import asdict

    changes = [{"path": path, "action": action} for path, action in actions_by_path(touches).items()]
    return asdict(logged) | {"args": dict(logged.args), "changes": changes, "undone": undone_state(touches)}


def _net_change(record: "WorkspaceJournal", path: str, group: Sequence["RecordedTouch"]) -> "Change | None":
    from handtools.core.changes import Change

    try:
        before, after = record.entries.node(group[0].before), record.entries.node(group[-1].after)
    except KeyError:
        return None
    return Change(path, before, after)


def _is_folder(change: "Change") -> bool:
    return "folder" in {node.kind for node in (change.before, change.after) if node}


DAY_SECONDS = 86_400.0
STATUS_STYLES = {"ok": "green", "pending": "yellow"} | dict.fromkeys(
    ("denied", "error", "timeout", "failed"), "red"
)
UNDONE_TEXT = {"no": "", "partly": " · partly undone", "yes": " · undone"}


def log(
    *,
    session: Annotated[
        str | None, typer.Option(help="Only this session.", autocompletion=completion.complete_sessions)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many calls.")] = 20,
    before: Annotated[
        int | None, typer.Option(help="Only calls before this number: the next page.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new calls as they end, until Ctrl-C.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List the recorded calls, newest first.

    Example: handtools log --session default --limit 5
    """
    with open_journal_at(workspace) as record:
        if follow:
            _follow_log(record, session, limit, as_json=as_json)
            return
        page = record.calls.page(session=session, before=before, limit=limit + 1)
        rows = [(logged, file_changes_of_call(record, logged.id)) for logged in page[:limit]]
        if as_json:
            for logged, touches in rows:
                print_json(logged_to_json(logged, touches))
            return
        if not rows:
            print_remark("No calls" + (f" of session {session}" if session else "") + " are recorded.")
            return
        _print_log(record, rows)
        if len(page) > limit:
            words = ["log", "--before", str(rows[-1][0].seq), "-n", str(limit)]
            older = record.suggested_command(*words, *(["--session", session] if session else []))
            print_remark("", f"Older: {older}")


def _print_log(record: WorkspaceJournal, rows: Sequence["Row"]) -> None:
    # A column that would say the same in every row says nothing.
    sessions = len({logged.session for logged, _ in rows}) > 1
    agents = any(logged.agent for logged, _ in rows)
    extra = [name for name, wanted in (("SESSION", sessions), ("AGENT", agents)) if wanted]
    shown = make_plain_table("WHEN", "CALL", "TOOL", "TOUCHED", "STATUS", *extra)
    for column in shown.columns[:3]:
        column.no_wrap = True
    for logged, touches in rows:
        more = [table_cell(getattr(logged, name.lower()), 24) for name in extra]
        what = table_cell(call_target_summary(logged, touches))
        when, short = format_log_time(logged.started), table_cell(record.calls.short(logged.id), 40)
        shown.add_row(when, short, table_cell(logged.tool), what, _status_text(logged, touches), *more)
    stdout_console().print(shown)


FOLLOW_INTERVAL_SECONDS = 0.5
MOST_CALLS_PER_LOG_POLL = 500
"""How many of the newest calls are looked at each time; of more that ended at once the oldest are left out."""


def _follow_log(record: WorkspaceJournal, session: str | None, limit: int, *, as_json: bool) -> None:
    """Print the newest calls, then each one that ends, or that is answered after it waited, until Ctrl-C."""
    known: dict[str, str] = {}
    first = True
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            page = record.calls.page(session=session, limit=limit if first else MOST_CALLS_PER_LOG_POLL)
            for logged in reversed(page):
                if known.get(logged.id) != logged.status:
                    known[logged.id] = logged.status
                    _print_followed(record, logged, as_json=as_json)
            if first:
                # What is older was not asked for.
                older = record.calls.page(session=session, limit=MOST_CALLS_PER_LOG_POLL)
                known |= {logged.id: logged.status for logged in older[limit:]}
                first = False
            time.sleep(FOLLOW_INTERVAL_SECONDS)


def _print_followed(record: WorkspaceJournal, logged: "LoggedCall", *, as_json: bool) -> None:
    touches = file_changes_of_call(record, logged.id)
    if as_json:
        print_json(logged_to_json(logged, touches))
        sys.stdout.flush()
        return
    from rich.text import Text

    words: list[str | Text] = [
        f"{format_log_time(logged.started)}  {table_cell(record.calls.short(logged.id), 40)}  {logged.tool:<10}  ",
        f"{table_cell(call_target_summary(logged, touches))}  ",
        _status_text(logged, touches),
        f"  {table_cell(' '.join(filter(None, (logged.session, logged.agent))), 40)}",
    ]
    console = stdout_console()
    console.print(Text.assemble(*words), soft_wrap=True)
    console.file.flush()


def format_log_time(at: float) -> str:
    """Format a Unix time for people: the time of day if it is at most 12 hours ago, else date and time."""
    recent = 0 <= time.time() - at < DAY_SECONDS / 2
    return time.strftime("%H:%M:%S" if recent else "%Y-%m-%d %H:%M", time.localtime(at))


def _status_text(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> "Text":
    from rich.text import Text

    # A denial's code says the same word again.
    code = f" {logged.code}" if logged.code not in {"", logged.status} else ""
    back = UNDONE_TEXT[undone_state(touches)]
    return Text.assemble((logged.status, STATUS_STYLES.get(logged.status, "")), code, (back, "dim"))
