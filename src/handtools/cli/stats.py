"""CLI command `handtools stats`: show a workspace's call counts by tool and its log's size on disk."""

import os
from dataclasses import asdict
from pathlib import Path

from handtools.cli import options
from handtools.cli.open_workspace import open_journal_at
from handtools.cli.terminal import (
    make_plain_table,
    print_json,
    print_remark,
    shown_when_slow,
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
                continue  # a store may delete files at any time
    return total


def format_size(count: float) -> str:
    """Format a number of bytes: `3.2 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
