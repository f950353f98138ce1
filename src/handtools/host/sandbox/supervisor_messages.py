"""What a supervisor, or whoever attends to a command in its place, is told and answers: the keys, in one place.

They travel as JSON (`fd_messages`), so a tuple arrives as a list. Standard library only: supervisors import it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, final


@final
class StartOrder(TypedDict):
    """Start a command. Its descriptors come with the message, in the order of `fds`."""

    order: Literal["start"]
    argv: list[str]
    env: Mapping[str, str]
    cwd: str
    fds: Sequence[int]
    """The numbers that its descriptors get."""
    terminal: Sequence[int] | None
    controls_terminal: bool
    limits: dict[str, int]
    """By the names of `resource`."""
    memory: int | None
    usual_memory: int
    """Where `memory` gives no limit."""
    processes: int | None
    unshare: int
    identity: Sequence[int] | None
    namespaces: Sequence[int]
    """The numbers of descriptors of namespaces that it joins, in this order."""
    mounts: Sequence[Sequence[Any]]
    """The arguments of mount(2)."""
    mounts_left: str
    """A mount point that it does without after that, with all that is mounted below; empty for none."""
    views: Sequence[Sequence[Any]]
    """Numbers of sockets over which handles of mounted folders are sent out, each with that folder's path."""
    user: Sequence[int] | None
    landlock: int | None
    seccomp: str
    """In hexadecimal."""
    alone: bool
    layers: Sequence[Sequence[Any]]
    """Where its writes go, where that is in its own view, and how many bytes and files each may hold."""
    scratch: Sequence[Sequence[Any]]
    """Other folders that it writes to, and how many bytes and files each may hold."""
    places: Sequence[str]


@final
class NetworkOrder(TypedDict):
    """Make a network namespace, or open sockets in the one whose descriptors come with the message."""

    order: Literal["network"]
    unshare: int
    """CLONE_NEW* flags of the namespaces to make; 0 to join those that came."""
    listening: int
    """How many sockets that listen on a loopback port of their own are wanted."""
    connecting: Sequence[int]
    """Address families of further sockets, one for each, that the one who gets them connects."""


@final
class EndOrder(TypedDict):
    """End the command and all that it started."""

    order: Literal["end"]
    gently: bool


@final
class CommandStarted(TypedDict):
    pid: int


@final
class RefusalAnswer(TypedDict):
    """It was not started, and why."""

    refused: str


@final
class NetworkOpened(TypedDict):
    """The descriptors that were wanted come with it: of the namespaces that were made, then the sockets."""

    namespaces: int


@final
class CommandEndReport(TypedDict):
    status: int | None
    """As wait(2) gives it."""
    peak: int
    """Bytes of memory; 0 when that is not known."""
    left: int
    """Processes that outlived it, and were ended."""
    starved: bool
    over: Literal["", "memory", "bytes", "files", "scratch"]
    """The limit for which it was ended."""
    survivors: int
    """Processes that could not be ended."""


SupervisorOrder = StartOrder | EndOrder | NetworkOrder
CommandEndAnswer = RefusalAnswer | CommandEndReport
SupervisorAnswer = CommandStarted | CommandEndAnswer
