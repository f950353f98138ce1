"""The last part of the page of the command line, made from it: `python -m tests.docs.cli_page` writes it."""

from pathlib import Path

import click
import typer

from handtools.cli.fleet import FLEET_COMMANDS
from handtools.cli.main import COMMANDS, _app

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
HEADING = "## Help of every command\n"
MADE = "<!-- Made from the code by `just docs`: change the command, not what follows. -->"
COLUMNS = 100


def help_of_commands() -> dict[str, str]:
    """What `handtools COMMAND --help` prints on a screen of a hundred columns, by command."""
    top = typer.main.get_command(_app())
    above = click.Context(top, info_name="handtools")
    fleet = top.get_command(above, "fleet")
    below = click.Context(fleet, info_name="fleet", parent=above)
    found = {name: _help(above, name) for name in COMMANDS}
    return found | {
        f"fleet {command.__name__}": _help(below, command.__name__) for command in FLEET_COMMANDS
    }


def _help(above: click.Context, name: str) -> str:
    own = above.command.get_command(above, name)
    context = own.context_class(
        own, info_name=name, parent=above, terminal_width=COLUMNS, max_content_width=COLUMNS
    )
    with context:
        return "\n".join(line.rstrip() for line in own.get_help(context).splitlines())


def page() -> str:
    """The whole page: what is written by hand, then the help."""
    by_hand = PAGE.read_text("utf-8").partition(HEADING)[0]
    shown = "\n".join(f"### {name}\n\n```text\n{text}\n```\n" for name, text in help_of_commands().items())
    return f"{by_hand}{HEADING}\n{MADE}\n\n{shown}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
