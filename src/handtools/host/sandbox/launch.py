"""A launch: argv, environment, mounts and limits of one process; and the `Runner` protocol that confines it."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from handtools.core.commands import Allowance, CommandNetwork
from handtools.host.sandbox.orders import SupervisorOrder


@dataclass(frozen=True, slots=True)
class Overlay:
    """A layer that takes every write: `lower` stays as it is until the delta is landed."""

    lower: str
    upper: str
    work: str
    mounted_at: str
    most_bytes: int = 8 << 30
    most_files: int = 500_000
    """What the layer may come to hold: beyond that the command is ended."""
    masks: str = ""
    """A layer between the two that hides what is private, if there is one."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount(2), done in the mount namespace of the launch before it executes."""

    source: str
    target: str
    kind: str = ""
    flags: int = 0
    options: str = ""


class LaunchAttendant(Protocol):
    """Whoever starts a launch, ends it and says how it went, in the words of `orders.py`."""

    @property
    def line(self) -> socket.socket:
        """Where it answers."""
        ...

    def order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Tell it something."""
        ...

    def abandon(self) -> None:
        """It does not answer: end it and all that it started."""
        ...


class AttendantSource(Protocol):
    """Where launches find someone to attend to them."""

    def take(self) -> Any:
        """One that is free."""
        ...

    def give_back(self, hired: Any) -> None:
        """It has nothing to do any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Values only; file descriptors are ours and stay open until the launch has ended."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """All of it: nothing is inherited."""
    cwd: str
    root: str
    """The workspace, as an absolute path without links."""
    pass_fds: tuple[int, ...] = ()
    """Descriptors the command finds under the same numbers; 0, 1 and 2 are made for it."""
    input_open: bool = False
    """Whether it can be written to while it runs; otherwise its input is empty."""
    terminal: tuple[int, int] | None = None
    """Lines and columns of the terminal it gets; None gives it pipes."""
    network: CommandNetwork = "off"
    hosts: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Absolute paths to be masked."""
    read_only: tuple[str, ...] = ()
    """Absolute paths that can't be written."""
    frozen: bool = False
    """Whether all of the workspace is read-only."""
    readable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that it may read: programs, never secrets."""
    writable: tuple[str, ...] = ()
    """Absolute paths outside the workspace that it may write: its caches."""
    overlay: Overlay | None = None
    in_place: bool = False
    """Whether no layer can be put under it, so that it writes to the workspace itself."""
    allowance: Allowance = field(default_factory=Allowance)
    crew: AttendantSource | None = None
    """Who attends to it; None is a supervisor on this machine."""

    # What a runner may have done in the new process, in this order, between fork and exec.
    unshare: int = 0
    """CLONE_NEW* flags; with CLONE_NEWUSER the identity below is mapped first."""
    identity: tuple[int, int] | None = None
    """The user and group it appears as inside its user namespace."""
    door: tuple[int, int] | None = None
    """In its own network: a socket to hand a listening one out through, and the port to listen on."""
    mounts: tuple[Mount, ...] = ()
    user: tuple[int, int] | None = None
    """The user and group to become, for runners that start as root."""
    landlock: int | None = None
    """A descriptor of a Landlock ruleset to be restricted by."""
    seccomp: bytes = b""
    """A BPF program of seccomp."""
    places: tuple[str, ...] = ()
    """Folders in its view that are memory, and count as such."""
    alone: bool = False
    """Whether it has a process namespace: then nothing it started outlives it."""
    notes: tuple[str, ...] = field(default=())
    """What the person or the model should know about how it was confined."""


class Runner(Protocol):
    """One way to confine a launch."""

    @property
    def name(self) -> str:
        """One word."""
        ...

    @property
    def boundary(self) -> str:
        """One honest sentence about what it keeps a command from."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps a command inside the workspace: then running needs no question."""
        ...

    def unavailable_reason(self) -> str:
        """Empty when it works on this machine, else why not."""
        ...

    def confine(self, launch: Launch) -> Launch:
        """The launch with its boundary around it."""
        ...


@runtime_checkable
class PersistentRunner(Protocol):
    """A runner that keeps things for a workspace from one command to the next."""

    @property
    def layered(self) -> bool:
        """Whether a layer can be put under its commands."""
        ...

    def leave(self, root: str) -> None:
        """Let go of what is kept for a workspace."""
        ...
