"""CLI command `handtools fleet status`: show a fleet's hosts and their load."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from handtools.cli import options
from handtools.cli.fleet_connection import AddressOption, FleetArgument, connected_fleet
from handtools.cli.terminal import make_plain_table, print_json, print_remark, stdout_console, table_cell
from handtools.text.plurals import number_with_noun

if TYPE_CHECKING:
    from handtools.fleet.fleet_status import FleetHostStatus


def status(
    fleet: FleetArgument, *, address: AddressOption = "auto", as_json: options.JsonOption = False
) -> None:
    """Show a fleet's hosts and their load.

    For each host: workspaces and slots, running and queued calls, calls rejected as busy since the start,
    memory, free disk space, and the age of the oldest change not yet stored in its log.

    Example: handtools fleet status evals
    """
    from handtools.fleet.fleet_status import workspaces_by_tenant

    hosts = asyncio.run(_hosts(address, fleet))
    tenants = workspaces_by_tenant(hosts)
    if as_json:
        rows = [asdict(each) | {"state": each.state} for each in hosts]
        print_json({"fleet": fleet, "hosts": rows, "tenants": tenants})
        return
    _print_hosts(hosts)
    named = {tenant: count for tenant, count in tenants.items() if tenant}
    if named:
        shown = make_plain_table("TENANT", "WORKSPACES")
        for tenant, count in named.items():
            shown.add_row(table_cell(tenant), f"{count:,}")
        stdout_console().print("", shown)
    total = number_with_noun(sum(tenants.values()), "workspace")
    print_remark("", f"{number_with_noun(len(hosts), 'host')}, {total}.")
    if any(each.state == "away" for each in hosts):
        print_remark("Ray is restarting the hosts that are away; calls to them wait.")


async def _hosts(address: str, name: str) -> "list[FleetHostStatus]":
    from handtools.fleet.fleet_status import fleet_status

    async with connected_fleet(address, name) as fleet:
        return await fleet_status(fleet)


def _print_hosts(hosts: "Sequence[FleetHostStatus]") -> None:
    shown = make_plain_table(
        "HOST", "NODE", "VERSION", "STATE", "WORKSPACES", "OPEN", "RUNNING", "WAITING", "BUSY", "MEMORY",
        "DISK FREE", "UNSTORED",
    )  # fmt: skip
    for each in hosts:
        now = each.status
        if now is None:
            shown.add_row(each.host, "", "", each.state)
            continue
        shown.add_row(
            each.host,
            each.node,
            now.version,
            each.state,
            f"{now.workspaces:,}/{now.slots:,}",
            f"{now.open:,}",
            f"{now.running:,}",
            f"{now.waiting:,}",
            f"{now.shed:,}",
            f"{now.memory_bytes / 1e6:,.0f} MB",
            f"{now.disk_free_bytes / 1e9:,.1f} GB",
            f"{now.unstored_seconds:,.1f} s" if now.has_log else "no log",
        )
    stdout_console().print(shown)
