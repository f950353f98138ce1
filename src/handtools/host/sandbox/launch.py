"""A launch: argv, environment, mounts and limits of one process; and the `Runner` protocol that confines it."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from handtools.core.commands import CommandLimits, CommandNetwork, PathPredicate, matches_no_path
from handtools.host.sandbox.policy_paths import PrivateFileAlarm
from handtools.host.sandbox.supervisor_messages import SupervisorOrder
from handtools.text.search.glob import PathGlobs

NO_HOST_LIST_NOTE = "Hosts can't be listed here: the command had no network."


@dataclass(frozen=True, slots=True)
class Overlay:
    """An overlay mount: all writes go to its upper folder, and `lower` stays unchanged."""

    lower: str
    upper: str
    work: str
    mounted_at: str
    most_bytes: int = 8 << 30
    most_files: int = 500_000
    """How many files the upper folder may hold; a command that makes more is killed."""
    masks: str = ""
    """A middle layer that hides private paths; empty without one."""


@dataclass(frozen=True, slots=True)
class SessionFolders:
    """The folders of a session that its commands write to besides the workspace, and that they find again."""

    base: str
    """The folder of ours that contains all of them."""
    home: str
    temporary: str
    caches: str
    """Package caches, shared with other sessions."""
    reserved: tuple[str, ...]
    """Names in the temporary folder at which every command has a mount, so that none can replace them."""
    quotas: tuple[tuple[str, int, int], ...]
    """Folders, and how many bytes and files each may hold; a command that makes more is killed."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount(2) call, done in the mount namespace of the process before exec."""

    source: str
    target: str
    kind: str = ""
    flags: int = 0
    options: str = ""


class LaunchSupervisor(Protocol):
    """Whoever starts a launch, ends it and says how it went, in the words of `orders.py`."""

    @property
    def line(self) -> socket.socket:
        """The socket on which the answers come."""
        ...

    def send_order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Tell it something."""
        ...

    def abandon(self) -> None:
        """Kill the supervisor, which does not answer, with all that it started."""
        ...


class SupervisorPoolPort(Protocol):
    """Supplies supervisors, or threads that run commands in a container, to launches."""

    def take(self) -> Any:
        """Take a free supervisor, or start one."""
        ...

    def give_back(self, hired: Any) -> None:
        """Return the supervisor after the launch has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything needed to start one process. Its descriptors belong to the caller and stay open until its end."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The complete environment: nothing is inherited."""
    cwd: str
    root: str
    """The absolute path of the workspace, without links."""
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the command gets under the same numbers, besides 0, 1 and 2."""
    input_open: bool = False
    """Whether input can be sent while the command runs; otherwise its standard input is empty."""
    terminal: tuple[int, int] | None = None
    """Rows and columns of the command's terminal; None for pipes."""
    separate_streams: bool = False
    """Whether standard error has a pipe of its own, at the cost of the order in which both were written."""
    controls_terminal: bool = True
    """Whether the terminal controls the process that is started; not if a program that this starts takes it."""
    network: CommandNetwork = "off"
    hosts: tuple[str, ...] = ()
    outgoing_proxy: str = ""
    """The HTTP proxy through which listed hosts are reached, as `http://[USER:PASSWORD@]HOST:PORT`."""
    private: tuple[PathGlobs, ...] = ()
    """The paths of the workspace that are hidden from the command, one value for each rule."""
    read_only: tuple[PathGlobs, ...] = ()
    """The paths of the workspace that the command must not write, unless an overlay keeps its writes apart."""
    is_open: PathPredicate = matches_no_path
    """Whether a private path, relative to the workspace, may be seen all the same."""
    frozen: bool = False
    """Whether the whole workspace is read-only."""
    readable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that the command may read: programs, never secrets."""
    writable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that the command may write: its caches."""
    scratch: SessionFolders | None = None
    """The lasting folders of the command's session; None for a private home and temporary folder of its own."""
    overlays: tuple[Overlay, ...] = ()
    """One for each folder of the workspace; none if it writes to the workspace itself."""
    refreshed: Callable[[str], bool] | None = None
    """Which paths are brought into its layer when others change them while it runs; None for no path."""
    in_place: bool = False
    """Whether the command writes to the workspace itself, because no overlay can be mounted for it."""
    allowance: CommandLimits = field(default_factory=CommandLimits)
    crew: SupervisorPoolPort | None = None
    """What starts and ends the process; None for a supervisor on this machine."""

    # What a runner may have done in the new process, in this order, between fork and exec.
    unshare: int = 0
    """CLONE_NEW* flags of namespaces to create; with CLONE_NEWUSER, `identity` is mapped first."""
    identity: tuple[int, int] | None = None
    """The user and group id that the process has inside its user namespace."""
    namespaces: tuple[int, ...] = ()
    """Descriptors of namespaces to join before others are created: of the session's network, and of the user
    namespace around it. They belong to the session.
    """
    mounts: tuple[Mount, ...] = ()
    mounts_left: str = ""
    """A mount point that the process does without, with all that is mounted below, but for its own overlays."""
    views: tuple[tuple[int, str], ...] = ()
    """Sockets over which handles of mounted folders are sent out, each with that folder's path."""
    user: tuple[int, int] | None = None
    """The user and group id to switch to, for runners that start as root."""
    landlock: int | None = None
    """The descriptor of a Landlock ruleset to apply."""
    seccomp: bytes = b""
    """The BPF program of a seccomp filter."""
    places: tuple[str, ...] = ()
    """Folders, as the process sees them, that are in memory (tmpfs) and count toward the memory limit."""
    alone: bool = False
    """Whether the process has its own pid namespace, so that nothing it started outlives it."""
    private_file_alarm: PrivateFileAlarm | None = None
    """Notices private files that appear while the command runs; None if it writes to the workspace itself."""
    notes: tuple[str, ...] = field(default=())
    """Sentences for the user or the model about how the command is confined."""

    @property
    def notes_without_host_list(self) -> tuple[str, ...]:
        """The notes of a runner that can't tell hosts apart: a command for listed ones has no network there."""
        return (*self.notes, NO_HOST_LIST_NOTE) if self.network == "listed" else self.notes


class Runner(Protocol):
    """A way to confine a launch: bubblewrap, Landlock, container or none."""

    @property
    def name(self) -> str:
        """The runner's name, one word."""
        ...

    @property
    def boundary(self) -> str:
        """One sentence about what the runner keeps a command from doing."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps commands inside the workspace, so that they need no approval."""
        ...

    @property
    def keeps_scratch(self) -> bool:
        """Whether it gives commands the lasting folders of their session."""
        ...

    @property
    def can_mount_overlay(self) -> bool:
        """Whether an overlay can be mounted under its commands, so that their writes are kept apart."""
        ...

    @property
    def session_network_modes(self) -> frozenset[CommandNetwork]:
        """With which network access a command joins the network namespace of its session."""
        ...

    def unavailable_reason(self) -> str:
        """Why the runner does not work on this machine; empty when it does."""
        ...

    def confine(self, launch: Launch) -> Launch:
        """The launch, modified so that it runs confined."""
        ...


@runtime_checkable
class PersistentRunner(Protocol):
    """A runner that keeps containers for a workspace from one command to the next."""

    def release_workspace(self, root: str) -> None:
        """Remove what is kept for a workspace."""
        ...
