"""The value in force for each configuration key, and the file and line it comes from."""

import os
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from handtools.configuration import COMMAND_LIMIT_KEYS, ConfigSource, Configuration
from handtools.configuration.schema import NESTED_TABLES, ConfigKey, config_keys
from handtools.host.files.config_files import CONFIG_VARIABLE, POLICY_VARIABLE
from handtools.text.toml_parsing import KeyPath, toml_key_lines

LISTED_KEYS = ("hosts", "ports", "block", "excluded", "rule", "formatters", "servers")
"""Keys whose value may combine several files; for all others, the last file that sets the key wins."""

ENVIRONMENT_VARIABLES = {
    CONFIG_VARIABLE: "Configuration file to use instead of `~/.config/handtools/config.toml`.",
    POLICY_VARIABLE: "Policy file to use instead of your policy, like `--policy`.",
    "HANDTOOLS_STATE": "Folder for the logs of all workspaces.",
    "HANDTOOLS_RUNNER": "Sandbox for commands; overrides `runner`.",
    "HANDTOOLS_LANGUAGE": "`off` disables language servers.",
    "HANDTOOLS_IMAGE": "Container image if `container` names none.",
    "HANDTOOLS_SEARCH": "Search engine of `web_search`; defaults to the first that has a key.",
    "HANDTOOLS_SEARCH_URL": "URL of that search engine, if not the default.",
    "HANDTOOLS_TOKEN": "Bearer token of `handtools serve`, a secret.",
}
"""Environment variables with their meaning; they are for secrets and for what differs between processes."""


class Origin(NamedTuple):
    """The file and line where a key is set; the line is 0 if unknown."""

    file: str
    line: int
    project: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A configuration key: its value in force, where that is set, and which settings of it are ignored."""

    key: ConfigKey
    value: Any
    """None if the key is not set."""
    origins: tuple[Origin, ...]
    variable: str
    """The environment variable that overrides the key in this process; empty if none does."""
    ignored: tuple[tuple[Origin, str], ...]
    """Places in a project's file where the key is ignored, each with the reason."""


def settings_in_force(configuration: Configuration) -> list[SettingInForce]:
    """Every configuration key in the schema's order; the rules are a single key."""
    lines = {id(source): toml_key_lines(source.text) for source in configuration.sources}

    def origin(source: ConfigSource, path: KeyPath) -> Origin:
        whole: KeyPath = (*source.table, *path)
        while len(whole) > len(source.table) and whole not in lines[id(source)]:
            # An array of tables has a line for each table: use the first.
            whole = (*whole, 0) if (*whole, 0) in lines[id(source)] else whole[:-1]
        return Origin(str(source.file), lines[id(source)].get(whole, 0), source.project)

    rows = []
    for key in config_keys():
        first, _, rest = key.name.partition(".")
        if (first in NESTED_TABLES and first != "rule" and not rest) or (first == "rule" and rest):
            continue
        path = tuple(key.name.split("."))
        heard = [
            source
            for source in configuration.sources
            if _has_setting(source, path) and key.name not in source.ignored
        ]
        if key.name not in LISTED_KEYS:
            heard = heard[-1:]
        ignored = tuple(
            (origin(source, _key_path(name)), sentence)
            for source in configuration.sources
            for name, sentence in source.ignored.items()
            if name == key.name or (key.name in LISTED_KEYS and name.startswith(f"{key.name}."))
        )
        variable = key.facts.variable if os.environ.get(key.facts.variable or "\0") else ""
        value = _value_in_force(configuration, key.name) if heard else None
        origins = tuple(origin(source, path) for source in heard)
        rows.append(SettingInForce(key, value, origins, variable, ignored))
    return rows


def _has_setting(source: ConfigSource, path: tuple[str, ...]) -> bool:
    first, *rest = path
    if first not in source.keys:
        return False
    return not rest or rest[0] in getattr(source.values, first).model_fields_set


def _key_path(name: str) -> KeyPath:
    return tuple(int(part) if part.isdigit() else part for part in name.split("."))


def _value_in_force(configuration: Configuration, name: str) -> Any:
    """The value in force as a file would spell it; the proxy is shown without its password."""
    policy, settings = configuration.policy, configuration.settings
    first, _, rest = name.partition(".")
    match first:
        case "preset":
            return configuration.preset
        case "limits":
            amount = getattr(settings.limits, COMMAND_LIMIT_KEYS[rest])
            return None if amount in {None, inf} else amount
        case "notify":
            return _tuple_as_list(getattr(settings.notify, rest))
        case "defaults":
            return policy.defaults.get(rest)  # type: ignore[call-overload]
        case "rule":
            return [rule.name for rule in policy.rules]
        case "proxy":
            return settings.proxy.rpartition("@")[2]
        case _:
            return _tuple_as_list(
                getattr(settings, first, None) if hasattr(settings, first) else getattr(policy, first)
            )


def _tuple_as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
