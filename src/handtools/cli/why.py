"""`handtools why`: the rule that would decide a call, found without making it."""

from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.arguments import arguments
from handtools.cli.opening import toolbox_at
from handtools.cli.outcome import FAILED
from handtools.cli.screen import out, print_json, remark, tell_failure
from handtools.text.visible import visible

STYLES = {"allow": "bold green", "ask": "bold yellow", "deny": "bold red"}
NOT_A_CALL = "not a valid call"


def why(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    pairs: options.Pairs = None,
    given: options.Arguments = None,
    output: options.Answer = options.Output.text,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Say which rule would decide a call.

    Nothing is changed, asked or recorded.
    """
    args = arguments(given, pairs)
    from dataclasses import asdict

    with toolbox_at(workspace, plugins=True) as (toolbox, _):
        decision = toolbox.why(tool, args)
    invalid = decision.rule == NOT_A_CALL
    if output is options.Output.json:
        print_json(asdict(decision))
    elif invalid:
        tell_failure(f"That call could not run: {decision.reason}", "`handtools tools` lists the tools.")
    else:
        from rich.text import Text

        about = f"  {visible(decision.target)}" if decision.target else ""
        out().print(Text.assemble((decision.verdict, STYLES[decision.verdict]), about), soft_wrap=True)
        out().print(f"  rule    {visible(decision.rule)}\n  because {visible(decision.reason)}")
        if decision.verdict == "ask":
            remark("  A person is asked first; `handtools call … --yes` answers yes.")
    if invalid:
        raise typer.Exit(FAILED)
