"""A command: a script as a value, what it may use, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from handtools.core.changes import Changes

Network = Literal["off", "listed", "on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one command may use up; None leaves it to the runner."""

    seconds: float = 120.0
    memory_bytes: int | None = None
    processes: int | None = None
    output_bytes: int = 256 << 20
    """Kept on disk; the middle of anything longer is dropped, and that is said."""
    written_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A bash script to run in the workspace."""

    script: str
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    network: Network = "off"
    hosts: tuple[str, ...] = ()
    """The hosts that `listed` lets through."""
    allowance: Allowance = Allowance()
    review: bool = False
    """Hold what it changed until a person has seen it."""

    @property
    def kind(self) -> Literal["run"]:
        """As rules name it."""
        return "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a command printed: bounded here, whole in the store."""

    head: bytes
    tail: bytes
    """Empty when the head is everything."""
    bytes: int
    lines: int
    kept: str = ""
    """The path under which the whole can be read."""
    dropped_bytes: int = 0
    """Missing even there, from the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a command ended. A failing command is a result, not an error."""

    code: int | None
    """None when a signal ended it."""
    signal: int | None = None
    ended: Literal["exited", "killed", "timeout", "cancelled", "limit"] = "exited"
    seconds: float = 0.0
    peak_bytes: int | None = None
    output: Output
    changes: Changes | None = None
    cwd: str = "."
    """Where the script ended up: the next command of the session starts there."""
    notes: tuple[str, ...] = ()
    """What the person or the model should know: not confined, coverage, refused changes."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A running command's output so far."""

    tail: str
    bytes: int
    lines: int
    clipped: bool
