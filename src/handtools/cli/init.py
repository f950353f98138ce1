"""CLI command `handtools init`: write the user's first configuration from three questions or options."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.config import CONFIG_HEADER, own_config_file, write_config_file
from handtools.cli.terminal import (
    CliCommandError,
    ask_line,
    is_interactive,
    print_json,
    print_remark,
    print_text,
    stderr_console,
)


class CommandsAnswer(StrEnum):
    """Values of `--commands`: whether sandboxed commands run without approval."""

    allow = "allow"
    ask = "ask"


class NotifyAnswer(StrEnum):
    """Values of `--notify`: how the user is notified of a call that needs approval."""

    none = "none"
    desktop = "desktop"
    bell = "bell"


def init(
    commands: Annotated[
        CommandsAnswer | None,
        typer.Option(help="Run sandboxed commands (allow), or ask each time (ask)."),
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Host that needs no approval (repeatable).")
    ] = None,
    notify: Annotated[
        NotifyAnswer | None, typer.Option(help="How to notify you of calls that need your approval.")
    ] = None,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write your configuration from three questions or options.

    Never overwrites an existing file. --yes accepts the default for every option you don't pass.

    Example: handtools init --commands ask --host docs.python.org --notify desktop
    """
    file = own_config_file()
    if file.exists():
        raise CliCommandError(f"{file} already exists.", "Change it with `handtools config edit`.")
    asked = [word is None for word in (commands, host, notify)]
    if any(asked) and not yes:
        if not is_interactive():
            step = "Pass --commands, --host and --notify, or --yes for the defaults."
            raise CliCommandError("No terminal to ask questions on; nothing was written.", step)
        commands, host, notify = _ask_missing_answers(commands, host, notify)
    text = _config_file_text(commands or CommandsAnswer.allow, host or [], notify or NotifyAnswer.none)
    from handtools.configuration.schema import parse_config_file

    parse_config_file(text, str(file))
    write_config_file(file, text)
    if as_json:
        print_json({"file": str(file), "text": text})
        return
    print_text(text)
    print_remark(f"Written to {file}.", "Next: handtools config show   handtools install CLIENT")


def _ask_missing_answers(
    commands: CommandsAnswer | None, host: list[str] | None, notify: NotifyAnswer | None
) -> tuple[CommandsAnswer, list[str], NotifyAnswer]:
    console = stderr_console()
    if commands is None:
        answer = ask_line(console, "Run commands without asking you if they are sandboxed? [Y/n] ")
        commands = CommandsAnswer.ask if answer.lower() in {"n", "no"} else CommandsAnswer.allow
    if host is None:
        host = ask_line(console, "Hosts that need no approval (optional): ").split()
    if notify is None:
        answer = ask_line(
            console, "Notify you of calls that need approval by desktop, bell or none? [none] "
        )
        notify = next(
            (word for word in NotifyAnswer if answer and word.startswith(answer.lower())), NotifyAnswer.none
        )
    return commands, host, notify


def _config_file_text(commands: CommandsAnswer, hosts: list[str], notify: NotifyAnswer) -> str:
    lines = [CONFIG_HEADER]
    if hosts:
        # JSON strings are valid TOML strings.
        lines.append(f"hosts = {json.dumps([word.strip(',') for word in hosts])}\n")
    if notify is not NotifyAnswer.none:
        lines.append(f"[notify]\n{notify.value} = true\n")
    if commands is CommandsAnswer.ask:
        lines.append('[defaults]\nrun = "ask"\n')
    return "\n".join(lines)
