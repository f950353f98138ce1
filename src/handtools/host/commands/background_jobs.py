"""Background jobs: commands that keep running after their tool call returns, until this process exits."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from handtools.core.call import Call
from handtools.core.commands import (
    Command,
    CommandExit,
    FinishedCommand,
    Job,
    JobEndHandler,
    OutputPage,
    PublishedPort,
)
from handtools.core.errors import HandtoolsError, InvalidInput, NotFound, TooLarge, Unavailable
from handtools.host.commands.launch_pipeline import LaunchPipeline
from handtools.host.commands.shell_state import ShellStateFile
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.policy_paths import UNSEARCHED_FOLDERS
from handtools.host.sandbox.processes.listening_ports import listening_ports, listening_sockets
from handtools.host.sandbox.processes.running_process import RunningProcess
from handtools.text.search.glob import PathGlobs, any_covers

MAX_RUNNING_JOBS = 32
"""How many jobs of one session may run at the same time."""
REMEMBERED_JOBS = 64
"""How many ended jobs can still be queried."""
_REMEMBERED_FOLDERS = 10_000


@dataclass(slots=True)
class BackgroundJob:
    """A command that runs in the background: its call, process, output and captured changes."""

    call: Call
    command: Command
    description: str
    state_file: ShellStateFile
    pipeline: LaunchPipeline
    settle: JobEndHandler
    id: str = ""
    running: RunningProcess = field(init=False)
    exit: CommandExit | None = None
    finished: FinishedCommand | None = None
    """How the job ended, until its file changes are applied or rejected; None before and after that."""

    def start(self, launch: Launch, kept: Path) -> None:
        """Start the job's process; raises if the launch can't be prepared."""
        self.running = RunningProcess(launch, kept, None, self.pipeline.prepared_launch, self._record_exit)
        self.running.wait_until_started()

    def close(self) -> None:
        """Close the job's descriptors and delete its captured changes."""
        self.running.close()
        self.state_file.close()
        self.pipeline.discard()

    def publishable(self, port: int) -> PublishedPort:
        """Return where a port of the job is or would be published; raises if it can't be published."""
        if self.running.ended is not None:
            raise InvalidInput(f"{self.id} has ended.", hint="Start it again, then publish its port.")
        if self.running.pid is None:
            hint = "Ask the user to run commands under bubblewrap."
            raise Unavailable(f"{self.id} runs in a container: its ports can't be published.", hint=hint)
        ports = self._ports()
        if port not in ports:
            listens = ", ".join(map(str, ports)) or "no port yet"
            raise InvalidInput(
                f"{self.id} does not listen on port {port}.", hint=f"It listens on {listens}."
            )
        return self.pipeline.ports.place_for(port, self.running.pid)

    def publish(self, port: PublishedPort) -> None:
        """Publish a port of the job until it ends."""
        self.pipeline.ports.open(port, lambda: listening_sockets(self.running.pid or 0))

    def job(self) -> Job:
        """Return the current state of the job as a value."""
        ended = self.running.ended
        return Job(
            id=self.id,
            script=self.command.script,
            description=self.description,
            seconds=ended.seconds if ended else time.monotonic() - self.running.started,
            output=self.running.output.snapshot(),
            exit=self.exit if ended else None,
            call_id=self.call.id,
            waiting=self.finished if ended else None,
            review=self.command.review,
            terminal=self.command.terminal,
            ports=self._ports(),
            published=self.pipeline.ports.listed(),
        )

    def _ports(self) -> tuple[int, ...]:
        return listening_ports(self.running.pid) if self.running.pid and not self.running.ended else ()

    def _record_exit(self, command_exit: CommandExit) -> None:
        """Record the exit and have the file changes applied; called in the job's thread when it ends."""
        finished = self.pipeline.finished(command_exit)
        end = finished.exit if command_exit.fault else self.settle(finished)
        self.exit, self.finished = end or finished.exit, None if end else finished


class BackgroundJobs:
    """The background jobs of one workspace, in all sessions: the part of the commands port about jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundJob] = {}
        self._count = 0

    def check_running_job_limit(self, session: str) -> None:
        """Raise `TooLarge` if the session has too many running jobs."""
        alive = [k for k in self._jobs_of_session(session) if k.running.ended is None]
        if len(alive) >= MAX_RUNNING_JOBS:
            raise TooLarge(f"{MAX_RUNNING_JOBS} jobs are running.", hint="Kill one with `jobs` first.")

    async def start_job(self, job: BackgroundJob, launch: Launch, kept: Path) -> Job:
        """Start a command as a background job and track it; returns the job."""
        try:
            await to_thread.run_sync(job.start, launch, kept)
        except BaseException:
            job.close()
            raise
        self._count += 1
        job.id = f"job{self._count}"
        self._jobs[job.id] = job
        self._forget_old_jobs()
        return job.job()

    def record_job_result(self, job_id: str, session: str, command_exit: CommandExit) -> None:
        """Record the final result of a job, after its file changes were applied or rejected."""
        kept = self._find(job_id, session)
        kept.exit, kept.finished = command_exit, None

    @property
    def job_state(self) -> Literal["none", "ended", "running"]:
        """Whether there are running jobs, only ended jobs that can still be queried, or no jobs at all."""
        if not self._jobs:
            return "none"
        return "running" if any(kept.running.ended is None for kept in self._jobs.values()) else "ended"

    async def jobs(self, session: str) -> list[Job]:
        return [kept.job() for kept in reversed(self._jobs_of_session(session))]

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """Return the job, after waiting at most `timeout` seconds for it to end."""
        kept = self._find(job_id, session)
        if timeout > 0:
            with anyio.move_on_after(timeout):
                await kept.running.wait()
        return kept.job()

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """Read part of a job's output, starting at offset `start`."""
        data, begin = self._find(job_id, session).running.output.part(start, size)
        return OutputPage(data, begin, begin + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write bytes to a job's standard input."""
        kept = self._find(job_id, session)
        if not await to_thread.run_sync(kept.running.send, data):
            raise InvalidInput(f"{job_id} does not accept input now.", hint="Read its output first.")

    async def kill(self, job_id: str, session: str) -> Job:
        """Kill a job; returns when all its processes are gone."""
        kept = self._find(job_id, session)
        kept.running.end("killed")
        with anyio.CancelScope(shield=True):
            await kept.running.wait()
        return kept.job()

    async def publishable(self, job_id: str, session: str, port: int) -> PublishedPort:
        """Return where a port of a job is or would be published; raises if it can't be published."""
        return await to_thread.run_sync(self._find(job_id, session).publishable, port)

    async def publish(self, job_id: str, session: str, port: PublishedPort) -> Job:
        """Publish a port of a job on this machine's loopback until the job ends."""
        kept = self._find(job_id, session)
        await to_thread.run_sync(kept.publish, port)
        return kept.job()

    async def unpublish(self, job_id: str, session: str, port: int | None) -> Job:
        """Close a published port of a job, or all of them if `port` is None."""
        kept = self._find(job_id, session)
        await to_thread.run_sync(kept.pipeline.ports.close, port)
        return kept.job()

    def close(self) -> None:
        """Kill every job. Their file changes are applied as usual, unless they need the user's approval."""
        for kept in self._jobs.values():
            kept.running.end("killed")
        for kept in self._jobs.values():
            with contextlib.suppress(HandtoolsError, OSError):
                kept.running.result()
            kept.close()
        self._jobs.clear()

    def _jobs_of_session(self, session: str) -> list[BackgroundJob]:
        return [kept for kept in self._jobs.values() if kept.call.session == session]

    def _find(self, job_id: str, session: str) -> BackgroundJob:
        kept = self._jobs.get(job_id)
        if kept is None or kept.call.session != session:
            known = ", ".join(kept.id for kept in self._jobs_of_session(session)) or "none"
            raise NotFound(f"There is no job `{job_id}`.", hint=f"Jobs: {known}.")
        return kept

    def _forget_old_jobs(self) -> None:
        over = [kept for kept in self._jobs.values() if kept.running.ended is not None][:-REMEMBERED_JOBS]
        for kept in over:
            kept.close()
            del self._jobs[kept.id]


def refreshed_path_predicate(covered_globs: Sequence[PathGlobs]) -> Callable[[str], bool]:
    """Return a predicate for the paths whose changes a running job sees.

    False for paths that the globs cover, dependency folders, version control folders and everything in them.
    """

    @lru_cache(_REMEMBERED_FOLDERS)
    def is_open(path: str) -> bool:
        above, _, name = path.rpartition("/")
        return (
            name not in UNSEARCHED_FOLDERS
            and not any_covers(covered_globs, path)
            and (not above or is_open(above))
        )

    return is_open
