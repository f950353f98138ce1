"""CLI command `handtools gc`: delete the oldest log entries, to keep age and size within limits."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.open_workspace import open_journal_at
from handtools.cli.stats import format_size
from handtools.cli.terminal import (
    CliCommandError,
    ask_yes_no,
    is_interactive,
    print_json,
    print_remark,
    shown_when_slow,
    stderr_console,
)

DAY_SECONDS = 86_400.0
MEBIBYTE = 1 << 20


def gc(
    *,
    days: Annotated[int, typer.Option(min=1, help="Delete entries older than this.")] = 90,
    megabytes: Annotated[int, typer.Option(min=1, help="Keep at most this many MiB for undo.")] = 2048,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
    ] = False,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Delete old log entries; deleted changes can't be undone.

    Freed space in the journal file is reused; the file itself does not shrink.

    Example: handtools gc --days 30 --dry-run
    """
    from handtools.host.files.named_blobs import FolderBlobStore
    from handtools.runtime.journal import RetentionLimits

    limits = RetentionLimits(max_bytes=megabytes * MEBIBYTE, max_age=days * DAY_SECONDS)
    with open_journal_at(workspace) as record:
        found = record.journal.retention.prunable(limits)
        told = (
            f"{found.entries:,} changes and {found.calls:,} calls are older than {days} days "
            f"(at most {format_size(found.bytes)}); {format_size(found.excess_bytes)} are above the limit."
        )
        again = record.suggested_command("gc", "--days", str(days), "--megabytes", str(megabytes), "--yes")
        if dry_run:
            if as_json:
                print_json({"dry_run": True, **asdict(found)})
            else:
                print_remark(told, f"Next: {again}")
            return
        if not yes and not (found.entries or found.calls or found.excess_bytes):
            if as_json:
                print_json({"dry_run": False, **asdict(found), "freed_bytes": 0})
            else:
                print_remark(f"Nothing is older than {days} days or above the limit.")
            return
        if not yes and not is_interactive():
            raise CliCommandError(
                f"{told} No terminal to confirm on; nothing was deleted.", f"To delete them: `{again}`"
            )
        if not yes and not ask_yes_no(stderr_console(), f"{told} Delete them?"):
            raise CliCommandError("Nothing was deleted.", f"To delete them: `{again}`")
        with shown_when_slow("Deleting"):
            freed = record.journal.retention.prune(limits)
            output_blobs = FolderBlobStore(Path(record.journal.path).parent / "outputs")
            freed += output_blobs.tidy(max_bytes=limits.max_bytes, max_age=limits.max_age)
        if as_json:
            print_json({"dry_run": False, **asdict(found), "freed_bytes": freed})
        else:
            print_remark(f"Freed {format_size(freed)}.")
