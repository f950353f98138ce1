"""CLI command `handtools config`: show, check, edit and explain the configuration."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.results import EXIT_FAILED
from handtools.cli.terminal import (
    CliCommandError,
    is_interactive,
    make_plain_table,
    print_failure,
    print_json,
    print_remark,
    stdout_console,
    table_cell,
)
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.configuration import Configuration
    from handtools.configuration.origins import SettingInForce

SCHEMA_FILE_NAME = "config.schema.json"


class ConfigAction(StrEnum):
    """What `handtools config` does."""

    show = "show"
    check = "check"
    edit = "edit"
    explain = "explain"
    schema = "schema"


def _matching_keys(incomplete: str) -> list[str]:
    from handtools.configuration.schema import config_keys

    return [key.name for key in config_keys() if key.name.startswith(incomplete)]


def config(
    action: Annotated[
        ConfigAction, typer.Argument(help="What to do; schema prints a JSON schema for editors")
    ] = ConfigAction.show,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="With explain: the key, such as limits.memory.",
            autocompletion=_matching_keys,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="With show: include keys that are not set.")] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Show, check, edit or explain the configuration.

    Your configuration is ~/.config/handtools/config.toml. A project's .handtools.toml, or [tool.handtools]
    in its pyproject.toml, can only tighten it.

    Example: handtools config explain limits.memory
    """
    if key is not None and action is not ConfigAction.explain:
        raise typer.BadParameter("Only explain takes a key.", param_hint="KEY")
    match action:
        case ConfigAction.schema:
            _print_schema(as_json=as_json)
        case ConfigAction.edit:
            _edit_config_file(workspace, as_json=as_json)
        case ConfigAction.check:
            _check_config_files(workspace, as_json=as_json)
        case ConfigAction.explain:
            _explain_key(workspace, key, as_json=as_json)
        case ConfigAction.show:
            _print_settings(workspace, every=every, as_json=as_json)


def _print_schema(*, as_json: bool) -> None:
    from handtools.configuration.schema import config_json_schema

    print_json(config_json_schema(), indent=None if as_json else 2)


def _print_settings(workspace: Path, *, every: bool, as_json: bool) -> None:
    from handtools.configuration import load_configuration
    from handtools.configuration.origins import settings_in_force

    found = load_configuration(workspace)
    rows = [row for row in settings_in_force(found) if every or row.origins or row.variable or row.ignored]
    if as_json:
        for row in rows:
            print_json(_setting_to_json(row))
        return
    if rows:
        table = make_plain_table("KEY", "VALUE", "FROM")
        for row in rows:
            table.add_row(row.key.name, table_cell(_value_in_words(row), 80), _origin_in_words(row))
        stdout_console().print(table)
    print_remark(
        *([""] if rows else ["Nothing is configured; all settings have their defaults."]),
        *_source_file_lines(found),
    )
    print_remark(*found.ignored)
    print_remark("Next: handtools config explain KEY   handtools config show --all")


def _check_config_files(workspace: Path, *, as_json: bool) -> None:
    from handtools.configuration import load_configuration, policy_of_config_file
    from handtools.configuration.schema import BadConfigFile, ConfigProblem
    from handtools.core.errors import UsageError
    from handtools.toolbox import check_tool_names

    problems: tuple[ConfigProblem, ...] = ()
    ignored: tuple[str, ...] = ()
    files: list[str] = []
    try:
        found = load_configuration(workspace)
        ignored, files = found.ignored, [str(source.file) for source in found.sources]
        for source in found.sources:
            try:
                check_tool_names(policy_of_config_file(source.values))
            except UsageError as unknown:
                problems = (*problems, ConfigProblem(str(source.file), 0, str(unknown)))
    except BadConfigFile as bad:
        problems = bad.problems
    except UsageError as bad:
        problems = (ConfigProblem("", 0, str(bad)),)
    if as_json:
        told = [problem._asdict() for problem in problems]
        print_json({"ok": not problems, "problems": told, "ignored": ignored, "files": files})
    else:
        for problem in problems:
            print_failure(str(problem).removeprefix(": "), "")
        print_remark(*ignored)
        if problems:
            print_remark("  → Fix it with `handtools config edit`. Until then, no calls run.")
        else:
            print_remark(
                f"{', '.join(files)}: no problems found."
                if files
                else "No configuration file; using defaults."
            )
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _edit_config_file(workspace: Path, *, as_json: bool) -> None:
    file = own_config_file()
    if as_json:
        print_json({"file": str(file), "exists": file.exists()})
        return
    if not is_interactive():
        raise CliCommandError("Can't open an editor without a terminal.", f"Open {file} in an editor.")
    import click

    if not file.exists():
        write_config_file(file, commented_template())
    click.edit(filename=str(file))
    _check_config_files(workspace, as_json=False)


def own_config_file() -> Path:
    """The path of the user's configuration file, which may not exist.

    Raises `CliCommandError` if there is no home folder.
    """
    import os

    from handtools.host.files.config_files import CONFIG_VARIABLE, user_config_file

    file = os.environ.get(CONFIG_VARIABLE) or user_config_file()
    if file is None:
        raise CliCommandError(
            "There is no home folder to put a configuration in.",
            "Set XDG_CONFIG_HOME to a folder.",
        )
    return Path(file).expanduser()


def write_config_file(file: Path, text: str) -> None:
    """Write a configuration file and, next to it, the JSON schema for editors."""
    from handtools.configuration.schema import config_json_schema

    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.with_name(SCHEMA_FILE_NAME).write_text(
            json.dumps(config_json_schema(), indent=2) + "\n", "utf-8"
        )
    except OSError as problem:
        raise CliCommandError(
            f"Can't write {file}: {problem.strerror}.", "Make the folder writable, then try again."
        ) from problem


CONFIG_HEADER = (
    f"#:schema {SCHEMA_FILE_NAME}\n"
    "# What agents may do with handtools on this machine, and what their commands can use.\n"
    "# `handtools config explain KEY` explains a key; `handtools config check` checks this file.\n"
)


def commented_template() -> str:
    """A configuration file that explains every key in comments and sets none."""
    from handtools.configuration.schema import NESTED_TABLES, config_keys

    lines = [CONFIG_HEADER]
    for key in config_keys():
        first, _, rest = key.name.partition(".")
        if first == "rule" and rest:
            continue
        if first in NESTED_TABLES and not rest:
            opening = f"[[{first}]]" if first == "rule" else f"[{first}]"
            lines.append(f"\n# {opening}  # {key.facts.meaning}")
        else:
            lines.append(f"# {rest or first} =   # {key.facts.meaning} Default: {key.facts.default}.")
    return "\n".join(lines) + "\n"


def _explain_key(workspace: Path, name: str | None, *, as_json: bool) -> None:
    from difflib import get_close_matches

    from handtools.configuration import load_configuration
    from handtools.configuration.origins import settings_in_force
    from handtools.configuration.schema import config_keys

    keys = {key.name: key for key in config_keys()}
    if name is None or name not in keys:
        near = [f"`{each}`" for each in get_close_matches(name or "", keys, 2)]
        step = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(keys)}."
        raise CliCommandError(f"Unknown key: `{name}`." if name else "No key given.", step)
    key = keys[name]
    row = next(
        (each for each in settings_in_force(load_configuration(workspace)) if each.key.name == name), None
    )
    if as_json:
        about = {
            "key": name,
            "meaning": key.facts.meaning,
            "values": key.values,
            "default": key.facts.default,
            "project": key.facts.project or "ignored",
        }
        print_json(about | (_setting_to_json(row) if row else {}))
        return
    facts = {
        "key": name,
        "means": key.facts.meaning,
        "takes": key.values,
        "default": key.facts.default,
        "in a project": key.facts.project or "ignored; set it in your own configuration",
        "variable": key.facts.variable,
    }
    if row is not None:
        facts |= {"in force": _value_in_words(row), "from": _origin_in_words(row)}
        facts |= {"ignored": "; ".join(f"{origin}: {reason}" for origin, reason in row.ignored)}
    for word, told in facts.items():
        if told:
            stdout_console().print(f"{word:<13}{with_visible_characters(told)}", soft_wrap=True)


def _setting_to_json(setting: "SettingInForce") -> dict[str, Any]:
    return {
        "key": setting.key.name,
        "value": setting.value,
        "origins": [origin._asdict() for origin in setting.origins],
        "variable": setting.variable,
        "ignored": [{**origin._asdict(), "reason": reason} for origin, reason in setting.ignored],
    }


def _value_in_words(setting: "SettingInForce") -> str:
    import os

    if setting.variable:
        return os.environ[setting.variable]
    if setting.value is None:
        return setting.key.facts.default
    if isinstance(setting.value, list):
        return ", ".join(map(str, setting.value)) or "none"
    return f"{setting.value:,}" if type(setting.value) is int else str(setting.value).lower()


def _origin_in_words(setting: "SettingInForce") -> str:
    if setting.variable:
        return setting.variable
    return ", ".join(f"{origin}{' (project)' * origin.project}" for origin in setting.origins) or "built in"


def _source_file_lines(configuration: "Configuration") -> list[str]:
    named = [str(source.file) for source in configuration.sources]
    return [f"Read: {', '.join(named)}"] if named else []
