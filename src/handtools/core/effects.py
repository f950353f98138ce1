"""Effects as values that the policy decides on: reads, changes, commands, visits, publications etc."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from handtools.core.changes import ChangeSet, Node, paths_in_moved_folders
from handtools.core.web import Visit

if TYPE_CHECKING:
    from handtools.core.commands import Command, InheritedShellState, PublishedPort
    from handtools.text.shell import Script

EffectKind = Literal["read", "change", "run", "visit", "deliver", "delegate", "publish"]
EFFECT_KINDS: frozenset[EffectKind] = frozenset(get_args(EffectKind))


@dataclass(frozen=True, slots=True)
class ReadEffect:
    """Effect of reading paths: file contents, folder listings or metadata."""

    paths: tuple[str, ...]

    @property
    def kind(self) -> Literal["read"]:
        """The effect kind that policy rules use for reads."""
        return "read"


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A workspace file that a command names and may run, in its current state."""

    path: str
    bytes: int
    state: str
    """A digest of the file's bytes, or its size and modification time; part of the approval fingerprint."""


@dataclass(frozen=True)
class CommandRun:
    """Effect of running a shell command, with its parsed script and inherited shell state."""

    command: "Command"
    confined: bool
    """Whether the kernel confines the command to the workspace and to the listed hosts."""
    files: tuple[NamedFile, ...] = ()
    """Workspace files that the command names; looked up only for an approval request."""
    home_files: tuple[str, ...] = ()
    """Settings that earlier commands wrote into the home folder; looked up only for an approval request."""

    @property
    def kind(self) -> Literal["run"]:
        """The effect kind that policy rules use for commands."""
        return "run"

    @property
    def script(self) -> "Script":
        """The parsed shell script of the command."""
        from handtools.text.shell import read_script

        return read_script(self.command.script)

    @property
    def inherited(self) -> "InheritedShellState":
        """The shell state with which the command starts."""
        from handtools.core.commands import InheritedShellState

        return self.command.inherited or InheritedShellState()

    @cached_property
    def defined(self) -> frozenset[str]:
        """Names of the shell functions and aliases with which the command starts."""
        from handtools.text.shell.script_commands import function_and_alias_names

        return function_and_alias_names(self.inherited.functions, self.inherited.aliases)

    @cached_property
    def steering(self) -> list[str]:
        """Inherited or set variables that influence which programs run, such as `PATH`."""
        from handtools.text.shell.script_commands import variables_steering_programs

        return variables_steering_programs({**self.inherited.exports, **self.command.env})

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Labels and values that describe the command: folder, network, environment, script last."""
        from handtools.text.shell.script_commands import script_runs_any_named_command

        command, left = self.command, self.inherited
        facts = [("folder", command.cwd or left.cwd)]
        if command.live:
            facts.append(("live", "on your files, no undo"))
        if not self.confined:
            facts.append(("unconfined", "it can do what you can"))
        if command.network != "off":
            reach = "any host" if command.network == "on" else ", ".join(command.hosts) or "no host"
            facts.append(("network", reach))
        facts += [("set", _export_text(name, value)) for name, value in sorted(command.env.items())]
        facts += [("set before", _export_text(name, left.exports[name])) for name in sorted(left.exports)]
        if script_runs_any_named_command(self.script, self.defined):
            told = (left.functions.strip(), left.aliases.strip())
            facts += [("defined before", each) for each in told if each]
        facts += [("file", f"{file.path} ({file.bytes:,} bytes)") for file in self.files]
        if self.home_files:
            facts.append(("left in home (settings, aliases)", "\n".join(self.home_files)))
        return (*facts, ("script", command.script))

    @property
    def parts(self) -> tuple[str, ...]:
        """The simple commands of the script; the whole script when it can't be split."""
        from handtools.text.shell import quote_words

        return tuple(quote_words(words) for words in self.script.parts) or (self.command.script,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Effect of delivering a file to the user, which can't be undone."""

    path: str
    digest: str
    bytes: int
    media_type: str
    title: str = ""

    @property
    def kind(self) -> Literal["deliver"]:
        """The effect kind that policy rules use for deliveries."""
        return "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Effect of delegating a task to another agent."""

    title: str
    prompt: str

    @property
    def kind(self) -> Literal["delegate"]:
        """The effect kind that policy rules use for delegations."""
        return "delegate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Effect of making a background job's port reachable from the user's browser."""

    job: str
    script: str
    where: "PublishedPort"

    @property
    def kind(self) -> Literal["publish"]:
        """The effect kind that policy rules use for published ports."""
        return "publish"


Effect = ReadEffect | ChangeSet | CommandRun | Visit | Delivery | Delegation | Publication


def effect_targets(effect: Effect) -> tuple[str, ...]:
    """List the targets that policy rules match: paths, simple commands, a host, a title, or a port."""
    if isinstance(effect, ChangeSet):
        return (*effect.paths, *(path for change in effect for path in paths_in_moved_folders(change)))
    if isinstance(effect, Visit):
        return (effect.place,)
    if isinstance(effect, Delivery | Delegation):
        return (effect.path if isinstance(effect, Delivery) else effect.title,)
    if isinstance(effect, Publication):
        return (f"port {effect.where.port}",)
    return effect.parts if isinstance(effect, CommandRun) else effect.paths


def effect_fingerprint(effect: Effect) -> str:
    """Hash an effect, so that an approval covers exactly this one."""
    # JSON is unambiguous, so different effects never have the same text.
    told = json.dumps([effect.kind, *_identity(effect)])
    return hashlib.sha256(told.encode()).hexdigest()


def _identity(effect: Effect) -> list[Any]:
    if isinstance(effect, ChangeSet):
        # Sorted, because another process may have found the same changes in another order.
        ordered = sorted(effect, key=lambda change: change.path)
        return [[change.path, *map(_node_state, (change.before, change.after))] for change in ordered]
    if isinstance(effect, Delivery | Delegation):
        return [*effect_targets(effect), effect.digest if isinstance(effect, Delivery) else effect.prompt]
    if isinstance(effect, Publication):
        return [effect.job, effect.script, effect.where.port, effect.where.host_port]
    if isinstance(effect, CommandRun):
        return [
            *effect.facts,
            sorted(effect.inherited.exports.items()),
            effect.command.terminal is not None,
            [(file.path, file.state) for file in effect.files],
        ]
    # For a visit only the host counts: an approval covers redirects within the host.
    return list(effect_targets(effect))


def _node_state(node: Node | None) -> list[Any] | None:
    return None if node is None else [node.kind, node.digest, node.mode]


def _export_text(name: str, value: str | None) -> str:
    if value is None:
        return f"{name} is unset"
    from handtools.text.shell.script_commands import is_secret_name, variables_steering_programs

    return name if is_secret_name(name) or not variables_steering_programs([name]) else f"{name}={value}"
