"""Messages to and from a supervisor, or a thread that runs a command instead of one.

They are sent as JSON (`fd_messages`), so a tuple arrives as a list. Standard library only: supervisors
import it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, final


@final
class StartOrder(TypedDict):
    """Start a command. Its file descriptors are sent with the message, in the order of `fds`."""

    order: Literal["start"]
    argv: list[str]
    env: Mapping[str, str]
    cwd: str
    fds: Sequence[int]
    """The numbers that the sent file descriptors get in the command."""
    terminal: Sequence[int] | None
    controls_terminal: bool
    limits: dict[str, int]
    """Resource limits, by their names in the `resource` module."""
    memory: int | None
    usual_memory: int
    """The memory limit if `memory` is None."""
    processes: int | None
    unshare: int
    identity: Sequence[int] | None
    namespaces: Sequence[int]
    """Fd numbers of the namespaces to join, in this order."""
    mounts: Sequence[Sequence[Any]]
    """The mounts to make, each as the arguments of mount(2)."""
    mounts_left: str
    """A mount point to unmount after `mounts`, with everything mounted below it; empty for none."""
    views: Sequence[Sequence[Any]]
    """Pairs of a socket's fd number and the path of a mounted folder, whose directory fd is sent over it."""
    user: Sequence[int] | None
    landlock: int | None
    seccomp: str
    """The BPF program of the seccomp filter, in hexadecimal; empty for none."""
    alone: bool
    layers: Sequence[Sequence[Any]]
    """Folders that receive the command's writes, each with its path as the command sees it, and limits."""
    scratch: Sequence[Sequence[Any]]
    """Other folders that the command writes to, with their limits in bytes and files."""
    places: Sequence[str]


@final
class NetworkOrder(TypedDict):
    """Create a network namespace, or open sockets in the one whose fds are sent with the message."""

    order: Literal["network"]
    unshare: int
    """CLONE_NEW* flags of the namespaces to create; 0 to join the ones that were sent."""
    listening: int
    """How many sockets to open that listen on free loopback ports."""
    connecting: Sequence[int]
    """The address families of further sockets to open, which the receiver connects."""


@final
class EndOrder(TypedDict):
    """Stop the command and everything it started."""

    order: Literal["end"]
    gently: bool


@final
class CommandStarted(TypedDict):
    pid: int


@final
class RefusalAnswer(TypedDict):
    """The command was not started; `refused` is the reason."""

    refused: str


@final
class NetworkOpened(TypedDict):
    """Sent with the requested fds: first the created namespaces, then the sockets."""

    namespaces: int


@final
class CommandEndReport(TypedDict):
    status: int | None
    """The exit status, as returned by wait(2)."""
    peak: int
    """Peak memory in bytes; 0 if unknown."""
    left: int
    """How many processes outlived the command and were killed."""
    starved: bool
    over: Literal["", "memory", "bytes", "files", "scratch"]
    """The limit that the command exceeded, so that it was killed; empty if none."""
    survivors: int
    """How many processes could not be killed."""


SupervisorOrder = StartOrder | EndOrder | NetworkOrder
CommandEndAnswer = RefusalAnswer | CommandEndReport
SupervisorAnswer = CommandStarted | CommandEndAnswer
