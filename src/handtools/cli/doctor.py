"""CLI command `handtools doctor`: check this machine and print each check's state with the next step."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from handtools import __version__
from handtools.cli import options
from handtools.cli.results import EXIT_FAILED
from handtools.cli.terminal import (
    make_plain_table,
    print_json,
    print_remark,
    shown_when_slow,
    stdout_console,
)
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.cli.doctor_checks import DoctorCheckResult

CHECK_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Check every page of a large journal.")] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="Check the MCP server and clients instead.")] = False,
    language: Annotated[bool, typer.Option("--language", help="Check language servers instead.")] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Check this machine: what works, what is missing, what to do.

    Exits with 1 only if something is broken.

    Example: handtools doctor --mcp
    """
    from handtools.cli.doctor_checks import machine_checks

    with shown_when_slow("Checking this machine"):
        if mcp:
            from handtools.cli.doctor_checks import mcp_checks

            found = list(mcp_checks(workspace))
        elif language:
            from handtools.cli.doctor_checks import language_checks

            found = list(language_checks(workspace))
        else:
            found = list(machine_checks(workspace, deep=deep))
    broken = [finding.name for finding in found if finding.state == "broken"]
    if as_json:
        rows = [asdict(finding) for finding in found]
        print_json({"version": __version__, "ok": not broken, "findings": rows})
    else:
        _print_findings(found)
        verdict = f"Broken: {', '.join(broken)}." if broken else "Nothing is broken."
        print_remark("", f"handtools {__version__}. {verdict}")
    if broken:
        raise typer.Exit(EXIT_FAILED)


def _print_findings(found: "list[DoctorCheckResult]") -> None:
    from rich.text import Text

    rows = make_plain_table("PART", "STATE", "DETAILS", "NEXT STEP")
    for finding in found:
        state = Text(finding.state, CHECK_STYLES[finding.state])
        rows.add_row(
            finding.name,
            state,
            with_visible_characters(finding.told),
            with_visible_characters(finding.step),
        )
    stdout_console().print(rows)
