"""The configuration of a workspace: the person's settings and policy, tightened by the project's own file.

The command line, the MCP servers and programs all read it here. ADR 166.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from handtools.core.commands import CommandLimits
from handtools.core.errors import HostError, UsageError
from handtools.core.toml_values import (
    numbers_or_words_value,
    parse_toml,
    refuse_unknown_keys,
    table_value,
    words_value,
)
from handtools.host.commands.local_commands import MOST_COMMAND_PROCESSES
from handtools.host.files.user_folders import (
    policy_file,
    project_files,
    read_config_file,
    read_project_file,
    settings_file,
    user_policy_file,
)
from handtools.host.home_folders import state_root
from handtools.host.sandbox.path_program_folders import is_too_broad_to_show
from handtools.host.sandbox.processes.supervisor_client import DEFAULT_OPEN_FILES, default_memory_bytes
from handtools.host.sandbox.runners.identity_and_limits import allowance_with_default_limits
from handtools.host.workspace_folders import OneOrMoreFolders, combined_workspace, workspace_folders
from handtools.runtime.policy import POLICY_KEYS, Policy, policy_from_toml
from handtools.runtime.policy.project_policy import PROJECT_POLICY_KEYS, tightened_policy
from handtools.text.web.host_access import BadHostEntry, parse_host_list
from handtools.text.web.port_ranges import BadPort, parse_port_ranges

UNLIMITED_ALLOWANCE = CommandLimits(seconds=inf)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROXY = re.compile(r"http://(?:[^/@\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/@:\s\[\]]+):\d{1,5}/?", re.ASCII)
_MOST_AMOUNT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What commands and web tools find and use on this machine, as a person has set it in `settings.toml`."""

    runner: str = ""
    """What commands run under, as `--runner` takes it: `bubblewrap`, `container:IMAGE`; empty is the strongest."""
    readable: tuple[str, ...] = ()
    """Files and folders outside the workspace that commands may read, beside programs."""
    path: tuple[str, ...] = ()
    """Folders of programs that come before `PATH` in commands, and that commands may read."""
    environment: tuple[str, ...] = ()
    """Names of environment variables that commands get, beside the usual ones; their values may be secrets."""
    hosts: tuple[str, ...] = ()
    """Hosts that commands and web tools may reach without a question, as the policy's `hosts`."""
    ports: tuple[str, ...] = ()
    """Ports of background jobs that are published to the person without a question, as the policy's `ports`."""
    proxy: str = ""
    """The HTTP proxy through which web tools and commands reach hosts, as `http://[USER:PASSWORD@]HOST:PORT`."""
    limits: CommandLimits = UNLIMITED_ALLOWANCE
    """Most that one command may use: `seconds`, `memory`, `processes`, `open_files`, `written`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Policy and settings that are in force in a workspace, with the files that they come from."""

    policy: Policy
    settings: Settings = Settings()
    settings_file: Path | None = None
    policy_file: Path | None = None
    project_file: Path | None = None
    ignored: tuple[str, ...] = ()
    """A sentence for each key of the project's file that would have widened what the person allows."""


def load_configuration(root: OneOrMoreFolders, policy: str | Path | None = None) -> Configuration:
    """Read the configuration of a workspace: the person's files, then the project's, which may only tighten.

    `policy` names another policy file, which holds with its own hosts alone. Raises `UsageError` for a file that
    can't be read or says what means nothing.
    """
    root = combined_workspace(root)
    written, named = settings_file(root), policy_file(root, policy)
    settings = (
        Settings() if written is None else settings_from_toml(read_config_file(written), str(written))
    )
    base = Policy() if named is None else policy_from_toml(read_config_file(named), str(named))
    if named is None or named == user_policy_file():
        hosts, ports = (*base.hosts, *settings.hosts), (*base.ports, *settings.ports)
        base = replace(base, hosts=tuple(dict.fromkeys(hosts)), ports=tuple(dict.fromkeys(ports)))
    settings = replace(settings, readable=tuple(_paths_beside(root, settings.readable)))
    found = Configuration(policy=base, settings=settings, settings_file=written, policy_file=named)
    for name, project in project_files(root).items():
        found = tightened_configuration(found, read_project_file(project), project, folder=name)
    return found


def settings_from_toml(text: str, where: str) -> Settings:
    """Parse the person's settings; raises `UsageError`, which names the file and the key."""
    written = parse_toml(text, where)
    try:
        refuse_unknown_keys(written, SETTINGS_KEYS, "The settings")
        return Settings(
            **{name: read(written[name]) for name, read in SETTINGS_KEYS.items() if name in written}
        )
    except UsageError as problem:
        raise UsageError(f"{where}: {problem}") from problem


def tightened_configuration(
    found: Configuration, text: str, file: Path, *, folder: str = ""
) -> Configuration:
    """Tighten a configuration by the text of a project's file, and say what of it is ignored.

    `folder` is the name of the workspace's folder that the project is in, if there are several.
    """
    written = parse_toml(text, str(file))
    try:
        refuse_unknown_keys(written, {*SETTINGS_KEYS, *POLICY_KEYS}, "The project's file")
        tightened = tightened_policy(found.policy, written, folder=folder)
        limits = _tightened_limits(found.settings.limits, read_command_limits(written.get("limits", {})))
    except UsageError as problem:
        raise UsageError(f"{file}: {problem}") from problem
    widening = [key for key in written if key not in {*PROJECT_POLICY_KEYS, "limits"}]
    ignored = [f"`{key}` is for your own settings or policy." for key in widening]
    told = (f"{file} may only tighten; ignored: {sentence}" for sentence in (*ignored, *tightened.ignored))
    return replace(
        found,
        policy=tightened.policy,
        settings=replace(found.settings, limits=limits),
        project_file=file,
        ignored=(*found.ignored, *told),
    )


def _tightened_limits(limits: CommandLimits, project: CommandLimits) -> CommandLimits:
    """The limits with those that a project names, where they are lower than the person's or the usual ones."""
    usual = allowance_with_default_limits(
        replace(
            UNLIMITED_ALLOWANCE,
            memory_bytes=default_memory_bytes(),
            processes=MOST_COMMAND_PROCESSES,
            open_files=DEFAULT_OPEN_FILES,
        )
    )
    lower = {
        name: min(value, getattr(limits, name) or getattr(usual, name))
        for name in COMMAND_LIMIT_KEYS.values()
        if (value := getattr(project, name)) is not None
    }
    return replace(limits, **lower)


COMMAND_LIMIT_KEYS = {
    "seconds": "seconds",
    "memory": "memory_bytes",
    "processes": "processes",
    "open_files": "open_files",
    "written": "written_bytes",
}
"""The keys of `[limits]`, each with the field of `CommandLimits` that it sets."""


def read_command_limits(value: Any) -> CommandLimits:
    """Read a table of limits, sizes as bytes or as `"4 GiB"`; raises `UsageError`."""
    table = table_value(value, "limits")
    refuse_unknown_keys(table, COMMAND_LIMIT_KEYS, "[limits]")
    return replace(
        UNLIMITED_ALLOWANCE,
        **{COMMAND_LIMIT_KEYS[name]: _amount(given, name) for name, given in table.items()},
    )


def _amount(value: Any, name: str) -> int:
    sized = COMMAND_LIMIT_KEYS[name].endswith("_bytes")
    if sized and isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        value = int(float(match[1]) * _UNITS[(match[2] or "").upper()])
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MOST_AMOUNT:
        like = 'a number of bytes or a text such as "4 GiB"' if sized else "a whole number above 0"
        raise UsageError(f"the limit {name} is {like}.")
    return value


def _paths(value: Any, key: str) -> tuple[str, ...]:
    """Read a list of absolute paths; none may bring the home folder or our own record along."""
    return tuple(_readable_path(word, key) for word in words_value(value, key))


def _paths_beside(root: str | Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that are neither in a workspace, whose files commands see anyway, nor around it."""
    folders = [Path(folder) for folder in workspace_folders(root).values()]
    for path in paths:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(folder) or folder.is_relative_to(real) for folder in folders):
            yield path


def _readable_path(word: str, key: str) -> str:
    path = os.path.normpath(os.path.expanduser(word))
    if not os.path.isabs(path):
        raise UsageError(f"{key}: `{word}` is no absolute path; write `/…` or `~/…`.")
    if is_too_broad_to_show(path):
        raise UsageError(
            f"{key}: `{word}` holds far more than commands need, keys perhaps. Name folders in it."
        )
    try:
        record = state_root()
    except HostError:  # without a home there is no record either
        return path
    real = Path(os.path.realpath(path))
    if real.is_relative_to(record) or record.is_relative_to(real):
        raise UsageError(
            f"{key}: `{word}` would show commands the record in {record}. Name what they need."
        )
    return path


def _variables(value: Any) -> tuple[str, ...]:
    names = words_value(value, "environment")
    for name in names:
        if not _VARIABLE_NAME.fullmatch(name):
            raise UsageError(f"environment: `{name}` is no name of a variable.")
    return names


def _host_list(value: Any) -> tuple[str, ...]:
    hosts = words_value(value, "hosts")
    try:
        parse_host_list(hosts)
    except BadHostEntry as problem:
        raise UsageError(str(problem)) from problem
    return hosts


def _port_list(value: Any) -> tuple[str, ...]:
    ports = numbers_or_words_value(value, "ports")
    try:
        parse_port_ranges(ports)
    except BadPort as problem:
        raise UsageError(str(problem)) from problem
    return ports


def _runner(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError('runner is a word, such as "bubblewrap".')
    return value


def _proxy(value: Any) -> str:
    if not isinstance(value, str) or (value and not _PROXY.fullmatch(value)):
        raise UsageError("proxy is written as `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`.")
    return value


SETTINGS_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "runner": _runner,
    "readable": partial(_paths, key="readable"),
    "path": partial(_paths, key="path"),
    "environment": _variables,
    "hosts": _host_list,
    "ports": _port_list,
    "proxy": _proxy,
    "limits": read_command_limits,
}
"""The keys of `settings.toml`, each with the function that reads its value."""
