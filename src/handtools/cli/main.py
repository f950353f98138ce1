"""The typer application: registers all commands and turns errors into messages and exit codes."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from handtools import __version__
from handtools.cli.results import EXIT_FAILED
from handtools.cli.terminal import CliCommandError, print_failure, print_remark, print_text
from handtools.core.errors import HandtoolsError, ToolError, UsageError

COMMANDS = {
    "watch": "watch",
    "view": "view",
    "log": "log",
    "sessions": "log",
    "show": "show",
    "diff": "diff",
    "versions": "versions",
    "report": "report",
    "review": "review",
    "undo": "undo",
    "redo": "undo",
    "forget": "versions",
    "pending": "approve",
    "approve": "approve",
    "deny": "approve",
    "call": "call",
    "tools": "tools",
    "skills": "skills",
    "tokens": "tools",
    "why": "why",
    "mcp": "mcp_serve",
    "serve": "mcp_serve",
    "install": "install",
    "uninstall": "install",
    "init": "init",
    "config": "config",
    "doctor": "doctor",
    "stats": "stats",
    "gc": "stats",
}
"""The module of each command in `cli`; the module has a function of the command's name."""
EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C."""
BUILT_IN_FLAG_DEFAULTS = {"help": False, "install_completion": False, "show_completion": False}
"""Defaults of typer's built-in flags; without them, typer imports pydantic, which is slow."""


def main() -> None:
    """Run the typer application; after an error, print it with the suggested next step and exit with 1."""
    _allow_undecodable_output()
    try:
        _app(sys.argv[1:2])(prog_name="handtools")
    except HandtoolsError as failure:
        print_failure(*_message_and_next_step(failure))
        sys.exit(EXIT_FAILED)
    except SystemExit as leaving:
        # `fleet run` prints its own summary.
        if leaving.code == EXIT_INTERRUPTED and sys.argv[1:2] != ["fleet"]:
            print_remark("Stopped. `handtools log` shows what was done.")
        raise


def _app(words: Sequence[str] = ()) -> typer.Typer:
    """The application. If the first word is a command, it has only that one, to import no others."""
    app = typer.Typer(
        help="Hand tools for coding agents: every call confined, recorded and reversible.\n\n"
        "`handtools -C FOLDER COMMAND` runs any command on another folder.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rendering help with rich takes longer than everything else
        context_settings={"help_option_names": ["-h", "--help"], "default_map": BUILT_IN_FLAG_DEFAULTS},
    )
    app.callback()(_declare_global_options)
    named = [name for name in words if name in (*COMMANDS, "fleet")] or [*COMMANDS, "fleet"]
    for name in named:
        if name == "fleet":
            from handtools.cli.fleet import fleet_group

            app.add_typer(fleet_group(), name="fleet")
        else:
            app.command()(getattr(import_module(f"handtools.cli.{COMMANDS[name]}"), name))
    return app


def _print_version_and_exit(wanted: bool) -> None:
    if wanted:
        print_text(f"handtools {__version__}")
        raise typer.Exit


def _declare_global_options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version_and_exit, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Declare the global options, such as `--version`."""


def _message_and_next_step(error: HandtoolsError) -> tuple[str, str]:
    """The message for an error and the suggested next step, by the error's type."""
    if isinstance(error, ToolError):
        return error.message, error.hint or "`handtools --help` lists the commands."
    if isinstance(error, CliCommandError):
        return str(error), error.step
    if isinstance(error, UsageError):
        return str(error), "Fix that, then run the command again."
    return str(error), "`handtools doctor` checks this machine."


def _allow_undecodable_output() -> None:
    """Configure stdout and stderr so that printing undecodable bytes, e.g. in file names, does not raise."""
    for stream in (sys.stdout, sys.stderr):
        utf8 = stream.encoding.lower().replace("-", "") == "utf8"
        stream.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")  # type: ignore[union-attr]
