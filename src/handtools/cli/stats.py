"""CLI commands `handtools stats` and `gc`: show a log's call counts and size, and delete old entries."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.open_workspace import open_journal_at
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


def stats(
    as_json: options.JsonOption = False, workspace: options.WorkspaceOption = options.CURRENT_FOLDER
) -> None:
    """Show call counts by tool, and the log's size on disk.

    Example: handtools stats --json
    """
    with open_journal_at(workspace) as record:
        state = Path(record.journal.path).parent
        with shown_when_slow("Counting"):
            tools = record.calls.use_of_tools()
            kept = record.journal.retention.kept_bytes()
            sizes = {entry.name: bytes_below(Path(entry.path)) for entry in sorted_entries(state)}
        total = sum(sizes.values())
        if as_json:
            rows = [asdict(tool) for tool in tools]
            print_json(
                {"folder": str(state), "bytes": total, "undo_bytes": kept, "sizes": sizes, "tools": rows}
            )
            return
        table = make_plain_table("TOOL", "CALLS", "NOT OK", "SECONDS")
        for tool in tools:
            table.add_row(
                table_cell(tool.tool, 40), f"{tool.calls:,}", f"{tool.not_ok:,}", f"{tool.seconds:,.1f}"
            )
        stdout_console().print(table)
        table = make_plain_table("\nPART", "\nSIZE")
        for name, size in sizes.items():
            table.add_row(table_cell(name, 60), format_size(size))
        table.add_row("all", format_size(total))
        stdout_console().print(table)
        print_remark("", f"{state}; {format_size(kept)} of it is kept for undo.")
        print_remark(f"Next: {record.suggested_command('gc', '--dry-run')}")


def sorted_entries(folder: Path) -> list["os.DirEntry[str]"]:
    """The entries of a folder, sorted by name."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def bytes_below(path: Path) -> int:
    """The size of a file, or of all files below a folder; files deleted during the walk are skipped."""
    if not path.is_dir():
        return path.lstat().st_size if path.exists() else 0
    total = 0
    for at, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(at, name)).st_size
            except FileNotFoundError:
                continue  # another process may delete stored files at any time
    return total


def format_size(count: float) -> str:
    """Format a number of bytes: `3.2 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


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
    from handtools.host.files.folder_blob_store import FolderBlobStore
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
