"""`Launch` describes a process to start, `Runner` confines it, and `ConfinedLaunch` is what is started."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from handtools.core.commands import CommandLimits, CommandNetwork, PathPredicate, matches_no_path
from handtools.host.sandbox.policy_paths import PrivateFileAlarm
from handtools.host.sandbox.supervisor_messages import SupervisorOrder
from handtools.text.search.glob import PathGlobs

NO_HOST_LIST_NOTE = "A host list can't be enforced here, so the command had no network."


@dataclass(frozen=True, slots=True)
class Overlay:
    """An overlay mount: all writes go to `upper`, and `lower` stays unchanged."""

    lower: str
    upper: str
    work: str
    mounted_at: str
    most_bytes: int = 8 << 30
    most_files: int = 500_000
    """The maximum number of files in the upper folder; a command that creates more is killed."""
    masks: str = ""
    """A middle layer that hides private paths; empty if there is none."""
    view_socket: int | None = None
    """A socket for sending out the directory fd of the mounted overlay; None if it is not needed."""


@dataclass(frozen=True, slots=True)
class SessionFolders:
    """A session's persistent folders outside the workspace, which its commands can write to."""

    base: str
    """The folder in our state folder that contains the others."""
    home: str
    temporary: str
    caches: str
    """Package caches, shared with other sessions."""
    reserved: tuple[str, ...]
    """Names in the temporary folder where every command has a mount, so that none can replace them."""
    quotas: tuple[tuple[str, int, int], ...]
    """Folders with their limits in bytes and files; a command that exceeds them is killed."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount(2) call, made in the process's mount namespace before exec."""

    source: str
    target: str
    kind: str = ""
    flags: int = 0
    options: str = ""


class LaunchSupervisor(Protocol):
    """Starts and stops one launch and reports its exit, with the messages of `supervisor_messages.py`."""

    @property
    def line(self) -> socket.socket:
        """The socket on which replies arrive."""
        ...

    def send_order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Send the supervisor a message, with file descriptors."""
        ...

    def abandon(self) -> None:
        """Kill an unresponsive supervisor and everything it started."""
        ...


class SupervisorPoolPort(Protocol):
    """Supplies launches with supervisors, or with threads that run commands in a container."""

    def take(self) -> Any:
        """Take an idle supervisor or start one."""
        ...

    def give_back(self, supervisor: Any, /) -> None:
        """Return the supervisor to the pool after the launch has exited."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A process to start, and what it may see and use.

    The caller owns the fds in it and keeps them open until the process exits.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The complete environment: nothing is inherited."""
    cwd: str
    root: str
    """The absolute path of the workspace, with symlinks resolved."""
    pass_fds: tuple[int, ...] = ()
    """File descriptors, besides 0, 1 and 2, that the command gets under the same numbers."""
    input_open: bool = False
    """Whether input can be sent while the command runs; otherwise stdin is empty."""
    terminal: tuple[int, int] | None = None
    """Rows and columns of the command's terminal; None for pipes."""
    separate_streams: bool = False
    """Whether stderr gets its own pipe. The relative order of stdout and stderr is then lost."""
    network: CommandNetwork = "off"
    hosts: tuple[str, ...] = ()
    outgoing_proxy: str = ""
    """The HTTP proxy through which listed hosts are reached, as `http://[USER:PASSWORD@]HOST:PORT`."""
    private_globs: tuple[PathGlobs, ...] = ()
    """Globs for the workspace paths hidden from the command, one value for each policy rule."""
    read_only_globs: tuple[PathGlobs, ...] = ()
    """Globs for workspace paths that the command can't write to, unless an overlay captures its writes."""
    is_open: PathPredicate = matches_no_path
    """Returns whether the command can see a path (relative to the workspace) although it is private."""
    frozen: bool = False
    """Whether the whole workspace is read-only."""
    readable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that the command may read: programs, never secrets."""
    writable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that the command may write to: its caches."""
    refreshed: Callable[[str], bool] | None = None
    """Returns whether a path is updated in the command's layer when another program changes it.

    None if no paths are updated.
    """
    limits: CommandLimits = field(default_factory=CommandLimits)
    mounts_left: str = ""
    """A mount point to unmount before exec, with all mounts below it except the process's own overlays.

    Empty for none.
    """

    @property
    def host_list_notes(self) -> tuple[str, ...]:
        """A note for runners that can't filter by host: with a list of hosts, a command gets no network."""
        return (NO_HOST_LIST_NOTE,) if self.network == "listed" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResources:
    """Resources in use until a launch exits: layers for its writes, its session's folders and network."""

    overlays: tuple[Overlay, ...] = ()
    """One for each workspace folder; empty if the command writes directly to the workspace."""
    session_folders: SessionFolders | None = None
    """The session's persistent folders; if None, the command gets its own home and temporary folder."""
    namespaces: tuple[int, ...] = ()
    """Fds of namespaces to join: the user namespace that owns the session's network namespace, if there is
    one, then the network namespace. The fds belong to the session.
    """


NO_RESOURCES = LaunchResources()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedLaunch:
    """How to start a launch so that it is confined: the runner's argv, environment, mounts and filters."""

    launch: Launch
    resources: LaunchResources = NO_RESOURCES
    argv: tuple[str, ...]
    env: Mapping[str, str]
    limits: CommandLimits
    runner_fds: tuple[int, ...] = ()
    """Fds that the runner opened for the process; see `confined_launch`."""
    pool: SupervisorPoolPort | None = None
    """The pool whose supervisor starts and stops the process; None for a supervisor on this machine."""
    controls_terminal: bool = True
    """Whether the terminal becomes the process's controlling terminal; False if a child acquires it."""
    mounts: tuple[Mount, ...] = ()
    """Mounts to make after the overlays, in the process's own mount namespace."""
    user: tuple[int, int] | None = None
    """The user and group id to switch to, for runners that start as root."""
    landlock: int | None = None
    """The fd of a Landlock ruleset to apply, one of `runner_fds`."""
    seccomp: bytes = b""
    """The BPF program of a seccomp filter."""
    places: tuple[str, ...] = ()
    """Paths of tmpfs folders, as the process sees them; their content counts toward the memory limit."""
    alone: bool = False
    """Whether the process has its own pid namespace, so that nothing it started outlives it."""
    private_file_alarm: PrivateFileAlarm | None = None
    """Detects private files created while the command runs; None if it writes directly to the workspace."""
    notes: tuple[str, ...] = ()
    """Sentences for the user or the model about how the command is confined."""


class Runner(Protocol):
    """A way to confine a launch: bubblewrap, Landlock, container or none."""

    @property
    def name(self) -> str:
        """The runner's name, one word."""
        ...

    @property
    def boundary(self) -> str:
        """One sentence describing what the runner prevents a command from doing."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps commands inside the workspace, so that they need no approval."""
        ...

    @property
    def keeps_scratch(self) -> bool:
        """Whether it gives commands the persistent folders of their session."""
        ...

    @property
    def can_mount_overlay(self) -> bool:
        """Whether it can mount an overlay for its commands, so that their writes go to a separate layer."""
        ...

    @property
    def session_network_modes(self) -> frozenset[CommandNetwork]:
        """The network modes in which a command joins its session's network namespace."""
        ...

    def unavailable_reason(self) -> str:
        """Return why the runner does not work on this machine; empty if it does."""
        ...

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return how to start the launch so that it runs confined; see `confined_launch`."""
        ...


@runtime_checkable
class PersistentRunner(Protocol):
    """A runner that keeps containers for a workspace from one command to the next."""

    def release_workspace(self, root: str) -> None:
        """Remove the containers kept for a workspace."""
        ...


@contextmanager
def confined_launch(
    runner: Runner, launch: Launch, resources: LaunchResources = NO_RESOURCES
) -> Iterator[ConfinedLaunch]:
    """Context manager: yields the confined launch, then closes the fds that the runner opened for it."""
    confined = runner.confine(launch, resources)
    try:
        yield confined
    finally:
        if confined.private_file_alarm is not None:
            confined.private_file_alarm.close()
        for fd in confined.runner_fds:
            os.close(fd)
