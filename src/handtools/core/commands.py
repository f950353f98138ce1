"""Shell commands as values: script, limits, output, exit, background jobs; and the ports that run them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

from handtools.core.call import Call
from handtools.core.changes import Change, ChangeCoverage, RecordedChanges
from handtools.core.web import Visit
from handtools.text.search.glob import PathGlobs

CommandNetwork = Literal["off", "listed", "on"]
CommandEnding = Literal["exited", "killed", "timeout", "cancelled", "limit"]
PathPredicate = Callable[[str], bool]
"""Predicate on a path relative to the workspace."""


def matches_no_path(_path: str) -> bool:
    """Return False for every path."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """Resource limits of one command: time, memory, processes, files, output.

    None means the runner's limit.
    """

    seconds: float = 120.0
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    """Limit of open files per process."""
    output_bytes: int = 256 << 20
    """Maximum bytes of output stored on disk; from longer output the middle is dropped, with a note."""
    written_bytes: int | None = None

    def within(self, max_limits: "CommandLimits") -> "CommandLimits":
        """Return the limits, each lowered to the same limit in `max_limits` if that is set."""
        return CommandLimits(
            **{
                each.name: _stricter_limit(getattr(self, each.name), getattr(max_limits, each.name))
                for each in fields(self)
            }
        )


def _stricter_limit(one: Any, other: Any) -> Any:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedShellState:
    """Shell state that a session's commands pass on to the next one: folder, exports, functions, aliases."""

    cwd: str = "."
    exports: Mapping[str, str | None] = field(default_factory=dict)
    """Exported variables with values quoted for bash; None means that the variable was unset."""
    functions: str = ""
    """Function definitions in the form that bash prints them."""
    aliases: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A bash script to run in the workspace, with its folder, environment, network access and limits."""

    script: str
    cwd: str = ""
    """Working folder relative to the workspace; empty means where the session's last command ended."""
    env: Mapping[str, str] = field(default_factory=dict)
    network: CommandNetwork = "off"
    hosts: tuple[str, ...] = ()
    """Hosts that the command may reach when `network` is "listed"."""
    limits: CommandLimits = CommandLimits()
    review: bool = False
    """Whether file changes are applied only after the user has approved them."""
    terminal: tuple[int, int] | None = None
    """Rows and columns of a pseudo-terminal; None runs the command without one."""
    live: bool = False
    """Whether to run in the background on the real files, so that the command sees later edits.

    Its changes are not captured.
    """
    inherited: InheritedShellState | None = None
    """The shell state that was approved with the command; later commands of the session don't alter it."""

    @property
    def kind(self) -> Literal["run"]:
        """The effect kind that policy rules use for commands."""
        return "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """Output of a command: head and tail in memory, the full output in the output store."""

    head: bytes
    tail: bytes
    """The last bytes of the output; empty when `head` is all of it."""
    bytes: int
    lines: int
    kept: str = ""
    """Path under which the complete output can be read; empty if it was not stored."""
    dropped_bytes: int = 0
    """Bytes dropped from the middle, which are missing from the stored output too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExit:
    """How a command ended: exit code or signal, time, output, changes. A non-zero exit is not an error."""

    code: int | None
    """Exit code; None if a signal terminated the command."""
    signal: int | None = None
    ended: CommandEnding = "exited"
    seconds: float = 0.0
    peak_bytes: int | None = None
    output: CommandOutput
    streams: tuple[CommandOutput, ...] = ()
    """Standard output and standard error separately, if the workspace separates them; otherwise empty."""
    changes: RecordedChanges | None = None
    cwd: str = "."
    """Folder in which the script ended; the session's next command starts there."""
    notes: tuple[str, ...] = ()
    """Sentences for the user or the model: no sandbox, undetected changes, refused changes."""
    left: int = 0
    """How many of the command's processes outlived it and were killed."""
    fault: str = ""
    """Why the command could not be started; empty if it ran."""
    discarded: str = ""
    """Why none of its file changes were applied, although they were not denied; empty if they were applied."""


@dataclass(frozen=True, slots=True)
class OutputProgress:
    """Output of a running command so far: its last lines and totals."""

    tail: str
    bytes: int
    lines: int
    clipped: bool
    kept: str = ""
    """Name of the stored output; empty while the output is short."""


ProgressListener = Callable[[OutputProgress | Visit], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCommand:
    """A command that ended, with captured file changes that are not yet applied to the workspace."""

    exit: CommandExit
    """Exit and output; here `output.kept` is a name in the output store."""
    delta: tuple[Change, ...] | None = None
    """File changes that the command made; None if they were written directly instead of captured."""
    coverage: ChangeCoverage = "none"
    omitted: tuple[str, ...] = ()
    discard: Callable[[], None] = lambda: None
    """Deletes the captured changes from disk, applied or not; without changes there is nothing to delete."""


@dataclass(frozen=True, slots=True)
class PublishedPort:
    """A TCP port of a background job, and the loopback port of this machine where the user can reach it."""

    port: int
    """The port on which the job listens, in the session's network."""
    host_port: int

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        return f"http://127.0.0.1:{self.host_port}/"


JobEndHandler = Callable[[FinishedCommand], CommandExit | None]
"""Callback run in the job's thread when it ends, to apply its changes.

Returns None if they need approval.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A background command: its script, output so far and, once it ended, its exit."""

    id: str
    script: str
    description: str
    seconds: float
    output: CommandOutput
    exit: CommandExit | None
    """How the job ended; None while it runs."""
    call_id: str = ""
    """Id of the call that started the job; the job's changes are recorded for that call."""
    waiting: FinishedCommand | None = None
    """The finished command whose changes are not applied yet; otherwise None."""
    review: bool = False
    """Whether the user must approve the job's changes before they are applied."""
    terminal: tuple[int, int] | None = None
    ports: tuple[int, ...] = ()
    """TCP ports on which the running job listens, in the session's network."""
    published: tuple[PublishedPort, ...] = ()
    """Ports of the job that the user can reach from outside."""


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A range of bytes of a job's output, and the cursor for the next range."""

    data: bytes
    start: int
    """Offset of the range in the whole output; later than requested when the middle was dropped."""
    cursor: int


class Commands(Protocol):
    """Port for tools to run shell commands: checked by policy, sandboxed, limited, changes recorded."""

    async def run(self, command: Command) -> CommandExit:
        """Run a command to its end and return its exit, even if it failed.

        Announces output while it runs.
        """
        ...

    async def start(self, command: Command, description: str) -> Job:
        """Start a command in the background and return its job."""
        ...

    async def jobs(self) -> list[Job]:
        """List the session's background jobs, newest first."""
        ...

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """Return one job, after waiting at most `timeout` seconds for its end."""
        ...

    async def page(self, job_id: str, start: int, size: int) -> OutputPage:
        """Return up to `size` bytes of a job's output from offset `start`."""
        ...

    async def send(self, job_id: str, data: bytes) -> None:
        """Write bytes to a job's standard input or terminal."""
        ...

    async def kill(self, job_id: str) -> Job:
        """Kill a job with all its processes and return it."""
        ...

    async def publish(self, job_id: str, port: int) -> Job:
        """Publish a job's port on this machine's loopback interface for the user, until the job ends.

        Return the job.
        """
        ...

    async def unpublish(self, job_id: str, port: int | None) -> Job:
        """Close a published port of a job, or all of them, and return the job."""
        ...


class HostCommands(Protocol):
    """Host port to run shell commands: sandboxed and limited, but without policy or journal."""

    @property
    def boundary(self) -> str:
        """One sentence for the user on what confines a command here."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel confines commands to the workspace."""
        ...

    @property
    def missing(self) -> str:
        """Why no command can run on this machine; empty when commands can."""
        ...

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate = matches_no_path,
    ) -> FinishedCommand:
        """Run a command to its end, with the private paths hidden and the read-only ones write-protected.

        A private path for which `is_open` is true stays visible. With an overlay nothing is write-protected,
        since the changes are checked before they are applied.
        """
        ...

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate = matches_no_path,
        show: ProgressListener,
        settle: JobEndHandler,
    ) -> Job:
        """Start a command in the background; it runs until it exits, is killed, or this process ends."""
        ...

    async def jobs(self, session: str) -> list[Job]:
        """List the background jobs of a session, newest first."""
        ...

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """Return one job, after waiting at most `timeout` seconds for its end."""
        ...

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """Return up to `size` bytes of a job's output from offset `start`."""
        ...

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write bytes to a job's standard input or terminal."""
        ...

    async def kill(self, job_id: str, session: str) -> Job:
        """Kill a job with all its processes and return it."""
        ...

    async def publishable(self, job_id: str, session: str, port: int) -> PublishedPort:
        """Return where a job's port is or would be published; raises if it can't be."""
        ...

    async def publish(self, job_id: str, session: str, port: PublishedPort) -> Job:
        """Publish a port of a job on exactly this port of the machine's loopback, until the job ends."""
        ...

    async def unpublish(self, job_id: str, session: str, port: int | None) -> Job:
        """Close a published port of a job, or all of them, and return the job."""
        ...

    def inherited_shell_state(self, session: str) -> InheritedShellState:
        """Return the session's shell state for the next command: folder, exports, functions, aliases."""
        ...

    def settings_left_in_home(self, session: str) -> tuple[str, ...]:
        """Return settings such as `~/.gitconfig` that a session's commands wrote into their home folder."""
        ...

    def record_job_result(self, job_id: str, session: str, command_exit: CommandExit) -> None:
        """Store the final exit of a job after its file changes were applied or refused."""
        ...

    def close(self) -> None:
        """Kill every background job."""
        ...
