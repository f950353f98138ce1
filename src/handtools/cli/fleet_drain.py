"""CLI command `handtools fleet drain`: move a host's workspaces away, so that it can be replaced."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.fleet_connection import AddressOption, FleetArgument, connected_fleet
from handtools.cli.terminal import print_failure, print_json, print_remark
from handtools.text.plurals import number_with_noun

if TYPE_CHECKING:
    from handtools.fleet.drain import WorkspaceMove

EXIT_LEFT = 1


def drain(
    fleet: FleetArgument,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host name, for example h0.")],
    *,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Then restart the host with the installed version."),
    ] = False,
    job_seconds: Annotated[
        float,
        typer.Option("--wait", min=0, help="Seconds to let running jobs finish before stopping them."),
    ] = 60.0,
    address: AddressOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Move a host's workspaces to other hosts without interruption.

    The host accepts no new workspaces until it is restarted. Exits with 1 if a workspace could not be
    moved; it stays on the host.

    Example: handtools fleet drain evals h0 --restart
    """
    moves = asyncio.run(_drained(address, fleet, host, restart=restart, job_seconds=job_seconds))
    left = [move for move in moves if move.problem]
    if as_json:
        print_json(
            {"host": host, "moves": [asdict(move) for move in moves], "restarted": restart and not left}
        )
    else:
        for move in left:
            print_failure(
                f"{move.workspace} stays on {host}: {move.problem}", "Run the same command again to retry."
            )
        done = f"{number_with_noun(len(moves) - len(left), 'workspace')} moved from {host}."
        step = "" if restart or left else f" Next: handtools fleet drain {fleet} {host} --restart"
        print_remark(f"{done}{' The host was restarted.' if restart and not left else ''}{step}")
    if left:
        raise typer.Exit(EXIT_LEFT)


async def _drained(
    address: str, name: str, host: str, *, restart: bool, job_seconds: float
) -> "list[WorkspaceMove]":
    from handtools.fleet.drain import drain_host

    async with connected_fleet(address, name) as fleet:
        moves = await drain_host(fleet, host, job_seconds=job_seconds)
        if restart and not any(move.problem for move in moves):
            await fleet.restart_host(host)
        return moves
