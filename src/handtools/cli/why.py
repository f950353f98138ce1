"""CLI command `handtools why`: show which policy rule applies to a call, without running it."""

from typing import Annotated

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import open_toolbox_at
from handtools.cli.options import parse_tool_arguments
from handtools.cli.results import EXIT_FAILED
from handtools.cli.terminal import print_failure, print_json, print_remark, stdout_console
from handtools.text.visible_text import with_visible_characters

VERDICT_STYLES = {"allow": "bold green", "ask": "bold yellow", "deny": "bold red"}
INVALID_CALL_RULE_NAME = "not a valid call"


def why(
    tool: Annotated[str, typer.Argument(help="Tool name.", autocompletion=completed_values.complete_tools)],
    pairs: options.KeyValueArguments = None,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Show which policy rule applies to a call.

    Nothing is run or logged, and no approval is requested.

    Example: handtools why bash 'command=git push'
    """
    args = parse_tool_arguments(pairs)
    from dataclasses import asdict

    with open_toolbox_at(workspace, plugins=True) as (toolbox, _):
        decision = toolbox.why(tool, args)
    invalid = decision.rule == INVALID_CALL_RULE_NAME
    if as_json:
        print_json(asdict(decision))
    elif invalid:
        print_failure(f"Not a valid call: {decision.reason}", "`handtools tools` lists the tools.")
    else:
        from rich.text import Text

        about = f"  {with_visible_characters(decision.target)}" if decision.target else ""
        stdout_console().print(
            Text.assemble((decision.verdict, VERDICT_STYLES[decision.verdict]), about), soft_wrap=True
        )
        stdout_console().print(
            f"  rule    {with_visible_characters(decision.rule)}\n"
            f"  because {with_visible_characters(decision.reason)}"
        )
        if decision.verdict == "ask":
            print_remark("  The call needs your approval; `handtools call … --yes` approves it.")
    if invalid:
        raise typer.Exit(EXIT_FAILED)
