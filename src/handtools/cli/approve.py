"""CLI commands `handtools pending`, `approve` and `deny`: list calls that wait for approval, and answer them."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at, open_toolbox_at
from handtools.cli.results import exit_code, print_result
from handtools.cli.terminal import (
    CommandStopped,
    plain_table,
    print_json,
    print_remark,
    stdout_console,
    table_cell,
)
from handtools.core.approval import Approval, RememberScope, Reply


def pending(
    as_json: options.JsonOption = False, workspace: options.WorkspaceOption = options.CURRENT_FOLDER
) -> None:
    """List the calls that wait for an answer."""
    with open_journal_at(workspace) as record:
        waiting = record.calls.waiting()
        if as_json:
            for approval in waiting:
                print_json(asdict(approval))
        elif waiting:
            _print_waiting(record, waiting)
        else:
            print_remark("Nothing is waiting for an answer.")


def approve(
    call_id: options.CallArgument,
    remember: Annotated[
        RememberScope, typer.Option(help="once, or also for the like of it in this session or project.")
    ] = "once",
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Say yes to a pending call.

    It runs now, with a grant for exactly what was asked.
    """
    _answer_call(workspace, call_id, Reply(allow=True, remember=remember), as_json=as_json)


def deny(
    call_id: options.CallArgument,
    message: Annotated[
        str, typer.Option("--message", "-m", help="Tells the agent what to do instead.")
    ] = "",
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Say no to a pending call.

    Nothing happens, and the agent is told.
    """
    _answer_call(workspace, call_id, Reply(allow=False, message=message), as_json=as_json)


def _answer_call(workspace: Path, name: str, reply: Reply, *, as_json: bool) -> None:
    with open_toolbox_at(workspace, plugins=True) as (toolbox, record):
        call_id = record.named(name)
        asked = _waiting_approval(record, call_id)
        result = toolbox.resume(call_id, replace(reply, fingerprint=asked.fingerprint))
        refused = not reply.allow and result.status == "denied"
        if refused and not as_json:
            print_remark(f"Denied; nothing was changed. Call {record.calls.short(call_id)} is told so.")
        else:
            print_result(result, call_id, record, as_json=as_json)
    # A denial is what `deny` is for: it did what was asked of it.
    raise typer.Exit(0 if refused else exit_code(result))


def _waiting_approval(record: WorkspaceJournal, call_id: str) -> Approval:
    kept = record.calls.suspended(call_id)
    if kept is None:
        logged = record.calls.find(call_id)
        ended = f" It ended as {logged.status}." if logged else ""
        step = f"`{record.step('pending')}` lists the calls that do."
        raise CommandStopped(
            f"Call {record.calls.short(call_id)} is not waiting for an answer.{ended}", step
        )
    return kept.approval


def _print_waiting(record: WorkspaceJournal, waiting: list[Approval]) -> None:
    rows = plain_table("CALL", "WHAT", "ASKED BY")
    for approval in waiting:
        short = record.calls.short(approval.call_id)
        rows.add_row(short, table_cell(approval.title, 80), table_cell(approval.rule, 80))
    stdout_console().print(rows)
    last = record.calls.short(waiting[-1].call_id)
    words = [record.step(word, last) for word in ("show", "approve", "deny")]
    print_remark("", f"Next: {'   '.join(words)}")
