"""CLI command `handtools call`: run one tool, under the same policy and journal as an agent's call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import WorkspaceJournal, open_toolbox_at
from handtools.cli.options import parse_tool_arguments
from handtools.cli.results import exit_code, print_result
from handtools.cli.terminal import (
    ask_approval,
    is_interactive,
    pass_on_lines,
    print_remark,
    refuse_agent_shell,
)

if TYPE_CHECKING:
    from handtools.cli.streamed_output import CommandOutputPrinter
    from handtools.core.result import Result
    from handtools.toolbox import BlockingToolbox

_BACKGROUND_NAMES = ("background", "run_in_background", "is_background")
_NO_JOBS = (
    "A background job ends with the process that started it, and `handtools call` exits after the call. "
    "Omit `background` and do everything in one script (`server & …; kill %1`), or start the job from a "
    "process that keeps running: a client of `handtools mcp`, or Python."
)


def starts_job(tool: str, args: Mapping[str, Any]) -> bool:
    """Whether a call starts a background job, by `background` or one of its aliases."""
    return tool == "bash" and any(map(args.get, _BACKGROUND_NAMES))


def call(
    tool: Annotated[
        str,
        typer.Argument(
            help="Tool name; `handtools tools` lists them.",
            autocompletion=completed_values.complete_tools,
        ),
    ],
    pairs: options.KeyValueArguments = None,
    *,
    as_json: options.JsonOption = False,
    call_id: Annotated[
        str, typer.Option("--id", help="Idempotency key: repeating it returns the logged result.")
    ] = "",
    session: Annotated[
        str,
        typer.Option(help="Session of the call.", autocompletion=completed_values.complete_sessions),
    ] = "default",
    turn: Annotated[str, typer.Option(help="Turn within the session.")] = "",
    agent: Annotated[str, typer.Option(help="Name of the calling agent.")] = "",
    yes: options.YesOption = False,
    runner: options.RunnerOption = "",
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Run one tool, as an agent would.

    The same policy applies, and the call is logged and can be undone. Exits with 0 on success, 1 if the
    call or its command failed or was denied, 3 if it waits for approval.

    Example: handtools call read path=README.md limit=20
    """
    args = parse_tool_arguments(pairs)
    if starts_job(tool, args):
        raise typer.BadParameter(_NO_JOBS)
    if yes:
        refuse_agent_shell()
    from handtools.core.call import Call, new_call_id

    request_call = Call(
        tool=tool, args=args, id=call_id or new_call_id(), session=session, turn=turn, agent=agent
    )
    with open_toolbox_at(workspace, plugins=True, yes=yes, runner=runner) as (toolbox, record):
        if call_id and record.calls.recall(call_id) is not None:
            print_remark("This id was used before; this is the logged result.")
        streamed = None if as_json else stream_output(toolbox, tool)
        result = toolbox.call(request_call)
        if not as_json and is_interactive():
            result = ask_in_terminal_and_resume(toolbox, record, request_call.id, result)
        print_result(result, request_call.id, record, as_json=as_json, streamed=streamed)
    raise typer.Exit(exit_code(result))


def stream_output(toolbox: "BlockingToolbox", tool: str) -> "CommandOutputPrinter | None":
    """Attach a printer that shows a command's output while it runs; None if the tool runs no commands."""
    from handtools.cli.streamed_output import STREAMED_TOOLS, CommandOutputPrinter

    if tool not in STREAMED_TOOLS:
        return None
    printer = CommandOutputPrinter(toolbox.toolbox.workspace.output_store, pass_on_lines)
    toolbox.toolbox.listen(printer)
    return printer


def ask_in_terminal_and_resume(
    toolbox: "BlockingToolbox", journal: WorkspaceJournal, call_id: str, result: "Result[Any]"
) -> "Result[Any]":
    """As long as a call needs approval, ask the user in the terminal and resume the call with the reply.

    Returns the last result, which is still pending if the user decides later. Nothing is locked while the
    prompt is open.
    """
    more = journal.suggested_command("show", journal.calls.short(call_id))
    while result.request is not None:
        reply = ask_approval(result.request, more)
        if reply is None:
            break
        result = toolbox.resume(call_id, replace(reply, fingerprint=result.request.fingerprint))
    return result
