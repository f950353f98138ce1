"""`handtools call`: run one tool, as an agent would."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.arguments import arguments
from handtools.cli.card import ask
from handtools.cli.keyboard import interactive
from handtools.cli.opening import Record, toolbox_at
from handtools.cli.outcome import exit_code, present
from handtools.cli.screen import remark

if TYPE_CHECKING:
    from handtools.blocking import BlockingToolbox
    from handtools.core.result import Result


def call(
    tool: Annotated[str, typer.Argument(help="The tool's name; `handtools tools` lists them.")],
    pairs: options.Pairs = None,
    *,
    given: options.Arguments = None,
    output: options.Answer = options.Output.text,
    call_id: Annotated[
        str, typer.Option("--id", help="Idempotency key: the same id again returns what was recorded.")
    ] = "",
    session: Annotated[str, typer.Option(help="The session it belongs to.")] = "default",
    turn: Annotated[str, typer.Option(help="The turn within the session.")] = "",
    agent: Annotated[str, typer.Option(help="Who is calling.")] = "",
    yes: options.Yes = False,
    runner: options.RunnerName = "",
    workspace: options.Workspace = options.HERE,
) -> None:
    """Run one tool, as an agent would.

    The call is judged, recorded and undoable like any other. Exits with 0 when it did what was asked,
    1 when it failed or was denied, 3 when it waits for an answer.
    """
    args = arguments(given, pairs)
    from handtools.core.call import Call, new_id

    request = Call(tool=tool, args=args, id=call_id or new_id(), session=session, turn=turn, agent=agent)
    with toolbox_at(workspace, plugins=True, yes=yes, runner=runner) as (toolbox, record):
        if call_id and record.calls.recall(call_id) is not None:
            remark("This id was called before: what follows is what was recorded then.")
        result = toolbox.call(request)
        if output is options.Output.text and interactive():
            result = answered(toolbox, record, request.id, result)
        present(result, request.id, record, as_json=output is options.Output.json)
    raise typer.Exit(exit_code(result))


def answered(
    toolbox: "BlockingToolbox", record: Record, call_id: str, result: "Result[Any]"
) -> "Result[Any]":
    """Ask the person about a pending call and resume it: no lock is held while they think."""
    more = record.step("show", record.calls.short(call_id))
    while result.request is not None:
        reply = ask(result.request, more)
        if reply is None:
            break
        result = toolbox.resume(call_id, replace(reply, fingerprint=result.request.fingerprint))
    return result
