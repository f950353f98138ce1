"""The configuration of a workspace: the user's file, tightened by the project's.

`schema` defines the keys, `origins` finds the file and line of each value. The command line, the MCP
servers and programs all read the configuration here.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handtools.core.approval import Notify
from handtools.core.commands import CommandLimits
from handtools.core.effects import EffectKind
from handtools.host.files.config_files import (
    config_file,
    policy_file,
    project_files,
    read_config_file,
    read_project_file,
)
from handtools.host.sandbox.default_limits import (
    DEFAULT_OPEN_FILES,
    MAX_COMMAND_PROCESSES,
    default_memory_bytes,
    with_default_limits,
)
from handtools.host.workspace_folders import OneOrMoreFolders, combined_workspace, workspace_folders
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Verdict
from handtools.text.toml_parsing import PYPROJECT_NAME, PYPROJECT_TABLE

if TYPE_CHECKING:
    from handtools.configuration.schema import ConfigFile, LimitsTable

UNLIMITED = CommandLimits(seconds=inf)
NO_NOTIFICATIONS = Notify()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of commands, web tools and the host on this machine."""

    runner: str = ""
    """Sandbox for commands, as for `--runner`: `bubblewrap`, `container:IMAGE`; empty for the strongest."""
    readable: tuple[str, ...] = ()
    """Files and folders outside the workspace that commands may read, in addition to programs."""
    path: tuple[str, ...] = ()
    """Folders to put before `PATH` in commands; commands may read them."""
    environment: tuple[str, ...] = ()
    """Names of additional environment variables to pass to commands; their values may be secrets."""
    proxy: str = ""
    """HTTP proxy for web tools and commands, as `http://[USER:PASSWORD@]HOST:PORT`."""
    formatters: tuple[str, ...] | None = None
    """Names of the formatters that may run after a change; None allows all that the project configures."""
    servers: tuple[str, ...] | None = None
    """Names of the language servers that may run; None allows all that are installed."""
    limits: CommandLimits = UNLIMITED
    """Resource limits of one command: `seconds`, `memory`, `processes`, `open_files`, `written`."""
    notify: Notify = NO_NOTIFICATIONS
    """How the user is notified of calls that need approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """A configuration file that was read: its contents, and which keys are ignored."""

    file: Path
    text: str
    values: "ConfigFile"
    keys: frozenset[str]
    """The keys that the file sets; those in `ignored` have no effect."""
    project: bool = False
    """Whether it is a project's file, which may only tighten the configuration."""
    table: tuple[str, ...] = ()
    """Path of our table in the file: `tool.handtools` in a pyproject.toml, otherwise empty."""
    folder: str = ""
    """The project's folder name, in a workspace of several folders."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Ignored keys of a project's file, such as `hosts` or `rule.0`, each with a sentence that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Policy and settings in force in a workspace, with the files they come from."""

    policy: Policy
    settings: Settings = Settings()
    preset: str = "coding"
    """The default tool preset of MCP servers."""
    sources: tuple[ConfigSource, ...] = ()
    """The files that were read: the user's, then the project's."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """A sentence for each key of a project's file that is ignored, because it would not tighten."""
        return tuple(
            f"{source.file} can only tighten your configuration; ignored: {sentence}"
            for source in self.sources
            for sentence in source.ignored.values()
        )


def load_configuration(root: OneOrMoreFolders, policy: str | Path | None = None) -> Configuration:
    """Read the configuration of a workspace: the user's files, then the project's, which may only tighten.

    `policy` is an explicit policy file, which replaces the user's policy including its hosts. Raises
    `UsageError` for a file that can't be read or is invalid.
    """
    root = combined_workspace(root)
    found = configuration_of_user_files(list(_read_user_sources(root, policy)))
    readable = tuple(_paths_outside_workspace(root, found.settings.readable))
    found = replace(found, settings=replace(found.settings, readable=readable))
    for folder, project in project_files(root):
        found = tightened_configuration(found, read_project_file(project), project, folder=folder)
    return found


def _read_user_sources(root: str | Path, policy: str | Path | None) -> Iterator[ConfigSource]:
    """Read the user's `config.toml`, and an explicitly named policy file, which replaces its policy keys."""
    own, named_policy = config_file(root), policy_file(root, policy)
    if own is None and named_policy is None:
        return
    from handtools.configuration.schema import POLICY_KEYS, ConfigFile

    if own is not None:
        replaced = () if named_policy is None else POLICY_KEYS
        yield _read_source(own, keys=ConfigFile.model_fields, without=replaced)
    if named_policy is not None:
        yield _read_source(named_policy, keys=POLICY_KEYS)


def _read_source(file: Path, *, keys: Iterable[str], without: Iterable[str] = ()) -> ConfigSource:
    from handtools.configuration.schema import parse_config_file

    text = read_config_file(file)
    values, said = parse_config_file(text, str(file), keys=tuple(keys))
    return ConfigSource(file=file, text=text, values=values, keys=said - frozenset(without))


def configuration_of_user_files(sources: Sequence[ConfigSource]) -> Configuration:
    """Build the configuration from the user's files, no two of which set the same key."""
    if not sources:  # most users have none; skip the slow import of the schema
        return Configuration(policy=Policy())
    from handtools.configuration.schema import ConfigFile

    merged = {key: getattr(source.values, key) for source in sources for key in source.keys}
    values = ConfigFile.model_construct(**merged)
    return Configuration(
        policy=policy_of_config_file(values),
        settings=_settings_of_config_file(values),
        preset=values.preset,
        sources=tuple(sources),
    )


def policy_of_config_file(config_file: "ConfigFile") -> Policy:
    """The policy that a file describes; its rules are added to the built-in ones."""
    defaults: dict[EffectKind, Verdict] = config_file.defaults.model_dump(exclude_none=True)  # type: ignore[assignment]
    return Policy(
        tools=config_file.tools,
        allow=None if config_file.allow is None else tuple(config_file.allow),
        block=tuple(config_file.block),
        excluded=tuple(config_file.excluded),
        hosts=tuple(config_file.hosts),
        ports=tuple(map(str, config_file.ports)),
        unattended=config_file.unattended,
        defaults=defaults,
    ).with_rules([table.to_policy_rule() for table in config_file.rule])


def _settings_of_config_file(config_file: "ConfigFile") -> Settings:
    return Settings(
        runner=config_file.runner,
        readable=tuple(config_file.readable),
        path=tuple(config_file.path),
        environment=tuple(config_file.environment),
        proxy=config_file.proxy,
        formatters=None if config_file.formatters is None else tuple(config_file.formatters),
        servers=None if config_file.servers is None else tuple(config_file.servers),
        limits=_limits_of_table(config_file.limits),
        notify=Notify(
            desktop=config_file.notify.desktop,
            bell=config_file.notify.bell,
            command=tuple(config_file.notify.command),
        ),
    )


COMMAND_LIMIT_KEYS = {
    "seconds": "seconds",
    "memory": "memory_bytes",
    "processes": "processes",
    "open_files": "open_files",
    "written": "written_bytes",
}
"""The keys of `[limits]`, each with the field of `CommandLimits` that it sets."""


def _limits_of_table(table: "LimitsTable") -> CommandLimits:
    said = table.model_dump(exclude_none=True)
    return replace(UNLIMITED, **{COMMAND_LIMIT_KEYS[name]: value for name, value in said.items()})


def tightened_configuration(
    configuration: Configuration, text: str, file: Path, *, folder: str = ""
) -> Configuration:
    """Return the configuration, tightened by a project's file and with that file among its sources.

    `text` is the content of `file`. `folder` is the project's folder name, in a workspace of several folders.
    """
    from handtools.configuration.schema import PERSONAL_KEYS, parse_config_file
    from handtools.runtime.policy.project_policy import tightened_policy

    table = PYPROJECT_TABLE if os.path.basename(file) == PYPROJECT_NAME else ()
    values, said = parse_config_file(text, str(file), unread=PERSONAL_KEYS, table=table)
    ignored = {key: f"`{key}` belongs in your own configuration." for key in PERSONAL_KEYS if key in said}
    rules = [table.to_policy_rule() for table in values.rule]
    tightened = tightened_policy(
        configuration.policy, policy_of_config_file(values), rules, keys_set=said, folder=folder
    )
    settings = configuration.settings
    limits = _tightened_limits(settings.limits, _limits_of_table(values.limits), ignored)
    formatters = _names_in_both(settings.formatters, values.formatters, "formatters", ignored)
    servers = _names_in_both(settings.servers, values.servers, "servers", ignored)
    source = ConfigSource(
        file=file,
        text=text,
        values=values,
        keys=said,
        project=True,
        table=table,
        folder=folder,
        ignored=ignored | dict(tightened.ignored),
    )
    return replace(
        configuration,
        policy=tightened.policy,
        settings=replace(settings, limits=limits, formatters=formatters, servers=servers),
        sources=(*configuration.sources, source),
    )


def _names_in_both(
    names: tuple[str, ...] | None, project: list[str] | None, key: str, ignored: dict[str, str]
) -> tuple[str, ...] | None:
    """The names in both lists. If there is only one list, its names; None if there is neither.

    Names that only the project lists are reported in `ignored`.
    """
    if project is None or names is None:
        return names if project is None else tuple(project)
    if more := [name for name in project if name not in names]:
        ignored[f"{key}.more"] = f"`{key}` has {', '.join(more)}, which yours does not list."
    return tuple(name for name in names if name in project)


def _tightened_limits(
    limits: CommandLimits, project_limits: CommandLimits, ignored: dict[str, str]
) -> CommandLimits:
    """Lower the user's limits to the project's where those are stricter; report the others in `ignored`.

    A limit that the user did not set is compared with its default.
    """
    usual = with_default_limits(
        replace(
            UNLIMITED,
            memory_bytes=default_memory_bytes(),
            processes=MAX_COMMAND_PROCESSES,
            open_files=DEFAULT_OPEN_FILES,
        )
    )
    lower: dict[str, Any] = {}
    for key, name in COMMAND_LIMIT_KEYS.items():
        value, most = getattr(project_limits, name), getattr(limits, name) or getattr(usual, name)
        if value is None or value == inf:
            continue
        lower[name] = min(value, most)
        if value > most:
            ignored[f"limits.{key}"] = f"limit `{key}` is above yours."
    return replace(limits, **lower)


def _paths_outside_workspace(root: str | Path, paths: Iterable[str]) -> Iterator[str]:
    """Skip paths inside the workspace, which commands can read anyway, and paths that contain it."""
    folders = [Path(folder) for folder in workspace_folders(root).values()]
    for path in paths:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(folder) or folder.is_relative_to(real) for folder in folders):
            yield path
