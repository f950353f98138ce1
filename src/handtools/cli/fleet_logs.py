"""CLI command `handtools fleet logs`: show a workspace's calls or a host's log."""

import asyncio
from typing import Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.fleet_connection import AddressOption, FleetArgument, connected_fleet
from handtools.cli.log import format_log_time
from handtools.cli.terminal import (
    make_plain_table,
    print_json,
    print_remark,
    print_text,
    stdout_console,
    table_cell,
)


def logs(
    fleet: FleetArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Workspace, or host such as h0.")],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of calls or lines.")] = 20,
    before: Annotated[int | None, typer.Option(help="Only calls before this number (for paging).")] = None,
    address: AddressOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Show a workspace's calls or a host's log.

    Example: handtools fleet logs evals h0 --limit 50
    """
    is_host, rows = asyncio.run(_rows(address, fleet, name, limit, before))
    if as_json:
        for row in rows:
            print_json({"line": row} if is_host else row)
    elif not rows:
        print_remark("Nothing is logged.")
    elif is_host:
        print_text("\n".join(rows))
    else:
        _print_calls(rows)
        if len(rows) == limit:
            last = rows[-1]["seq"]
            print_remark("", f"Older: handtools fleet logs {fleet} {name} --before {last} -n {limit}")


async def _rows(
    address: str, name: str, wanted: str, limit: int, before: int | None
) -> tuple[bool, list[Any]]:
    async with connected_fleet(address, name) as fleet:
        if wanted in fleet.hosts:
            return True, await fleet.client(wanted).host_log(limit=limit)
        client = fleet.client_of(wanted)
        return False, list(await client.recorded_calls(wanted, limit=limit, before=before))


def _print_calls(rows: list[dict[str, Any]]) -> None:
    shown = make_plain_table("WHEN", "CALL", "TOOL", "STATUS", "SECONDS")
    for row in rows:
        shown.add_row(
            format_log_time(row["started"]),
            table_cell(row["id"], 40),
            table_cell(row["tool"]),
            table_cell(row["code"] or row["status"]),
            f"{row['ended'] - row['started']:.2f}",
        )
    stdout_console().print(shown)
