"""CLI command `handtools init`: write the person's first configuration from the answers to three questions."""

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
    """Values of `--commands`: whether confined commands run without a question."""

    allow = "allow"
    ask = "ask"


class NotifyAnswer(StrEnum):
    """Values of `--notify`: how a person hears of a call that waits."""

    none = "none"
    desktop = "desktop"
    bell = "bell"


def init(
    commands: Annotated[
        CommandsAnswer | None,
        typer.Option(help="Commands in a sandbox: allow runs them, ask asks each time."),
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="A host that may be reached without a question; several times.")
    ] = None,
    notify: Annotated[
        NotifyAnswer | None, typer.Option(help="How you hear of a call that waits for your answer.")
    ] = None,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write your configuration: three questions, or as many options.

    A file that is there is never changed. With --yes what no option says is left as built in.

    Example: handtools init --commands ask --host docs.python.org --notify desktop
    """
    file = own_config_file()
    if file.exists():
        raise CliCommandError(f"{file} is there already.", "`handtools config edit` opens it.")
    asked = [word is None for word in (commands, host, notify)]
    if any(asked) and not yes:
        if not is_interactive():
            step = "Say --commands, --host and --notify, or --yes for what is built in."
            raise CliCommandError("Nobody can be asked here, and nothing was written.", step)
        commands, host, notify = _ask(commands, host, notify)
    text = _config_text(commands or CommandsAnswer.allow, host or [], notify or NotifyAnswer.none)
    from handtools.configuration.schema import parse_config_file

    parse_config_file(text, str(file))
    write_config_file(file, text)
    if as_json:
        print_json({"file": str(file), "text": text})
        return
    print_text(text)
    print_remark(f"Written to {file}.", "Next: handtools config show   handtools install CLIENT")


def _ask(
    commands: CommandsAnswer | None, host: list[str] | None, notify: NotifyAnswer | None
) -> tuple[CommandsAnswer, list[str], NotifyAnswer]:
    console = stderr_console()
    if commands is None:
        answer = ask_line(
            console, "May commands run without a question while a sandbox confines them? [Y/n] "
        )
        commands = CommandsAnswer.ask if answer.lower() in {"n", "no"} else CommandsAnswer.allow
    if host is None:
        host = ask_line(console, "Hosts that may be reached without a question (may stay empty): ").split()
    if notify is None:
        answer = ask_line(console, "When a call waits for you, tell you by: desktop, bell, none? [none] ")
        notify = next(
            (word for word in NotifyAnswer if answer and word.startswith(answer.lower())), NotifyAnswer.none
        )
    return commands, host, notify


def _config_text(commands: CommandsAnswer, hosts: list[str], notify: NotifyAnswer) -> str:
    lines = [CONFIG_HEADER]
    if hosts:
        # JSON's strings are TOML's as well.
        lines.append(f"hosts = {json.dumps([word.strip(',') for word in hosts])}\n")
    if notify is not NotifyAnswer.none:
        lines.append(f"[notify]\n{notify.value} = true\n")
    if commands is CommandsAnswer.ask:
        lines.append('[defaults]\nrun = "ask"\n')
    return "\n".join(lines)
