"""Local commands: a runner, a capture and a process put together, on this machine."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.command import Command, Exit, Inherited, Job, Page, Ran, Settle, Show
from handtools.core.errors import HostError, InvalidInput
from handtools.core.visits import Visit
from handtools.host.commands.background import Background, Task
from handtools.host.commands.capturing import Capture, NoCapture
from handtools.host.commands.carrying import Carrier
from handtools.host.commands.environment import BASH, environment
from handtools.host.commands.exits import exit_of, notes_of, output_name
from handtools.host.commands.launching import Keeping, Launch, Runner
from handtools.host.commands.processes.running import Ended, run_process
from handtools.host.commands.runners.choosing import choose
from handtools.host.commands.session import Left, Notes, Sessions, Slip
from handtools.host.store import FolderStore

PROCESSES = 4096
"""Nothing honest needs more at once; a fork bomb stops there."""

OUTPUTS_BYTES = 4 << 30
OUTPUTS_SECONDS = 7 * 86400.0
"""Outputs are kept for a week, the newest of them if they are many."""
TIDY_SECONDS = 600.0


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
        self._sessions = Sessions(state / "sessions")
        self._jobs = Background()
        self._tidied = 0.0

    @cached_property
    def runner(self) -> Runner:
        """The one that was given or named, or the strongest that works here: found out when it is first needed."""
        if not isinstance(self._given, str):
            return self._given
        return choose(wanted=self._given, root=self._root).runner

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
        self, command: Command, *, call: Call, show: Show, private: Sequence[str], read_only: Sequence[str]
    ) -> Ran:
        """Run to the end; what it changed comes back with it."""
        left, name = self._left(command, call.session), output_name(call)
        slip = Slip(left, command.script)
        try:
            launch = self._launch(command, left, slip, private, read_only)
            carrier = Carrier(self._capture, self.runner, call.id, show)
            try:
                ended = await run_process(launch, self._outputs.room(name), show, carrier.carry)
                _refuse_unstarted(ended)
            except BaseException:
                carrier.discard()
                raise
            kept = slip.notes()
            cwd = self._keep(call.session, kept, left)
            notes = (*notes_of(ended, kept.jobs if kept else 0), *carrier.notes)
            return Ran(
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
        show: Show,
        settle: Settle,
    ) -> Job:
        """Run in the background. It begins where the session is, and leaves the session as it is."""
        self._jobs.check(call.session)
        left, name = self._left(command, call.session), output_name(call)
        slip = Slip(left, command.script)
        # What others change while a job runs must not be taken for its own: it is captured apart, or not at all.
        apart = not command.live and await to_thread.run_sync(self._apart)
        carrier = Carrier(self._capture if apart else NoCapture(), self.runner, call.id, _visits(show))
        task = Task(call, command, description, slip, carrier, settle)
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

    async def page(self, job_id: str, session: str, start: int, size: int) -> Page:
        """A part of what a job printed."""
        return self._jobs.page(job_id, session, start, size)

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        await self._jobs.send(job_id, session, data)

    async def kill(self, job_id: str, session: str) -> Job:
        """End a job and everything it started."""
        return await self._jobs.kill(job_id, session)

    def inherited(self, session: str) -> Inherited:
        """What the next command of a session begins with; in the root, where its folder is gone."""
        left = self._sessions.find(session)
        folder = os.path.relpath(self._folder(left.cwd, given=False), self._root)
        return Inherited(
            cwd=folder, exports=dict(left.exports), functions=left.functions, aliases=left.aliases
        )

    def _left(self, command: Command, session: str) -> Left:
        given = command.inherited
        if given is None:
            return self._sessions.find(session)
        return Left(given.cwd, dict(given.exports), given.functions, given.aliases)

    def settled(self, job_id: str, session: str, end: Exit) -> None:
        """What a job changed has landed, or never will."""
        self._jobs.settled(job_id, session, end)

    def close(self) -> None:
        """End every job, and let go of what the runner kept for them."""
        self._jobs.close()
        self._capture.close()
        runner = self.__dict__.get("runner")
        if isinstance(runner, Keeping):
            runner.leave(self._root)

    def _apart(self) -> bool:
        runner = self.runner
        return self._capture.apart and (runner.layered if isinstance(runner, Keeping) else True)

    def _tidy(self) -> None:
        """Let go of old outputs, now and then."""
        now = time.monotonic()
        if not self._tidied or now - self._tidied > TIDY_SECONDS:
            self._tidied = now
            self._outputs.tidy(max_bytes=OUTPUTS_BYTES, max_age=OUTPUTS_SECONDS)

    def _launch(
        self, command: Command, left: Left, slip: Slip, private: Sequence[str], read_only: Sequence[str]
    ) -> Launch:
        self._tidy()
        allowance = command.allowance
        if allowance.processes is None:
            allowance = replace(allowance, processes=PROCESSES)
        terminal = command.terminal is not None
        return Launch(
            argv=(BASH, "--noprofile", "--norc", "-c", slip.boot, "bash"),
            env=environment(command.env, self._passed, terminal=terminal),
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

    def _keep(self, session: str, notes: Notes | None, left: Left) -> str:
        """Note what the command left for the session; gives back where the next one begins."""
        if notes is None:
            return left.cwd
        cwd = os.path.relpath(notes.cwd, self._root) if os.path.isabs(notes.cwd) else "."
        inside = not cwd.startswith("..")
        self._sessions.keep(session, notes, cwd if inside else ".")
        return cwd if inside else "."


def _visits(show: Show) -> Show:
    """Of a job only what it wants to reach is told as it goes: its output is asked for."""
    return lambda shown: show(shown) if isinstance(shown, Visit) else None


def _refuse_unstarted(ended: Ended) -> None:
    if ended.fault:
        raise HostError(f"The command could not be started: {ended.fault}.")
