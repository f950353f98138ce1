"""CLI commands `handtools versions` and `forget`: list or delete the recorded versions of a file."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import completed_values, options
from handtools.cli.log import format_log_time
from handtools.cli.open_workspace import WorkspaceJournal, open_journal_at
from handtools.cli.terminal import (
    CliCommandError,
    ask_yes_no,
    is_interactive,
    make_plain_table,
    print_json,
    print_remark,
    shown_when_slow,
    stderr_console,
    stdout_console,
    table_cell,
)
from handtools.text.plurals import number_with_noun
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.runtime.journal.forgotten_paths import ForgottenPath

FORGET_SEARCH_FILE_BYTES = 8 << 20
"""Largest file, in bytes, whose current lines `forget` searches for in recorded outputs."""
MAX_FORGOTTEN_CALLS_LISTED = 10
PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="File in the workspace.",
        autocompletion=completed_values.complete_changed_paths,
    ),
]


def versions(
    path: PathArgument,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List the recorded versions of a file, newest first.

    Example: handtools versions src/app.py
    """
    with open_journal_at(workspace) as record:
        found = record.entries.versions(record.files.locate(path))
        if as_json:
            for version in found:
                print_json(asdict(version))
            return
        if not found:
            raise CliCommandError(
                f"No change to {path} is recorded.", f"`{record.suggested_command('log')}` lists the calls."
            )
        rows = make_plain_table("VERSION", "WHEN", "WAS", "BY", "CALL", "BYTES")
        for one in found:
            size = "" if one.bytes is None else f"{one.bytes:,}"
            short = table_cell(record.calls.short(one.call_id), 40)
            rows.add_row(str(one.number), format_log_time(one.at), one.action, one.tool, short, size)
        rows.add_row("0", "", "before the first recorded change")
        stdout_console().print(rows)
        step = record.suggested_command("undo", "--path", path, "--version", str(found[-1].number))
        print_remark("", f"To restore one: {step}")


def forget(
    path: PathArgument,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Delete every recorded version of a file.

    The contents of logged calls that named the file or printed its lines are deleted too. The file itself
    is not changed, but its changes can't be undone any more.

    Example: handtools forget .env --yes
    """
    from handtools.host.files.folder_blob_store import FolderBlobStore

    with open_journal_at(workspace) as record:
        located = record.files.locate(path)
        if not yes and not _confirm_forget(located):
            step = f"To delete them: {record.suggested_command('forget', path, '--yes')}"
            raise CliCommandError(f"No versions of {located} were deleted.", step)
        output_blobs = FolderBlobStore(Path(record.journal.path).parent / "outputs")
        with shown_when_slow("Deleting"):
            gone = record.journal.retention.forget(
                located, now=_current_bytes(record, located), output_store=output_blobs
            )
        forgotten = gone.versions > 0 or bool(gone.calls)
        if as_json:
            print_json({"path": located, "forgotten": forgotten, **asdict(gone)})
        elif forgotten:
            print_remark(f"Deleted all recorded versions of {located}. The file itself was not changed.")
        else:
            print_remark(f"No versions of {located} are recorded.")
        if not as_json:
            _print_emptied_calls(record, gone)


def _current_bytes(journal: WorkspaceJournal, path: str) -> bytes:
    """The file's current content, whose lines `forget` searches for in recorded outputs.

    Empty if the file is missing or too large.
    """
    facts = journal.files.facts(path)
    if facts is None or facts.kind != "file" or facts.bytes > FORGET_SEARCH_FILE_BYTES:
        return b""
    return journal.files.read(path)


def _print_emptied_calls(journal: WorkspaceJournal, forgotten: "ForgottenPath") -> None:
    """Print which calls `forget` emptied, and where copies of the content may remain."""
    if forgotten.calls:
        listed = ", ".join(
            journal.calls.short(call_id) for call_id in forgotten.calls[:MAX_FORGOTTEN_CALLS_LISTED]
        )
        more = (
            f" and {len(forgotten.calls) - MAX_FORGOTTEN_CALLS_LISTED} more"
            if len(forgotten.calls) > MAX_FORGOTTEN_CALLS_LISTED
            else ""
        )
        print_remark(
            f"Emptied {number_with_noun(len(forgotten.calls), 'call')} that contained it: {listed}{more}."
        )
    if forgotten.copies:
        print_remark(
            f"The same bytes are recorded for {', '.join(forgotten.copies[:MAX_FORGOTTEN_CALLS_LISTED])}:"
            " forget those as well."
        )
    if forgotten.sampled:
        print_remark(
            "The file is long, so only some of its lines were searched for in the output of calls."
        )
    print_remark("Output that has the content in another form, encoded or cut up, can't be found.")


def _confirm_forget(path: str) -> bool:
    if not is_interactive():
        return False
    shown = with_visible_characters(path)
    question = f"Delete every recorded version of {shown}? Its changes can't be undone afterwards."
    return ask_yes_no(stderr_console(), question)
