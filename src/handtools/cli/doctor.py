"""`handtools doctor`: what works here, what is missing, and what to do about it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from handtools import __version__
from handtools.cli import options
from handtools.cli.outcome import FAILED
from handtools.cli.screen import out, print_json, remark, table
from handtools.text.visible import visible

if TYPE_CHECKING:
    from handtools.cli.checks import Finding

STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Read a large journal through, too.")] = False,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Start the MCP server, and look at the clients, instead.")
    ] = False,
    language: Annotated[
        bool, typer.Option("--language", help="Look at language servers, instead.")
    ] = False,
    as_json: options.AsJson = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Say what works here, what is missing, and what to do.

    Exits with 1 only when something is broken.
    """
    from handtools.cli.checks import findings

    if mcp:
        from handtools.cli.mcp_checks import mcp_findings

        found = list(mcp_findings(workspace))
    elif language:
        from handtools.cli.language_checks import language_findings

        found = list(language_findings(workspace))
    else:
        found = list(findings(workspace, deep=deep))
    broken = [finding.name for finding in found if finding.state == "broken"]
    if as_json:
        rows = [asdict(finding) for finding in found]
        print_json({"version": __version__, "ok": not broken, "findings": rows})
    else:
        _print_findings(found)
        verdict = f"Broken: {', '.join(broken)}." if broken else "Nothing is broken."
        remark("", f"handtools {__version__}. {verdict}")
    if broken:
        raise typer.Exit(FAILED)


def _print_findings(found: "list[Finding]") -> None:
    from rich.text import Text

    rows = table("PART", "STATE", "WHAT FOLLOWS", "NEXT STEP")
    for finding in found:
        state = Text(finding.state, STYLES[finding.state])
        rows.add_row(finding.name, state, visible(finding.told), visible(finding.step))
    out().print(rows)
