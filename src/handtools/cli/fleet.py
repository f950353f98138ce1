"""CLI command group `handtools fleet`: manage many workspaces on this machine or a Ray cluster."""

from collections.abc import Callable

import typer

from handtools.cli.fleet_drain import drain
from handtools.cli.fleet_logs import logs
from handtools.cli.fleet_mcp import mcp
from handtools.cli.fleet_run import run
from handtools.cli.fleet_status import status

FLEET_COMMANDS: tuple[Callable[..., None], ...] = (run, status, drain, logs, mcp)
"""The group's commands, each named after its function."""


def fleet_group() -> typer.Typer:
    """The `handtools fleet` group with its commands."""
    group = typer.Typer(
        help="Run batches of tasks, and manage a fleet's hosts.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for command in FLEET_COMMANDS:
        group.command()(command)
    return group
