"""CLI command `handtools fleet drain`: a host's workspaces go to other hosts, so that it can be replaced."""

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
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host, such as h0.")],
    *,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Then start the host anew, with the version that is installed now."),
    ] = False,
    job_seconds: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds that running jobs get before they are ended.")
    ] = 60.0,
    address: AddressOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Move a host's workspaces to other hosts; their callers go on.

    The host takes no new ones from then on, until it is started anew. Exits with 1 if a workspace could not be
    moved; it stays where it was.

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
                f"{move.workspace} stays on {host}: {move.problem}", "The same command tries again."
            )
        done = f"{number_with_noun(len(moves) - len(left), 'workspace')} moved from {host}."
        step = "" if restart or left else f" Next: handtools fleet drain {fleet} {host} --restart"
        print_remark(f"{done}{' It was started anew.' if restart and not left else ''}{step}")
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
