"""Background jobs: commands that go on after their tool call has returned, and end with this process.

ADR 65.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import anyio
from anyio import to_thread

from handtools.core.call import Call
from handtools.core.commands import Command, CommandExit, FinishedCommand, Job, JobEndHandler, OutputPage
from handtools.core.errors import HandtoolsError, InvalidInput, NotFound, TooLarge
from handtools.host.commands.exit_status import (
    command_exit_of,
    command_output_of,
    exit_notes,
    output_file_name,
)
from handtools.host.commands.launch_pipeline import LaunchPipeline
from handtools.host.commands.shell_session import ShellStateFile
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.processes.listening_ports import listening_ports
from handtools.host.sandbox.processes.running_process import ProcessResult, RunningProcess
from handtools.host.sandbox.runners.hidden_paths import UNSEARCHED_FOLDERS, PolicyGlobs

MOST_RUNNING_JOBS = 32
"""How many jobs of one session may run at the same time."""
REMEMBERED_JOBS = 64
"""How many ended jobs are kept for later questions about them."""
_REMEMBERED_FOLDERS = 10_000


@dataclass(slots=True)
class BackgroundJob:
    """A command that runs in the background: its call, process, output and captured changes."""

    call: Call
    command: Command
    description: str
    slip: ShellStateFile
    carrier: LaunchPipeline
    settle: JobEndHandler
    id: str = ""
    running: RunningProcess = field(init=False)
    exit: CommandExit | None = None
    waiting: FinishedCommand | None = None
    """How the job ended, while its file changes are not yet applied to the workspace; else None."""

    def start(self, launch: Launch, kept: Path) -> None:
        """Start the job's process; raises when it can't be prepared."""
        self.running = RunningProcess(launch, kept, None, self.carrier.carry, self._ended)
        self.running.begun()

    def close(self) -> None:
        """Close the job's descriptors and delete its captured changes."""
        self.running.close()
        self.slip.close()
        self.carrier.discard()

    def _ended(self, ended: ProcessResult) -> None:
        """Called in the job's thread at its end: record the result and have its file changes applied."""
        delta = self.carrier.delta
        ran = FinishedCommand(
            exit=command_exit_of(
                ended,
                output_file_name(self.call),
                "",
                (*exit_notes(ended), *self.carrier.notes, *self.carrier.walls(ended)),
            ),
            delta=delta.changes,
            coverage=delta.coverage,
            omitted=delta.omitted,
            discard=self.carrier.discard,
        )
        end = ran.exit if ended.fault else self.settle(ran)
        self.exit, self.waiting = end or ran.exit, None if end else ran


class BackgroundJobs:
    """The background jobs of one workspace, of all sessions."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundJob] = {}
        self._count = 0

    def check(self, session: str) -> None:
        """Raise an error when the session has too many running jobs."""
        alive = [k for k in self._of(session) if k.running.ended is None]
        if len(alive) >= MOST_RUNNING_JOBS:
            raise TooLarge(f"{MOST_RUNNING_JOBS} jobs are running.", hint="End one with `jobs` first.")

    async def start(self, task: BackgroundJob, launch: Launch, kept: Path) -> Job:
        """Start a command as a background job and keep track of it; returns its description."""
        try:
            await to_thread.run_sync(task.start, launch, kept)
        except BaseException:
            task.close()
            raise
        self._count += 1
        task.id = f"job{self._count}"
        self._jobs[task.id] = task
        self._forget()
        return _job_of(task)

    def settled(self, job_id: str, session: str, end: CommandExit) -> None:
        """Record that a job's file changes were applied or rejected, with the final result."""
        kept = self._find(job_id, session)
        kept.exit, kept.waiting = end, None

    def listed(self, session: str) -> list[Job]:
        return [_job_of(kept) for kept in reversed(self._of(session))]

    async def wait(self, job_id: str, session: str, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, after waiting at most `timeout` seconds for its end."""
        kept = self._find(job_id, session)
        if timeout > 0:
            with anyio.move_on_after(timeout):
                await kept.running.wait()
        return _job_of(kept)

    def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """Read a part of a job's output, from offset `start`."""
        data, begin = self._find(job_id, session).running.output.part(start, size)
        return OutputPage(data, begin, begin + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write bytes to a job's standard input."""
        kept = self._find(job_id, session)
        if not await to_thread.run_sync(kept.running.send, data):
            raise InvalidInput(f"{job_id} takes no input now.", hint="Look at its output first.")

    async def kill(self, job_id: str, session: str) -> Job:
        """Kill a job; returns when all its processes are gone."""
        kept = self._find(job_id, session)
        kept.running.end("killed")
        with anyio.CancelScope(shield=True):
            await kept.running.wait()
        return _job_of(kept)

    def close(self) -> None:
        """Kill every job; their file changes are applied as usual, unless they need a person's approval."""
        for kept in self._jobs.values():
            kept.running.end("killed")
        for kept in self._jobs.values():
            with contextlib.suppress(HandtoolsError, OSError):
                kept.running.result()
            kept.close()
        self._jobs.clear()

    def _of(self, session: str) -> list[BackgroundJob]:
        return [kept for kept in self._jobs.values() if kept.call.session == session]

    def _find(self, job_id: str, session: str) -> BackgroundJob:
        kept = self._jobs.get(job_id)
        if kept is None or kept.call.session != session:
            known = ", ".join(kept.id for kept in self._of(session)) or "none"
            raise NotFound(f"There is no job `{job_id}`.", hint=f"Jobs: {known}.")
        return kept

    def _forget(self) -> None:
        over = [kept for kept in self._jobs.values() if kept.running.ended is not None][:-REMEMBERED_JOBS]
        for kept in over:
            kept.close()
            del self._jobs[kept.id]


def refreshed_paths(covered: Sequence[str]) -> Callable[[str], bool]:
    """A test for paths whose changes a running job is shown: none that is covered, in dependencies or of git."""
    globs = PolicyGlobs(covered)

    @lru_cache(_REMEMBERED_FOLDERS)
    def open_folder(path: str) -> bool:
        above, _, name = path.rpartition("/")
        return name not in UNSEARCHED_FOLDERS and not globs.matches(path, folder=True) and open_above(above)

    def open_above(folder: str) -> bool:
        return not folder or open_folder(folder)

    return lambda path: open_folder(path) and not globs.matches(path, folder=False)


def _job_of(kept: BackgroundJob) -> Job:
    ended = kept.running.ended
    return Job(
        id=kept.id,
        script=kept.command.script,
        description=kept.description,
        seconds=ended.seconds if ended else time.monotonic() - kept.running.started,
        output=command_output_of(kept.running.output, output_file_name(kept.call)),
        exit=kept.exit if ended else None,
        call_id=kept.call.id,
        waiting=kept.waiting if ended else None,
        review=kept.command.review,
        terminal=kept.command.terminal,
        ports=listening_ports(kept.running.pid) if kept.running.pid and not ended else (),
    )
