"""The Commands port: runs bash commands confined and captures their changes; `NoCommands` refuses them."""

# ruff: noqa: ARG002 — `NoCommands` refuses whatever the arguments are

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from threading import Thread
from typing import NoReturn

from anyio import to_thread

from handtools.core.call import Call, output_file_name
from handtools.core.commands import (
    Command,
    CommandExit,
    CommandLimits,
    FinishedCommand,
    InheritedShellState,
    Job,
    JobEndHandler,
    OutputPage,
    PathPredicate,
    ProgressListener,
    PublishedPort,
    matches_no_path,
)
from handtools.core.errors import HostError, InvalidInput, UsageError
from handtools.core.web import Visit
from handtools.host.commands.background_jobs import BackgroundJob, BackgroundJobs, refreshed_path_predicate
from handtools.host.commands.launch_pipeline import LaunchPipeline
from handtools.host.commands.session_scratch import ScratchQuota, SessionScratchFolders
from handtools.host.commands.shell_state import ShellSessions, ShellStateFile, ShellStateReport
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.change_capture import Capture, NoCapture
from handtools.host.sandbox.default_limits import MAX_COMMAND_PROCESSES
from handtools.host.sandbox.environment_variables import (
    BASH_PROGRAM,
    certificate_files,
    command_environment,
)
from handtools.host.sandbox.launch import Launch, PersistentRunner, Runner, confined_launch
from handtools.host.sandbox.passed_probes import forget_passed_probes
from handtools.host.sandbox.path_program_folders import (
    folders_needed_by_path_programs,
    validate_readable_path,
)
from handtools.host.sandbox.processes import supervisor_client
from handtools.host.sandbox.processes.running_process import run_process
from handtools.host.sandbox.processes.supervisor_client import SUPERVISORS
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.host.sandbox.session_network_namespaces import SessionNetworks
from handtools.host.workspace_folders import path_in_workspace
from handtools.text.search.glob import PathGlobs


class NoCommands:
    """The commands port when commands are turned off: every method refuses with the reason."""

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
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate = matches_no_path,
    ) -> FinishedCommand:
        self._refuse()

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
        self._refuse()

    async def jobs(self, session: str) -> list[Job]:
        return []

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        self._refuse()

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        self._refuse()

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        self._refuse()

    async def kill(self, job_id: str, session: str) -> Job:
        self._refuse()

    async def publishable(self, job_id: str, session: str, port: int) -> PublishedPort:
        self._refuse()

    async def publish(self, job_id: str, session: str, port: PublishedPort) -> Job:
        self._refuse()

    async def unpublish(self, job_id: str, session: str, port: int | None) -> Job:
        self._refuse()

    def inherited_shell_state(self, session: str) -> InheritedShellState:
        return InheritedShellState()

    def settings_left_in_home(self, session: str) -> tuple[str, ...]:
        return ()

    def record_job_result(self, job_id: str, session: str, command_exit: CommandExit) -> None:
        self._refuse()

    def close(self) -> None:
        """Do nothing: no command runs."""

    def _refuse(self) -> NoReturn:
        raise UsageError(self.missing)


KEPT_OUTPUTS_BYTES = 4 << 30
KEPT_OUTPUTS_SECONDS = 7 * 86400.0
"""Seconds for which command outputs are kept: one week."""
TIDY_INTERVAL_SECONDS = 600.0


class LocalCommands(BackgroundJobs):
    """Runs bash commands and background jobs in a workspace folder on this machine, under a runner."""

    def __init__(
        self,
        root: str | Path,
        *,
        state: Path,
        output_blobs: FolderBlobStore,
        runner: Runner | str = "",
        capture: Capture | None = None,
        passed: frozenset[str] = frozenset(),
        readable: Iterable[str | Path] = (),
        scratch_quota: ScratchQuota | None = None,
        path: Sequence[str] = (),
        limits: CommandLimits | None = None,
        outgoing_proxy: str = "",
        separate_streams: bool = False,
    ) -> None:
        """`readable` are paths outside the workspace that commands may read, besides programs on PATH.

        The folders in `path` are prepended to PATH. `limits` are the upper bounds for every command.
        `separate_streams` also captures stdout and stderr separately, except in a container.
        """
        super().__init__()
        self._root = os.path.realpath(root)
        self._output_blobs = output_blobs
        self._given = runner
        self._capture = capture or NoCapture()
        self._passed = passed
        self._state = os.path.realpath(state)
        self._readable = tuple(
            validate_readable_path(path, root=self._root, state=self._state) for path in readable
        )
        self._path = tuple(path)
        self._limits = limits or CommandLimits(seconds=inf)
        self._outgoing_proxy = outgoing_proxy
        self._separate_streams = separate_streams
        self._sessions = ShellSessions(state / "sessions")
        self._scratch = SessionScratchFolders(state / "scratch", quota=scratch_quota)
        self._networks = SessionNetworks()
        self._tidied = 0.0
        self._looked_ahead = False
        self.mounts_left = ""
        """A mount point below which other workspaces are mounted; it is unmounted for commands."""

    @cached_property
    def runner(self) -> Runner:
        """The given or named runner, or the strongest one that works here; chosen on first use."""
        if not isinstance(self._given, str):
            return self._given
        return choose_runner(wanted=self._given, root=self._root).runner

    @property
    def boundary(self) -> str:
        """One sentence about what the runner prevents commands from doing."""
        return self.runner.boundary

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps commands inside the workspace."""
        return self.runner.confined

    @property
    def missing(self) -> str:
        """Why commands can't run here; empty on systems with process groups."""
        return "" if hasattr(os, "killpg") else "Commands are not supported on Windows yet."

    def look_ahead(
        self, *, private_globs: Sequence[PathGlobs], read_only_globs: Sequence[PathGlobs]
    ) -> None:
        """Prepare for the first command in background threads; failures are reported when it runs."""
        if not self.missing and not self._looked_ahead:
            self._looked_ahead = True
            begin = (SUPERVISORS.start_ahead,) if supervisor_client.has_supervisors() else ()
            for look in (*begin, partial(self._look_ahead, private_globs, read_only_globs)):
                Thread(
                    target=_run_ignoring_host_errors, args=(look,), name="handtools-look-ahead", daemon=True
                ).start()

    def _look_ahead(self, private_globs: Sequence[PathGlobs], read_only_globs: Sequence[PathGlobs]) -> None:
        """Prepare a launch without starting it, so that the runner, capture and private paths are cached."""
        if isinstance(self.runner, PersistentRunner) or not self._can_isolate_writes():
            return
        state_file = ShellStateFile(InheritedShellState(), "")
        try:
            launch = self._launch_of_command(
                Command(script=""),
                InheritedShellState(),
                state_file,
                private_globs=private_globs,
                read_only_globs=read_only_globs,
                is_open=matches_no_path,
            )
            with confined_launch(self.runner, launch):
                pass
        finally:
            state_file.close()

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
        """Run a command and wait for it; returns its exit, output and captured file changes."""
        if not isinstance(self.runner, PersistentRunner):
            # The supervisor of a first command starts while private paths are searched for.
            self.look_ahead(private_globs=private_globs, read_only_globs=read_only_globs)
        left = command.inherited or self._sessions.find(call.session)
        name = output_file_name(call.id, ".log")
        state_file = ShellStateFile(left, command.script)
        try:
            launch = self._launch_of_command(
                command,
                left,
                state_file,
                private_globs=private_globs,
                read_only_globs=read_only_globs,
                is_open=is_open,
            )
            # In a container, stderr carries the wrapper's reports; the command's stderr goes to stdout.
            apart = self._separate_streams and not isinstance(self.runner, PersistentRunner)
            launch = replace(launch, separate_streams=apart)
            pipeline = LaunchPipeline(self._capture, self.runner, self._scratch, self._networks, call, show)
            try:
                ended = await run_process(
                    launch, self._output_blobs.blob_path(name), show, pipeline.prepared_launch
                )
                if ended.fault:
                    forget_passed_probes()
                    raise HostError(f"The command could not be started: {ended.fault}.")
            except BaseException:
                pipeline.discard()
                raise
            kept = None if pipeline.exposed else state_file.read_report()
            cwd = self._save_shell_state(call.session, kept, left)
            return pipeline.finished(ended, cwd=cwd, shell_jobs=kept.jobs if kept else 0)
        finally:
            state_file.close()

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
        """Start a background job. It starts with the session's shell state and does not change it."""
        self.check_running_job_limit(call.session)
        left = command.inherited or self._sessions.find(call.session)
        name = output_file_name(call.id, ".log")
        state_file = ShellStateFile(left, command.script)
        # Capture a job only in an overlay: a scan would attribute concurrent changes by others to the job.
        apart = not command.live and await to_thread.run_sync(self._can_isolate_writes)
        capture = self._capture if apart else NoCapture()
        pipeline = LaunchPipeline(
            capture, self.runner, self._scratch, self._networks, call, _visits_only(show)
        )
        job = BackgroundJob(call, command, description, state_file, pipeline, settle)
        try:
            # The configured time limit is for foreground commands: a server may run for a day.
            launch = self._launch_of_command(
                command,
                left,
                state_file,
                private_globs=private_globs,
                read_only_globs=read_only_globs,
                is_open=is_open,
            )
            seconds = replace(launch.limits, seconds=command.limits.seconds)
            shown = refreshed_path_predicate((*private_globs, *read_only_globs)) if apart else None
            launch = replace(launch, input_open=True, limits=seconds, refreshed=shown)
        except BaseException:
            state_file.close()
            raise
        return await self.start_job(job, launch, self._output_blobs.blob_path(name))

    def inherited_shell_state(self, session: str) -> InheritedShellState:
        """Return the shell state for a session's next command; `cwd` is the root if its folder is gone."""
        left = self._sessions.find(session)
        folder = os.path.relpath(self._resolved_working_directory(left.cwd, given=False), self._root)
        return replace(left, cwd=folder)

    def settings_left_in_home(self, session: str) -> tuple[str, ...]:
        return self._scratch.settings_in_home(session, self.runner.name)

    def end_session(self, session: str) -> None:
        """Delete the scratch of a finished session, unless one of its commands is still running."""
        if "runner" in self.__dict__:
            self._scratch.drop(session, self.runner.name)

    def close(self) -> None:
        """Kill every job and remove what the capture and the runner kept for the next commands."""
        super().close()
        self._networks.close()
        self._capture.close()
        runner = self.__dict__.get("runner")
        if isinstance(runner, PersistentRunner):
            runner.release_workspace(self._root)

    def _can_isolate_writes(self) -> bool:
        return self._capture.has_isolated_writes and self.runner.can_mount_overlay

    def _delete_old_files(self) -> None:
        """Delete old command outputs and scratch, at most once every ten minutes."""
        now = time.monotonic()
        if not self._tidied or now - self._tidied > TIDY_INTERVAL_SECONDS:
            self._tidied = now
            self._output_blobs.tidy(max_bytes=KEPT_OUTPUTS_BYTES, max_age=KEPT_OUTPUTS_SECONDS)
            self._scratch.tidy()

    def _launch_of_command(
        self,
        command: Command,
        shell_state: InheritedShellState,
        state_file: ShellStateFile,
        *,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate,
    ) -> Launch:
        self._delete_old_files()
        limits = command.limits.within(self._limits)
        if limits.processes is None:
            limits = replace(limits, processes=MAX_COMMAND_PROCESSES)
        terminal = command.terminal is not None
        return Launch(
            argv=(BASH_PROGRAM, "--noprofile", "--norc", "-c", state_file.bootstrap_code, "bash"),
            env=command_environment(command.env, self._passed, terminal=terminal, path=self._path),
            cwd=self._resolved_working_directory(command.cwd or shell_state.cwd, given=bool(command.cwd)),
            root=self._root,
            pass_fds=(state_file.fd,),
            terminal=command.terminal,
            network=command.network,
            hosts=command.hosts,
            outgoing_proxy=self._outgoing_proxy,
            private_globs=tuple(private_globs),
            read_only_globs=tuple(read_only_globs),
            is_open=is_open,
            readable=(
                *self._path_folders(),
                *filter(os.path.exists, self._readable),
                *self._certificate_files(),
            ),
            limits=limits,
            mounts_left=self.mounts_left,
        )

    def _path_folders(self) -> tuple[str, ...]:
        path = os.pathsep.join((*self._path, os.environ.get("PATH", "")))
        return folders_needed_by_path_programs(path, self._root, self._state)

    def _certificate_files(self) -> tuple[str, ...]:
        paths = dict.fromkeys(certificate_files().values())
        return tuple(path for path in paths if path_in_workspace(path, self._root) is None)

    def _resolved_working_directory(self, path: str, *, given: bool) -> str:
        folder = os.path.realpath(os.path.join(self._root, path))
        inside = path_in_workspace(folder, self._root)
        if inside is not None and os.path.isdir(folder):
            return os.path.normpath(os.path.join(self._root, inside))
        if given:
            raise InvalidInput(f"`{path}` is not a folder in the workspace.", hint="Use one that is.")
        return self._root

    def _save_shell_state(
        self, session: str, report: ShellStateReport | None, shell_state: InheritedShellState
    ) -> str:
        """Save the shell state that a command reported; returns the session's next working directory."""
        if report is None:
            return shell_state.cwd
        cwd = path_in_workspace(report.cwd, self._root) or "."
        self._sessions.keep(session, report, cwd)
        return cwd


def _run_ignoring_host_errors(look: Callable[[], None]) -> None:
    with suppress(HostError):
        look()


def _visits_only(show: ProgressListener) -> ProgressListener:
    """Return a listener that forwards a job's network visits, but not its output, which is read on demand."""
    return lambda shown: show(shown) if isinstance(shown, Visit) else None
