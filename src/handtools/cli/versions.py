"""`handtools versions` and `forget`: what is kept of a file, and letting go of it."""

from dataclasses import asdict
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.keyboard import confirmed, interactive
from handtools.cli.log import moment
from handtools.cli.opening import record_at
from handtools.cli.screen import Stopped, err, one_line, out, print_json, remark, table
from handtools.text.visible import visible

PathName = Annotated[str, typer.Argument(metavar="PATH", help="A file of the workspace.")]


def versions(
    path: PathName, as_json: options.AsJson = False, workspace: options.Workspace = options.HERE
) -> None:
    """List the recorded versions of a file, newest first."""
    with record_at(workspace) as record:
        found = record.entries.versions(record.files.locate(path))
        if as_json:
            for version in found:
                print_json(asdict(version))
            return
        if not found:
            raise Stopped(f"No change of {path} is recorded.", f"`{record.step('log')}` lists the calls.")
        rows = table("VERSION", "WHEN", "WAS", "BY", "CALL", "BYTES")
        for one in found:
            size = "" if one.bytes is None else f"{one.bytes:,}"
            short = one_line(record.calls.short(one.call_id), 40)
            rows.add_row(str(one.number), moment(one.at), one.action, one.tool, short, size)
        rows.add_row("0", "", "before the first recorded change")
        out().print(rows)
        step = record.step("undo", "--path", path, "--version", str(found[-1].number))
        remark("", f"Bring one back: {step}")


def forget(
    path: PathName,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Let go of every kept version of a file.

    What calls on it said goes too. The file itself stays as it is; its changes can't be undone any more.
    """
    with record_at(workspace) as record:
        located = record.files.locate(path)
        if not yes and not _confirmed(located):
            step = f"{record.step('forget', path, '--yes')} does it."
            raise Stopped(f"Nothing was forgotten of {located}.", step)
        forgotten = record.journal.retention.forget(located) > 0
        if as_json:
            print_json({"path": located, "forgotten": forgotten})
        elif forgotten:
            remark(f"Forgot what was kept of {located}. The file itself is as it was.")
        else:
            remark(f"Nothing was kept of {located}.")


def _confirmed(path: str) -> bool:
    if not interactive():
        return False
    question = f"Forget every kept version of {visible(path)}? Its changes can't be undone afterwards."
    return confirmed(err(), question)
