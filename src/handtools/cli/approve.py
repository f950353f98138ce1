"""CLI commands `handtools pending`, `approve` and `deny`: list and answer calls that wait for approval."""

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
        help="Call id or prefix [default: the only pending call].",
        autocompletion=completed_values.complete_waiting_ids,
    ),
]


def pending(
    as_json: options.JsonOption = False, workspace: options.WorkspaceOption = options.CURRENT_FOLDER
) -> None:
    """List the calls that wait for approval.

    Example: handtools pending --json
    """
    with open_journal_at(workspace) as record:
        waiting = record.calls.waiting()
        if as_json:
            for approval in waiting:
                print_json(asdict(approval))
        elif waiting:
            _print_pending_calls(record, waiting)
        else:
            print_remark("No calls are waiting for approval.")


def approve(
    call_id: WaitingArgument = None,
    remember: Annotated[
        RememberScope, typer.Option(help="Also allow similar calls in this session or project.")
    ] = "once",
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Approve a pending call and run it.

    Shows the request first, and allows exactly that. Without an id, it selects the only pending call and
    asks you to confirm; without a terminal, pass the id or --yes. Agents can't run this command from their
    shells.

    Example: handtools approve 3f2a --remember session
    """
    refuse_agent_shell()
    _answer_call(workspace, call_id, Reply(allow=True, remember=remember), is_sure=yes, as_json=as_json)


def deny(
    call_id: WaitingArgument = None,
    message: Annotated[
        str, typer.Option("--message", "-m", help="Tell the agent what to do instead.")
    ] = "",
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Deny a pending call.

    The call does not run, and the agent is told that you denied it.

    Example: handtools deny 3f2a --message 'Use the staging database.'
    """
    _answer_call(workspace, call_id, Reply(allow=False, message=message), is_sure=True, as_json=as_json)


def _answer_call(workspace: Path, name: str | None, reply: Reply, *, is_sure: bool, as_json: bool) -> None:
    with open_toolbox_at(workspace, plugins=True) as (toolbox, record):
        call_id = record.find_call_id(name) if name is not None else _id_of_only_pending_call(record)
        kept = _pending_call(record, call_id)
        asked = kept.approval
        out_of_reach = reply.allow and _is_job_of_other_process(record, kept)
        if out_of_reach and reply.remember == "once":
            short = record.calls.short(call_id)
            again = record.suggested_command("approve", short, "--remember", "session")
            raise CliCommandError(
                "The job runs in the agent's process, which is not waiting for this answer.",
                f"`{again}` allows the call when the agent repeats it; or answer in `handtools watch`.",
            )
        if reply.allow and not as_json:
            print_approval(
                stderr_console(), asked, record.suggested_command("show", record.calls.short(call_id))
            )
        if name is None and not is_sure and not is_interactive():
            again = record.suggested_command("approve", record.calls.short(call_id))
            raise CliCommandError("No terminal to confirm on.", f"Pass the call's id, `{again}`, or --yes.")
        if name is None and not is_sure and not ask_yes_no(stderr_console(), "Allow it?"):
            step = f"To deny it: {record.suggested_command('deny', record.calls.short(call_id))}"
            raise CliCommandError("The call is still waiting for approval.", step)
        if out_of_reach:
            reply = _store_approval_for_next_call(record, kept, reply)
        streamed = None if as_json else stream_output(toolbox, kept.call.tool)
        result = toolbox.resume(call_id, replace(reply, fingerprint=asked.fingerprint))
        refused = not reply.allow and result.status == "denied"
        if as_json or not refused:
            print_result(result, call_id, record, as_json=as_json, streamed=streamed)
        elif out_of_reach:
            print_remark("Stored; nothing has run yet. The call is allowed when the agent repeats it.")
        else:
            print_remark(f"Denied call {record.calls.short(call_id)}; nothing was changed.")
    # For `deny`, a denied call is success.
    raise typer.Exit(0 if refused else exit_code(result))


def _is_job_of_other_process(journal: WorkspaceJournal, pending: "PendingCall") -> bool:
    """Whether a call is about a background job, and the agent's process that runs it is not waiting."""
    waited_for = journal.journal.answers.calls_with_waiting_process()
    about_job = pending.call.tool == "jobs" or starts_job(pending.call.tool, pending.call.args)
    return about_job and pending.call.id not in waited_for


def _store_approval_for_next_call(journal: WorkspaceJournal, pending: "PendingCall", reply: Reply) -> Reply:
    """Store an approval for when the agent repeats the call.

    Returns the reply that ends this call without running it.
    """
    from handtools.runtime.approval.gate import settle_reply

    settle_reply(journal.journal, pending.call, pending.approval, reply)
    return Reply(allow=False, message="The call is allowed now: send it again.")


def _id_of_only_pending_call(journal: WorkspaceJournal) -> str:
    """The id of the only pending call; raises `CliCommandError` if there are none or several."""
    waiting = journal.calls.waiting()
    if not waiting:
        raise CliCommandError(
            "No calls are waiting for approval.", f"`{journal.suggested_command('log')}` lists the calls."
        )
    if len(waiting) > 1:
        step = f"Pass the id of one; `{journal.suggested_command('pending')}` lists them."
        raise CliCommandError(f"{len(waiting)} calls are waiting for approval.", step)
    return waiting[0].call_id


def _pending_call(journal: WorkspaceJournal, call_id: str) -> "PendingCall":
    kept = journal.calls.suspended(call_id)
    if kept is None:
        logged = journal.calls.find(call_id)
        ended = f" It ended as {logged.status}." if logged else ""
        step = f"`{journal.suggested_command('pending')}` lists the calls that are."
        raise CliCommandError(
            f"Call {journal.calls.short(call_id)} is not waiting for approval.{ended}", step
        )
    return kept


def _print_pending_calls(journal: WorkspaceJournal, pending_approvals: list[Approval]) -> None:
    rows = make_plain_table("CALL", "REQUEST", "REASON")
    for approval in pending_approvals:
        short = journal.calls.short(approval.call_id)
        rows.add_row(short, table_cell(approval.title, 80), table_cell(approval.rule, 80))
    stdout_console().print(rows)
    last = journal.calls.short(pending_approvals[-1].call_id)
    words = [journal.suggested_command(word, last) for word in ("show", "approve", "deny")]
    print_remark("", f"Next: {'   '.join(words)}")
