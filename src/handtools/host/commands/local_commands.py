"""The Commands port: bash commands on this machine, confined and captured; and the port that refuses them."""

# ruff: noqa: ARG002 — whatever is asked, the answer is the same

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.commands import (
    Command,
    CommandExit,
    FinishedCommand,
    InheritedShellState,
    Job,
    JobEndHandler,
    OutputPage,
    ProgressListener,
)
from handtools.core.errors import HostError, InvalidInput, UsageError
from handtools.core.web import Visit
from handtools.host.commands.background_jobs import BackgroundJob, BackgroundJobs
from handtools.host.commands.exit_status import exit_notes, exit_of, output_file_name
from handtools.host.commands.launch_pipeline import LaunchPipeline
from handtools.host.commands.shell_session import (
    ShellSessions,
    ShellState,
    ShellStateFile,
    ShellStateReport,
)
from handtools.host.files.blob_store import FolderStore
from handtools.host.sandbox.change_capture import Capture, NoCapture
from handtools.host.sandbox.environment_variables import BASH_PROGRAM, command_environment
from handtools.host.sandbox.launch import Launch, PersistentRunner, Runner
from handtools.host.sandbox.processes.running_process import ProcessResult, run_process
from handtools.host.sandbox.runners.runner_selection import choose_runner


class NoCommands:
    """Says why, and does nothing."""

    boundary = "No commands run here."
    confined = True

    def __init__(self, missing: str = "This workspace has no machine to run commands on.") -> None:
        self.missing = missing

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private: Sequence[str],
        read_only: Sequence[str],
    ) -> FinishedCommand:
        """Never."""
        self._refuse()

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
        """Never."""
        self._refuse()

    async def jobs(self, session: str) -> list[Job]:
        """None."""
        return []

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """Never."""
        self._refuse()

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """Never."""
        self._refuse()

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Never."""
        self._refuse()

    async def kill(self, job_id: str, session: str) -> Job:
        """Never."""
        self._refuse()

    def inherited(self, session: str) -> InheritedShellState:
        """Nothing."""
        return InheritedShellState()

    def settled(self, job_id: str, session: str, end: CommandExit) -> None:
        """Never."""
        self._refuse()

    def close(self) -> None:
        """Nothing runs."""

    def _refuse(self) -> NoReturn:
        raise UsageError(self.missing)


MOST_PROCESSES = 4096
"""Nothing honest needs more at once; a fork bomb stops there."""

KEPT_OUTPUTS_BYTES = 4 << 30
KEPT_OUTPUTS_SECONDS = 7 * 86400.0
"""Outputs are kept for a week, the newest of them if they are many."""
TIDY_INTERVAL_SECONDS = 600.0


class LocalCommands:
    """Commands in a folder of this machine."""

    def __init__(
        self,
        root: str | Path,
        *,
        state: Path,
        outputs: FolderStore,
        runner: Runner | str = "",
        capture: Capture | None = None,
        passed: frozenset[str] = frozenset(),
    ) -> None:
        self._root = os.path.realpath(root)
        self._outputs = outputs
        self._given = runner
        self._capture = capture or NoCapture()
        self._passed = passed
        self._sessions = ShellSessions(state / "sessions")
        self._jobs = BackgroundJobs()
        self._tidied = 0.0

    @cached_property
    def runner(self) -> Runner:
        """The one that was given or named, or the strongest that works here: found out when it is first needed."""
        if not isinstance(self._given, str):
            return self._given
        return choose_runner(wanted=self._given, root=self._root).runner

    @property
    def boundary(self) -> str:
        """As the runner words it."""
        return self.runner.boundary

    @property
    def confined(self) -> bool:
        """As the runner has it."""
        return self.runner.confined

    @property
    def missing(self) -> str:
        """Empty where there are supervisors, which Linux has."""
        return "" if sys.platform.startswith("linux") else "Commands run on Linux only, so far."

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private: Sequence[str],
        read_only: Sequence[str],
    ) -> FinishedCommand:
        """Run to the end; what it changed comes back with it."""
        left, name = self._left(command, call.session), output_file_name(call)
        slip = ShellStateFile(left, command.script)
        try:
            launch = self._launch(command, left, slip, private, read_only)
            carrier = LaunchPipeline(self._capture, self.runner, call.id, show)
            try:
                ended = await run_process(launch, self._outputs.room(name), show, carrier.carry)
                _raise_if_unstarted(ended)
            except BaseException:
                carrier.discard()
                raise
            kept = slip.notes()
            cwd = self._keep(call.session, kept, left)
            notes = (*exit_notes(ended, kept.jobs if kept else 0), *carrier.notes)
            return FinishedCommand(
                exit=exit_of(ended, name, cwd, notes),
                delta=carrier.delta.changes,
                coverage=carrier.delta.coverage,
                omitted=carrier.delta.omitted,
                discard=carrier.discard,
            )
        finally:
            slip.close()

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
        """Run in the background. It begins where the session is, and leaves the session as it is."""
        self._jobs.check(call.session)
        left, name = self._left(command, call.session), output_file_name(call)
        slip = ShellStateFile(left, command.script)
        # What others change while a job runs must not be taken for its own: it is captured apart, or not at all.
        apart = not command.live and await to_thread.run_sync(self._apart)
        carrier = LaunchPipeline(
            self._capture if apart else NoCapture(), self.runner, call.id, _visits_only(show)
        )
        task = BackgroundJob(call, command, description, slip, carrier, settle)
        try:
            launch = replace(self._launch(command, left, slip, private, read_only), input_open=True)
        except BaseException:
            slip.close()
            raise
        return await self._jobs.start(task, launch, self._outputs.room(name))

    async def jobs(self, session: str) -> list[Job]:
        """The jobs of a session, newest first."""
        return self._jobs.listed(session)

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, after waiting for its end."""
        return await self._jobs.wait(job_id, session, timeout)

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """A part of what a job printed."""
        return self._jobs.page(job_id, session, start, size)

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        await self._jobs.send(job_id, session, data)

    async def kill(self, job_id: str, session: str) -> Job:
        """End a job and everything it started."""
        return await self._jobs.kill(job_id, session)

    def inherited(self, session: str) -> InheritedShellState:
        """What the next command of a session begins with; in the root, where its folder is gone."""
        left = self._sessions.find(session)
        folder = os.path.relpath(self._folder(left.cwd, given=False), self._root)
        return InheritedShellState(
            cwd=folder, exports=dict(left.exports), functions=left.functions, aliases=left.aliases
        )

    def _left(self, command: Command, session: str) -> ShellState:
        given = command.inherited
        if given is None:
            return self._sessions.find(session)
        return ShellState(given.cwd, dict(given.exports), given.functions, given.aliases)

    def settled(self, job_id: str, session: str, end: CommandExit) -> None:
        """What a job changed has landed, or never will."""
        self._jobs.settled(job_id, session, end)

    def close(self) -> None:
        """End every job, and let go of what the runner kept for them."""
        self._jobs.close()
        self._capture.close()
        runner = self.__dict__.get("runner")
        if isinstance(runner, PersistentRunner):
            runner.leave(self._root)

    def _apart(self) -> bool:
        runner = self.runner
        return self._capture.apart and (runner.layered if isinstance(runner, PersistentRunner) else True)

    def _tidy(self) -> None:
        """Let go of old outputs, now and then."""
        now = time.monotonic()
        if not self._tidied or now - self._tidied > TIDY_INTERVAL_SECONDS:
            self._tidied = now
            self._outputs.tidy(max_bytes=KEPT_OUTPUTS_BYTES, max_age=KEPT_OUTPUTS_SECONDS)

    def _launch(
        self,
        command: Command,
        left: ShellState,
        slip: ShellStateFile,
        private: Sequence[str],
        read_only: Sequence[str],
    ) -> Launch:
        self._tidy()
        allowance = command.allowance
        if allowance.processes is None:
            allowance = replace(allowance, processes=MOST_PROCESSES)
        terminal = command.terminal is not None
        return Launch(
            argv=(BASH_PROGRAM, "--noprofile", "--norc", "-c", slip.boot, "bash"),
            env=command_environment(command.env, self._passed, terminal=terminal),
            cwd=self._folder(command.cwd or left.cwd, given=bool(command.cwd)),
            root=self._root,
            pass_fds=(slip.fd,),
            terminal=command.terminal,
            network=command.network,
            hosts=command.hosts,
            private=tuple(private),
            read_only=tuple(read_only),
            allowance=allowance,
        )

    def _folder(self, path: str, *, given: bool) -> str:
        folder = os.path.realpath(os.path.join(self._root, path))
        inside = folder == self._root or folder.startswith(f"{self._root.rstrip('/')}/")
        if inside and os.path.isdir(folder):
            return folder
        if given:
            raise InvalidInput(f"`{path}` is not a folder of the workspace.", hint="Use a folder in it.")
        return self._root

    def _keep(self, session: str, notes: ShellStateReport | None, left: ShellState) -> str:
        """Note what the command left for the session; gives back where the next one begins."""
        if notes is None:
            return left.cwd
        cwd = os.path.relpath(notes.cwd, self._root) if os.path.isabs(notes.cwd) else "."
        inside = not cwd.startswith("..")
        self._sessions.keep(session, notes, cwd if inside else ".")
        return cwd if inside else "."


def _visits_only(show: ProgressListener) -> ProgressListener:
    """Of a job only what it wants to reach is told as it goes: its output is asked for."""
    return lambda shown: show(shown) if isinstance(shown, Visit) else None


def _raise_if_unstarted(ended: ProcessResult) -> None:
    if ended.fault:
        raise HostError(f"The command could not be started: {ended.fault}.")
