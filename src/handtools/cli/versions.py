"""`handtools versions` and `forget`: what is kept of a file, and letting go of it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.keyboard import confirmed, interactive
from handtools.cli.log import moment
from handtools.cli.opening import Record, record_at
from handtools.cli.screen import Stopped, err, one_line, out, print_json, remark, table
from handtools.text.counting import counted
from handtools.text.visible import visible

if TYPE_CHECKING:
    from handtools.runtime.journal.retention import Forgotten

LOOKED_BYTES = 8 << 20
"""Of a file: what is larger is looked for by what was recorded of it."""
LISTED = 10
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

    Calls that named it or printed lines of it are emptied too. The file itself stays as it is; its changes
    can't be undone any more.
    """
    from handtools.host.store import FolderStore

    with record_at(workspace) as record:
        located = record.files.locate(path)
        if not yes and not _confirmed(located):
            step = f"{record.step('forget', path, '--yes')} does it."
            raise Stopped(f"Nothing was forgotten of {located}.", step)
        outputs = FolderStore(Path(record.journal.path).parent / "outputs")
        gone = record.journal.retention.forget(located, now=_now(record, located), outputs=outputs)
        forgotten = gone.versions > 0 or bool(gone.calls)
        if as_json:
            print_json({"path": located, "forgotten": forgotten, **asdict(gone)})
        elif forgotten:
            remark(f"Forgot what was kept of {located}. The file itself is as it was.")
        else:
            remark(f"Nothing was kept of {located}.")
        if not as_json:
            _tell_more(record, gone)


def _now(record: Record, path: str) -> bytes:
    """What the file holds, so that lines of it are found in what calls printed."""
    facts = record.files.facts(path)
    if facts is None or facts.kind != "file" or facts.bytes > LOOKED_BYTES:
        return b""
    return record.files.read(path)


def _tell_more(record: Record, gone: "Forgotten") -> None:
    """What went with it, and what may still be there."""
    if gone.calls:
        listed = ", ".join(record.calls.short(call_id) for call_id in gone.calls[:LISTED])
        more = f" and {len(gone.calls) - LISTED} more" if len(gone.calls) > LISTED else ""
        remark(f"Emptied what {counted(len(gone.calls), 'call')} said that had it: {listed}{more}.")
    if gone.copies:
        remark(f"The same bytes are kept of {', '.join(gone.copies[:LISTED])}: forget those as well.")
    if gone.sampled:
        remark("It is long: only some of its lines were looked for in what calls printed.")
    remark("What was printed of it in another form, encoded or cut up, can't be found.")


def _confirmed(path: str) -> bool:
    if not interactive():
        return False
    question = f"Forget every kept version of {visible(path)}? Its changes can't be undone afterwards."
    return confirmed(err(), question)
