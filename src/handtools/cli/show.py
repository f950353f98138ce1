"""CLI command `handtools show`: print one recorded call with its arguments, result and file changes."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handtools.cli import options
from handtools.cli.log import UNDONE_TEXT, format_log_time, logged_to_json
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.results import diff_in_details
from handtools.cli.terminal import (
    CliCommandError,
    print_approval,
    print_diff,
    print_json,
    print_remark,
    print_text,
    stdout_console,
)
from handtools.record.recorded_changes import file_changes_of_call, net_diff_text, undone_state
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.core.result import Result
    from handtools.runtime.journal import LoggedCall, RecordedTouch

SHOWN_ARGUMENT_LINES = 12


def show(
    call_id: options.CallArgument,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Show one call: its arguments, result and diff.

    Example: handtools show 3f2a
    """
    from handtools.core.result import result_from_json

    with open_journal_at(workspace) as record:
        named = record.find_call_id(call_id)
        logged, recalled = record.calls.find(named), record.calls.recall(named)
        if logged is None or recalled is None:
            raise CliCommandError(
                f"Call `{named}` was just deleted.",
                f"`{record.suggested_command('log')}` lists the calls.",
            )
        touches = file_changes_of_call(record, named)
        diff = net_diff_text(record, touches)
        if as_json:
            print_json({"call": logged_to_json(logged, touches), "result": recalled, "diff": diff})
            return
        _print_call(logged, touches)
        _print_result(record, result_from_json(recalled), diff)
        _print_next_steps(record, record.calls.short(named), logged.status, touches)


def _print_call(logged: "LoggedCall", touches: Sequence["RecordedTouch"]) -> None:
    seconds = logged.ended - logged.started
    status = f"{logged.status} {logged.code if logged.code != logged.status else ''}".rstrip()
    facts = {
        "call": logged.id,
        "change": str(touches[0].entry) if touches else "",
        "tool": logged.tool,
        "when": f"{format_log_time(logged.started)}, took {seconds * 1000:,.0f} ms",
        "status": status + UNDONE_TEXT[undone_state(touches)],
        "session": "/".join(filter(None, (logged.session, logged.turn))),
        "agent": logged.agent,
        "parent": logged.parent,
    }
    for name, value in facts.items():
        if value:
            stdout_console().print(f"{name:<9}{with_visible_characters(value)}", soft_wrap=True)
    if logged.args:
        _print_heading("arguments")
        _print_arguments(logged.args)


def _print_arguments(args: Mapping[str, Any]) -> None:
    for name, value in args.items():
        lines = (value if isinstance(value, str) else json.dumps(value)).split("\n")
        if len(lines) == 1:
            print_text(f"  {name}: {lines[0]}")
            continue
        kept = [f"    {line}" for line in lines[:SHOWN_ARGUMENT_LINES]]
        if len(lines) > SHOWN_ARGUMENT_LINES:
            kept.append(f"    … {len(lines) - SHOWN_ARGUMENT_LINES} more lines; --json has them all")
        print_text("\n".join([f"  {name}:", *kept]))


def _print_result(journal: WorkspaceJournal, result: "Result[Any]", diff: str) -> None:
    # The full diff is printed once, below.
    text = (
        result.text.replace(diff_in_details(result.details) or "\0", "").rstrip("\n")
        if diff
        else result.text
    )
    _print_heading("result")
    print_text("\n".join(f"  {line}" for line in text.split("\n")))
    if result.request is not None:
        print_approval(
            stdout_console(),
            result.request,
            journal.suggested_command("show", result.request.call_id, "--json"),
        )
    if diff:
        _print_heading("changes")
        print_diff(diff)


def _print_next_steps(
    journal: WorkspaceJournal, short: str, status: str, touches: Sequence["RecordedTouch"]
) -> None:
    words = [(word, short) for word in ("approve", "deny")] if status == "pending" else []
    if touches:
        words = [("redo" if undone_state(touches) == "yes" else "undo", str(touches[0].entry))]
    if words:
        print_remark("", "Next: " + "   ".join(journal.suggested_command(*command) for command in words))


def _print_heading(name: str) -> None:
    stdout_console().print(f"\n{name}", style="bold")
