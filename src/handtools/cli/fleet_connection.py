"""What the commands of `handtools fleet` that look after a fleet share: how it is found."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli.terminal import CliCommandError

if TYPE_CHECKING:
    from handtools.fleet.ray_fleet import Fleet

FleetArgument = Annotated[str, typer.Argument(metavar="FLEET", help="The name of the fleet.")]
AddressOption = Annotated[
    str, typer.Option("--address", help="The address of the Ray cluster; auto for the one of this machine.")
]


@asynccontextmanager
async def connected_fleet(address: str, name: str) -> "AsyncIterator[Fleet]":
    """A running fleet, whose hosts go on afterwards."""
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
                f"There is no Ray cluster at {address}: {problem}", "Name it: --address HOST:6379"
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
