"""Connect to a running fleet, shared by the `handtools fleet` commands that manage one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli.terminal import CliCommandError

if TYPE_CHECKING:
    from handtools.fleet.ray_fleet import Fleet

FleetArgument = Annotated[str, typer.Argument(metavar="FLEET", help="Fleet name.")]
AddressOption = Annotated[
    str, typer.Option("--address", help="Ray cluster address; auto for this machine's cluster.")
]


@asynccontextmanager
async def connected_fleet(address: str, name: str) -> "AsyncIterator[Fleet]":
    """Connect to a running fleet for a block; its hosts keep running afterwards."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise CliCommandError("Fleets need Ray.", "pip install 'handtools-slim[fleet]'") from missing
    from handtools.fleet.ray_fleet import Fleet

    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, ValueError) as problem:
            raise CliCommandError(
                f"Can't connect to a Ray cluster at {address}: {problem}", "Pass --address HOST:6379."
            ) from problem
    try:
        fleet = Fleet.connect(name)
        try:
            yield fleet
        finally:
            await fleet.aclose()
    finally:
        if started_here:
            ray.shutdown()
