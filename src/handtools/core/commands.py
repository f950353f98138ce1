"""Commands: a script with its limits, its output and exit, background jobs, and the ports that run them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from handtools.core.call import Call
from handtools.core.changes import Change, Coverage, RecordedChanges
from handtools.core.web import Visit

CommandNetwork = Literal["off", "listed", "on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one command may use up; None leaves it to the runner."""

    seconds: float = 120.0
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    """Of each process."""
    output_bytes: int = 256 << 20
    """Kept on disk; the middle of anything longer is dropped, and that is said."""
    written_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedShellState:
    """What the earlier commands of a session have left for the next one."""

    cwd: str = "."
    exports: Mapping[str, str | None] = field(default_factory=dict)
    """Variables that they set, as bash words the values; None was unset."""
    functions: str = ""
    """As bash lists them."""
    aliases: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A bash script to run in the workspace."""

    script: str
    cwd: str = ""
    """Relative to the workspace; empty is where the last command of the session ended."""
    env: Mapping[str, str] = field(default_factory=dict)
    network: CommandNetwork = "off"
    hosts: tuple[str, ...] = ()
    """The hosts that `listed` lets through."""
    allowance: Allowance = Allowance()
    review: bool = False
    """Hold what it changed until a person has seen it."""
    terminal: tuple[int, int] | None = None
    """Lines and columns of a terminal, for programs that want one."""
    live: bool = False
    """In the background: on the files as they are, seeing later edits; what it changes is not captured."""
    inherited: InheritedShellState | None = None
    """What it begins with, once that was judged: a session that goes on meanwhile changes nothing about it."""

    @property
    def kind(self) -> Literal["run"]:
        """As rules name it."""
        return "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
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
class CommandExit:
    """How a command ended. A failing command is a result, not an error."""

    code: int | None
    """None when a signal ended it."""
    signal: int | None = None
    ended: Literal["exited", "killed", "timeout", "cancelled", "limit"] = "exited"
    seconds: float = 0.0
    peak_bytes: int | None = None
    output: CommandOutput
    changes: RecordedChanges | None = None
    cwd: str = "."
    """Where the script ended up: the next command of the session starts there."""
    notes: tuple[str, ...] = ()
    """What the person or the model should know: not confined, coverage, refused changes."""


@dataclass(frozen=True, slots=True)
class OutputProgress:
    """A running command's output so far."""

    tail: str
    bytes: int
    lines: int
    clipped: bool
    kept: str = ""
    """The name under which all of it is being kept; empty while it is short."""


ProgressListener = Callable[[OutputProgress | Visit], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCommand:
    """A command that has ended, as a machine hands it over: what it changed is not landed yet."""

    exit: CommandExit
    """Its output's `kept` is a name in the store of outputs."""
    delta: tuple[Change, ...] | None = None
    """What it did to the workspace; None when that was not captured, and it happened in place."""
    coverage: Coverage = "none"
    omitted: tuple[str, ...] = ()
    discard: Callable[[], None] = lambda: None
    """Lets go of what was captured, landed or not."""


JobEndHandler = Callable[[FinishedCommand], CommandExit | None]
"""Told of a job's end, in the job's thread, to land what it changed; None when that waits for a person's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command in the background."""

    id: str
    script: str
    description: str
    seconds: float
    output: CommandOutput
    exit: CommandExit | None
    """None while it runs."""
    call_id: str = ""
    """The call that started it: what it changed is that call's."""
    waiting: FinishedCommand | None = None
    """It has ended, and what it changed has not landed."""
    review: bool = False
    """Whether a person is to see what it changed first."""
    terminal: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A part of a job's output, and where to go on."""

    data: bytes
    start: int
    """Where the part begins in the whole: later than asked for when the middle was dropped."""
    cursor: int


class Commands(Protocol):
    """Commands as a tool sees them: judged, confined, limited, and what they changed recorded."""

    async def run(self, command: Command) -> CommandExit:
        """Run to the end; a failing command is a result. Progress is announced as it goes."""
        ...

    async def start(self, command: Command, description: str) -> Job:
        """Run in the background."""
        ...

    async def jobs(self) -> list[Job]:
        """The session's jobs, newest first."""
        ...

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """One job, after waiting at most so long for its end."""
        ...

    async def page(self, job_id: str, start: int, size: int) -> OutputPage:
        """A part of what a job printed."""
        ...

    async def send(self, job_id: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        ...

    async def kill(self, job_id: str) -> Job:
        """End a job and everything it started."""
        ...


class HostCommands(Protocol):
    """Commands as a machine offers them: confined and limited, without policy or memory."""

    @property
    def boundary(self) -> str:
        """One honest sentence about what keeps a command in."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps commands inside the workspace."""
        ...

    @property
    def missing(self) -> str:
        """Why there are no commands here; empty when there are."""
        ...

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private: Sequence[str],
        read_only: Sequence[str],
    ) -> FinishedCommand:
        """Run to the end; `private` and `read_only` are globs that the policy gives."""
        ...

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private: Sequence[str],
        read_only: Sequence[str],
        show: ProgressListener,
        settle: JobEndHandler,
    ) -> Job:
        """Run in the background until it ends, is killed, or we are gone."""
        ...

    async def jobs(self, session: str) -> list[Job]:
        """The jobs of a session, newest first."""
        ...

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, after waiting for its end."""
        ...

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """A part of what a job printed."""
        ...

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        ...

    async def kill(self, job_id: str, session: str) -> Job:
        """End a job and everything it started."""
        ...

    def inherited(self, session: str) -> InheritedShellState:
        """What the next command of a session begins with, and where."""
        ...

    def settled(self, job_id: str, session: str, end: CommandExit) -> None:
        """Note that what a job changed has landed, or never will."""
        ...

    def close(self) -> None:
        """End every job."""
        ...
