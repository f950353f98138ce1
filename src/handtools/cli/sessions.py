"""CLI command `handtools sessions`: list sessions with their number of calls and of changes in effect."""

from dataclasses import asdict
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.log import format_log_time
from handtools.cli.open_workspace import open_journal_at
from handtools.cli.terminal import make_plain_table, print_json, print_remark, stdout_console, table_cell


def sessions(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of sessions to list.")] = 20,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List sessions, most recently active first.

    Example: handtools sessions --limit 5
    """
    with open_journal_at(workspace) as record:
        found = record.calls.sessions(limit)
        if as_json:
            for session in found:
                print_json(asdict(session))
            return
        if not found:
            print_remark("No calls are recorded.")
            return
        rows = make_plain_table("SESSION", "CALLS", "CHANGED", "FIRST", "LAST", "AGENTS")
        for session in found:
            rows.add_row(
                table_cell(session.name, 40),
                f"{session.calls:,}",
                f"{session.standing:,}" if session.standing else "",
                format_log_time(session.started),
                format_log_time(session.ended),
                table_cell(session.agents, 40),
            )
        stdout_console().print(rows)
        words = [
            record.suggested_command(word, "--session", found[0].name) for word in ("log", "diff", "undo")
        ]
        print_remark("", f"Next: {'   '.join(words)}")
