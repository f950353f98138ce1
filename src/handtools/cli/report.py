"""CLI command `handtools report`: write a session's calls to an HTML page."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import completed_values, options
from handtools.cli.diff import line_counts
from handtools.cli.log import format_log_time
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.results import diff_in_details
from handtools.cli.terminal import CliCommandError, print_json, print_remark, with_progress_bar
from handtools.core.undo import PERSON_AGENT_NAME
from handtools.record.recorded_changes import (
    call_target_summary,
    file_changes_of_call,
    net_changes_and_lost_paths,
    undone_state,
    unified_diff_of_changes,
)
from handtools.text.plurals import number_with_noun
from handtools.text.truncation import collapse_to_one_line

if TYPE_CHECKING:
    from handtools.cli.html_report import ReportedCall, ReportedFile, ReportedQuestion
    from handtools.core.changes import Change
    from handtools.runtime.journal import LoggedCall, RecordedTouch

MAX_REPORTED_CALLS = 5_000
MAX_COMMAND_CHARS = 80
OWN_CALLS_LOOKED_AT = 100
"""How many of a session's newest calls to check for one made by an agent."""
REFUSED_MATCHES = {"no_match", "many_matches"}
"""Error codes of edits whose old text was not found, or was found more than once."""
REMEMBERED_WORDS = {"once": "once", "session": "for this session", "project": "for this project"}
UNDONE_WORDS = {"no": "", "partly": "partly undone", "yes": "undone"}


def report(
    session: Annotated[
        str | None,
        typer.Option(
            help="Session to report [default: the last one].",
            autocompletion=completed_values.complete_sessions,
        ),
    ] = None,
    file: Annotated[Path, typer.Option("--file", "-o", help="Output file.")] = Path("report.html"),
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=1, max=MAX_REPORTED_CALLS, help="Number of calls, newest first."),
    ] = MAX_REPORTED_CALLS,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Write an HTML session report: calls, diffs and statistics.

    The page is self-contained: it opens from disk and loads nothing from the network.

    Example: handtools report -o session.html
    """
    from handtools.cli.html_report import html_report

    with open_journal_at(workspace) as record:
        name = session if session is not None else _last_session(record)
        if name is None:
            raise CliCommandError(
                "No call is recorded here.",
                f"Make one with `{record.suggested_command('call', 'TOOL')} …`.",
            )
        page = record.calls.page(session=name, limit=limit)[::-1]
        if not page:
            raise CliCommandError(
                f"No calls of session `{name}` are recorded.",
                f"`{record.suggested_command('sessions')}` lists the sessions.",
            )
        calls = [reported_call(record, logged) for logged in with_progress_bar(page, "Reading calls")]
        folder = workspace.resolve().name
        text = html_report(f"Session {name} in {folder}" if name else f"Calls in {folder}", calls)
        size = file.write_text(text, "utf-8")
    if as_json:
        print_json({"file": str(file), "session": name, "calls": len(calls), "bytes": size})
    else:
        print_remark(f"{file}: {number_with_noun(len(calls), 'call')}, {size / 1000:,.0f} kB.")


def _last_session(journal: WorkspaceJournal) -> str | None:
    """The last session with calls by an agent; None if there is none."""
    for session in journal.calls.sessions():
        calls = journal.calls.page(session=session.name, limit=OWN_CALLS_LOOKED_AT)
        if any(call.agent != PERSON_AGENT_NAME for call in calls):
            return session.name
    return None


def reported_call(journal: WorkspaceJournal, logged: "LoggedCall") -> "ReportedCall":
    """A recorded call with its diff, result and approval requests, for the report and the live view."""
    from handtools.cli.html_report import ReportedCall
    from handtools.core.result import result_from_json

    touches = file_changes_of_call(journal, logged.id)
    recalled = journal.calls.recall(logged.id)
    result = result_from_json(recalled) if recalled else None
    changes, gone = net_changes_and_lost_paths(journal, touches)
    diff = unified_diff_of_changes(changes, gone)
    details: Any = result.details if result else None
    told = diff_in_details(details) if diff else None
    undone = undone_state(touches)
    short = journal.calls.short(logged.id)
    undo = journal.suggested_command("undo", str(touches[0].entry)) if touches and undone != "yes" else ""
    return ReportedCall(
        id=short,
        tool=logged.tool,
        subject=_call_subject(logged, touches),
        at=format_log_time(logged.started),
        # Not the time from start to end, which includes waiting for approval.
        seconds=result.usage.seconds if result else max(logged.ended - logged.started, 0.0),
        tokens=result.usage.tokens if result else 0,
        status=logged.status,
        code=logged.code,
        undone=UNDONE_WORDS[undone],
        agent=logged.agent,
        arguments="\n".join(argument_lines(logged.args.items())),
        # The full diff is shown once, below.
        answer=(result.text.replace(told, "") if told else result.text).rstrip("\n") if result else "",
        diff=diff,
        files=_reported_files(changes, gone),
        match=_edit_match_outcome(logged, details),
        undo_command=undo,
        began=logged.started,
        ended=logged.ended,
        questions=tuple(_reported_questions(journal, logged)),
    )


def _reported_questions(journal: WorkspaceJournal, logged: "LoggedCall") -> "Iterable[ReportedQuestion]":
    from handtools.cli.html_report import ReportedQuestion

    for question in journal.calls.answered_questions(logged.id):
        reply = question.reply
        answer = f"allowed {REMEMBERED_WORDS[reply.remember]}" if reply.allow else "denied"
        yield ReportedQuestion(question.title, question.rule, answer, reply.message)
    waiting = journal.calls.suspended(logged.id) if logged.status == "pending" else None
    if waiting is not None:
        yield ReportedQuestion(waiting.approval.title, waiting.approval.rule, "waiting for approval")


def _call_subject(logged: "LoggedCall", touches: "Sequence[RecordedTouch]") -> str:
    """What a call changed or acted on; if a command changed something, `COMMAND → PATHS`."""
    told, command = call_target_summary(logged, touches), logged.args.get("command")
    return (
        f"{collapse_to_one_line(command, MAX_COMMAND_CHARS)} → {told}"
        if touches and isinstance(command, str)
        else told
    )


def _edit_match_outcome(logged: "LoggedCall", details: Any) -> str:
    if logged.code in REFUSED_MATCHES:
        return f"refused: {logged.code}"
    return (details.get("tier") or "") if isinstance(details, dict) else ""


def argument_lines(args: Iterable[tuple[str, Any]]) -> Iterable[str]:
    """The arguments of a call, one per line; a multi-line value starts below its name."""
    for name, value in args:
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _reported_files(changes: Iterable["Change"], gone: Iterable[str]) -> "tuple[ReportedFile, ...]":
    from handtools.cli.html_report import ReportedFile

    found = [ReportedFile(change.path, *line_counts(change)) for change in changes]
    return (*found, *(ReportedFile(path, None, None) for path in gone))
