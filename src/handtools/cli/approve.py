"""CLI commands `handtools pending`, `approve` and `deny`: list calls that wait for approval, and answer them.

ADR 291.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import completed_values, options
from handtools.cli.call import starts_job, stream_output
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at, open_toolbox_at
from handtools.cli.results import exit_code, print_result
from handtools.cli.terminal import (
    CliCommandError,
    ask_yes_no,
    is_interactive,
    make_plain_table,
    print_approval,
    print_json,
    print_remark,
    refuse_agent_shell,
    stderr_console,
    stdout_console,
    table_cell,
)
from handtools.core.approval import Approval, RememberScope, Reply

if TYPE_CHECKING:
    from handtools.runtime.journal.calls import PendingCall


WaitingArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="A call id or the start of one; else the only one that waits.",
        autocompletion=completed_values.complete_waiting_ids,
    ),
]


def pending(
    as_json: options.JsonOption = False, workspace: options.WorkspaceOption = options.CURRENT_FOLDER
) -> None:
    """List the calls that wait for an answer.

    Example: handtools pending --json
    """
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
    call_id: WaitingArgument = None,
    remember: Annotated[
        RememberScope, typer.Option(help="once, or also for the like of it in this session or project.")
    ] = "once",
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Say yes to a pending call.

    What it wants is shown first; it runs with a grant for exactly that. Without an id it is the only one that
    waits, and you are asked; where there is no terminal to ask at, give the id or --yes. The shell of an agent is
    refused: it can't answer for you.

    Example: handtools approve 3f2a --remember session
    """
    refuse_agent_shell()
    _answer_call(workspace, call_id, Reply(allow=True, remember=remember), is_sure=yes, as_json=as_json)


def deny(
    call_id: WaitingArgument = None,
    message: Annotated[
        str, typer.Option("--message", "-m", help="Tells the agent what to do instead.")
    ] = "",
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Say no to a pending call.

    Nothing happens, and the agent is told.

    Example: handtools deny 3f2a --message 'Use the staging database.'
    """
    _answer_call(workspace, call_id, Reply(allow=False, message=message), is_sure=True, as_json=as_json)


def _answer_call(workspace: Path, name: str | None, reply: Reply, *, is_sure: bool, as_json: bool) -> None:
    with open_toolbox_at(workspace, plugins=True) as (toolbox, record):
        call_id = record.find_call_id(name) if name is not None else _only_waiting(record)
        kept = _waiting_call(record, call_id)
        asked = kept.approval
        out_of_reach = reply.allow and _is_out_of_reach(record, kept)
        if out_of_reach and reply.remember == "once":
            short = record.calls.short(call_id)
            again = record.suggested_command("approve", short, "--remember", "session")
            raise CliCommandError(
                "Its job belongs to the agent's own process, which does not wait for this answer.",
                f"`{again}` allows it when the agent asks again; an answer in `handtools watch` reaches it.",
            )
        if reply.allow and not as_json:
            print_approval(
                stderr_console(), asked, record.suggested_command("show", record.calls.short(call_id))
            )
        if name is None and not is_sure and not is_interactive():
            again = record.suggested_command("approve", record.calls.short(call_id))
            raise CliCommandError(
                "There is no terminal to ask at.", f"Name the call, `{again}`, or say --yes."
            )
        if name is None and not is_sure and not ask_yes_no(stderr_console(), "Allow it?"):
            step = f"To say no: {record.suggested_command('deny', record.calls.short(call_id))}"
            raise CliCommandError("It still waits for an answer.", step)
        if out_of_reach:
            reply = _store_for_next_call(record, kept, reply)
        streamed = None if as_json else stream_output(toolbox, kept.call.tool)
        result = toolbox.resume(call_id, replace(reply, fingerprint=asked.fingerprint))
        refused = not reply.allow and result.status == "denied"
        if as_json or not refused:
            print_result(result, call_id, record, as_json=as_json, streamed=streamed)
        elif out_of_reach:
            print_remark("Stored; nothing was done yet. You are not asked when the agent calls again.")
        else:
            print_remark(f"Denied; nothing was changed. Call {record.calls.short(call_id)} is told so.")
    # A denial is what `deny` is for: it did what was asked of it.
    raise typer.Exit(0 if refused else exit_code(result))


def _is_out_of_reach(record: WorkspaceJournal, kept: "PendingCall") -> bool:
    """Whether a call is about a job, which lives in the process of its agent, and that one does not wait."""
    waited_for = record.journal.answers.calls_with_waiting_process()
    about_job = kept.call.tool == "jobs" or starts_job(kept.call.tool, kept.call.args)
    return about_job and kept.call.id not in waited_for


def _store_for_next_call(record: WorkspaceJournal, kept: "PendingCall", reply: Reply) -> Reply:
    """Store a lasting yes; returns the answer with which this call ends without being run here."""
    from handtools.runtime.approval.gate import settle_reply

    settle_reply(record.journal, kept.call, kept.approval, reply)
    return Reply(allow=False, message="It is allowed from now on: send the call again.")


def _only_waiting(record: WorkspaceJournal) -> str:
    """The id of the only call that waits; raises `CliCommandError` when none or several do."""
    waiting = record.calls.waiting()
    if not waiting:
        raise CliCommandError(
            "Nothing is waiting for an answer.", f"`{record.suggested_command('log')}` lists the calls."
        )
    if len(waiting) > 1:
        step = f"Give the id of one; `{record.suggested_command('pending')}` lists them."
        raise CliCommandError(f"{len(waiting)} calls wait for an answer.", step)
    return waiting[0].call_id


def _waiting_call(record: WorkspaceJournal, call_id: str) -> "PendingCall":
    kept = record.calls.suspended(call_id)
    if kept is None:
        logged = record.calls.find(call_id)
        ended = f" It ended as {logged.status}." if logged else ""
        step = f"`{record.suggested_command('pending')}` lists the calls that do."
        raise CliCommandError(
            f"Call {record.calls.short(call_id)} is not waiting for an answer.{ended}", step
        )
    return kept


def _print_waiting(record: WorkspaceJournal, waiting: list[Approval]) -> None:
    rows = make_plain_table("CALL", "WHAT", "ASKED BY")
    for approval in waiting:
        short = record.calls.short(approval.call_id)
        rows.add_row(short, table_cell(approval.title, 80), table_cell(approval.rule, 80))
    stdout_console().print(rows)
    last = record.calls.short(waiting[-1].call_id)
    words = [record.suggested_command(word, last) for word in ("show", "approve", "deny")]
    print_remark("", f"Next: {'   '.join(words)}")
