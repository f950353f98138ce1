"""CLI commands `handtools log` and `sessions`: list recorded tool calls, or sessions, newest first."""

import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.terminal import make_plain_table, print_json, print_remark, stdout_console, table_cell
from handtools.record.recorded_changes import (
    call_target_summary,
    change_actions_by_path,
    file_changes_of_call,
    undone_state,
)

if TYPE_CHECKING:
    from rich.text import Text

    from handtools.runtime.journal import LoggedCall, RecordedTouch

    Row = tuple[LoggedCall, list[RecordedTouch]]


def logged_to_json(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> dict[str, Any]:
    """A logged call as a JSON object, with its changed paths and whether it was undone."""
    from dataclasses import asdict

    changes = [{"path": path, "action": action} for path, action in change_actions_by_path(touches).items()]
    change = touches[0].entry if touches else None
    facts = {"args": dict(logged.args), "change": change, "changes": changes}
    return asdict(logged) | facts | {"undone": undone_state(touches)}


DAY_SECONDS = 86_400.0
STATUS_STYLES = {"ok": "green", "pending": "yellow"} | dict.fromkeys(
    ("denied", "error", "timeout", "failed"), "red"
)
UNDONE_TEXT = {"no": "", "partly": " · partly undone", "yes": " · undone"}


def log(
    *,
    session: Annotated[
        str | None,
        typer.Option(help="Only this session.", autocompletion=completed_values.complete_sessions),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of calls to list.")] = 20,
    before: Annotated[int | None, typer.Option(help="Only calls before this number (for paging).")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new calls as they end, until Ctrl-C.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List recorded calls, newest first.

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
            step = f" Next: {record.suggested_command('sessions')}" if session else ""
            of = f" of session {session}" if session else ""
            print_remark(f"No calls{of} are recorded.{step}")
            return
        _print_log(record, rows)
        if len(page) > limit:
            words = ["log", "--before", str(rows[-1][0].seq), "-n", str(limit)]
            older = record.suggested_command(*words, *(["--session", session] if session else []))
            print_remark("", f"Older: {older}")


def _print_log(journal: WorkspaceJournal, rows: Sequence["Row"]) -> None:
    # Leave out columns that would have the same value in every row.
    sessions = len({logged.session for logged, _ in rows}) > 1
    agents = any(logged.agent for logged, _ in rows)
    changes = ["CHANGE"] if any(touches for _, touches in rows) else []
    extra = [name for name, wanted in (("SESSION", sessions), ("AGENT", agents)) if wanted]
    shown = make_plain_table("WHEN", "CALL", *changes, "TOOL", "TOUCHED", "STATUS", *extra)
    for column in shown.columns[: 3 + len(changes)]:
        column.no_wrap = True
    for logged, touches in rows:
        more = [table_cell(getattr(logged, name.lower()), 24) for name in extra]
        what = table_cell(call_target_summary(logged, touches))
        when, short = format_log_time(logged.started), table_cell(journal.calls.short(logged.id), 40)
        change = [str(touches[0].entry) if touches else ""] if changes else []
        shown.add_row(
            when, short, *change, table_cell(logged.tool), what, _coloured_status(logged, touches), *more
        )
    stdout_console().print(shown)


FOLLOW_INTERVAL_SECONDS = 0.5
MAX_CALLS_PER_LOG_POLL = 500
"""How many of the newest calls each poll reads; if more ended between two polls, the oldest are skipped."""


def _follow_log(journal: WorkspaceJournal, session: str | None, limit: int, *, as_json: bool) -> None:
    """Print the newest calls, then each call that ends or whose approval is answered, until Ctrl-C."""
    known: dict[str, str] = {}
    first = True
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            page = journal.calls.page(session=session, limit=limit if first else MAX_CALLS_PER_LOG_POLL)
            for logged in reversed(page):
                if known.get(logged.id) != logged.status:
                    known[logged.id] = logged.status
                    _print_followed_call(journal, logged, as_json=as_json)
            if first:
                # Calls beyond `limit` are not printed: mark them as known.
                older = journal.calls.page(session=session, limit=MAX_CALLS_PER_LOG_POLL)
                known |= {logged.id: logged.status for logged in older[limit:]}
                first = False
            time.sleep(FOLLOW_INTERVAL_SECONDS)


def _print_followed_call(journal: WorkspaceJournal, logged: "LoggedCall", *, as_json: bool) -> None:
    touches = file_changes_of_call(journal, logged.id)
    if as_json:
        print_json(logged_to_json(logged, touches))
        sys.stdout.flush()
        return
    from rich.text import Text

    words: list[str | Text] = [
        f"{format_log_time(logged.started)}  ",
        f"{table_cell(journal.calls.short(logged.id), 40)}  {logged.tool:<10}  ",
        f"{table_cell(call_target_summary(logged, touches))}  ",
        _coloured_status(logged, touches),
        f"  {table_cell(' '.join(filter(None, (logged.session, logged.agent))), 40)}",
    ]
    console = stdout_console()
    console.print(Text.assemble(*words), soft_wrap=True)
    console.file.flush()


def format_log_time(at: float) -> str:
    """Format a Unix time: the time of day if it is less than 12 hours ago, otherwise date and time."""
    recent = 0 <= time.time() - at < DAY_SECONDS / 2
    return time.strftime("%H:%M:%S" if recent else "%Y-%m-%d %H:%M", time.localtime(at))


def _coloured_status(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> "Text":
    from rich.text import Text

    # A denial's code equals its status; don't print it twice.
    code = f" {logged.code}" if logged.code not in {"", logged.status} else ""
    back = UNDONE_TEXT[undone_state(touches)]
    return Text.assemble((logged.status, STATUS_STYLES.get(logged.status, "")), code, (back, "dim"))


def sessions(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of sessions to list.")] = 20,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List sessions, most recently active first.

    Example: handtools sessions --limit 5
    """
    with open_journal_at(workspace) as record:
        found = record.calls.sessions(limit)
        if as_json:
            for session in found:
                print_json(asdict(session))
            return
        if not found:
            print_remark("No calls are recorded.")
            return
        rows = make_plain_table("SESSION", "CALLS", "CHANGED", "FIRST", "LAST", "AGENTS")
        for session in found:
            rows.add_row(
                table_cell(session.name, 40),
                f"{session.calls:,}",
                f"{session.standing:,}" if session.standing else "",
                format_log_time(session.started),
                format_log_time(session.ended),
                table_cell(session.agents, 40),
            )
        stdout_console().print(rows)
        words = [
            record.suggested_command(word, "--session", found[0].name) for word in ("log", "diff", "undo")
        ]
        print_remark("", f"Next: {'   '.join(words)}")
